"""Cases that random programs found, each as small as it got."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.property.running import needs_device

TARGETS = ["reference", pytest.param(None, marks=needs_device)]


@fq.kernel
def reverse_into(item: fq.Item, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if 0 <= out.shape[0] - 1 - (i + 2) < out.shape[0] and i < a.shape[0]:
        out[out.shape[0] - 1 - (i + 2)] = a[i]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [1, 4, 40])
def test_a_guard_that_decreases_with_the_id(target: str | None, size: int) -> None:
    """Intel's CPU compiler took the wrong work-items (``codegen.opencl.early_exits``)."""
    a, out = fq.Buffer(np.arange(1, size + 1, dtype=np.float32)), fq.Buffer(size + 2, np.float32)
    with fq.FusionQueue(target) as queue:
        queue.submit(reverse_into, size, a, out)
        assert list(out.numpy()) == [*range(size, 0, -1), 0, 0]


@fq.kernel
def two_additions(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if not (i < a.shape[0] and i < b.shape[0]):
        return
    a[i] = a[i] + 1
    b[i] = b[i] + 2


@fq.kernel
def every_second_from_the_end(item: fq.Item, a):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if not (0 <= a.shape[0] - 1 - (2 * i + 1) < a.shape[0]):
        return
    a[a.shape[0] - 1 - (2 * i + 1)] = a[a.shape[0] - 1 - (2 * i + 1)] * 2


def test_the_analysis_gives_up_on_questions_that_take_hours() -> None:
    """isl split a set of sizes into hundreds of pieces (``analysis.isl_operations.OPERATIONS``)."""
    with fq.FusionQueue("reference") as queue:
        a = fq.Buffer(np.array([5, 6, 7], np.int16))
        with fq.fusion(queue):
            queue.submit(two_additions, 6, a, a)
            queue.submit(every_second_from_the_end, 3, a)
        assert list(a.numpy()) == [8, 18, 10]


@fq.kernel
def compare_comparisons(item: fq.Item, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    out[i] = ((a[i] < out[i]) < out[i]) == (a[i] == out[i])


@pytest.mark.parametrize("target", TARGETS)
def test_a_comparison_of_comparisons(target: str | None) -> None:
    """The OpenCL compiler refuses chained comparisons without parentheses."""
    a = fq.Buffer(np.array([False, False, True, True]))
    out = fq.Buffer(np.array([False, True, False, True]))
    with fq.FusionQueue(target) as queue:
        queue.submit(compare_comparisons, 4, a, out)
        assert list(out.numpy()) == [False, True, True, True]


@fq.kernel
def swap_in_fives(item: fq.NdItem, a, b, c):  # type: ignore[no-untyped-def]  # kernel language
    k = item.get_global_id(0)
    other = k - k % 2 + 1 - k % 2
    if other < a.shape[0] and k < b.shape[0] and k // 5 * 5 + (k % 5 + 1) % 5 < c.shape[0]:
        a[other] = 1.0


@fq.kernel
def ones(item: fq.NdItem, b):  # type: ignore[no-untyped-def]  # kernel language
    b[item.get_global_id(0)] = 1.0


@pytest.mark.parametrize("target", TARGETS)
def test_distances_that_isl_writes_as_quotients(target: str | None) -> None:
    """isl refused to take the largest of them (``analysis.footprint``)."""
    a = fq.Buffer(np.full(12, -1.0), promote_local=True)
    b, c = fq.Buffer(np.zeros(4)), fq.Buffer(np.zeros(4))
    with fq.FusionQueue(target) as queue:
        with fq.fusion(queue) as f:
            queue.submit(swap_in_fives, fq.NdRange(4, 2), a, b, c)
            queue.submit(ones, fq.NdRange(4, 2), b)
        assert [p.scope for p in f.report.promotions] == ["local"]
        assert list(b.numpy()) == [1] * 4
        assert list(a.numpy()) == [-1] * 12
