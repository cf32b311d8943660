"""Random lists of work-groups that go through rows in steps of their size, and of plain ranges over
rows and columns that read what these, their neighbours or others have written: bit for bit as
unfused."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.property.running import examples, needs_device

ROWS = 5


def _by_groups(form: str, flat: bool) -> Any:
    @fq.kernel
    def sums(item: fq.NdItem, a, t, out):
        group = item.get_group()
        i = group.get_group_id(0)
        own = 0
        for j in range(item.get_local_linear_id() if flat else item.get_local_id(1),
                       a.shape[1], item.get_local_range(0 if flat else 1)):  # fmt: skip
            own += a[i, j] * (j % 5 + 1)
            out[i, j] = own - t[i]
        total = fq.reduce_over_group(group, own, "add")
        if item.get_local_linear_id() == 0:
            t[i] = total

    @fq.kernel
    def counted(item: fq.NdItem, a, t, out):
        group = item.get_group()
        i = group.get_group_id(0)
        j = a.shape[1] // 3 + (item.get_local_id(0) if flat else item.get_local_id(1))
        most = -100
        while j < a.shape[1]:
            most = max(most, a[i, j])
            if most % 3 == 0:
                out[i, j] = a[i, j] + most
            j += item.get_local_range(0 if flat else 1)
        t[i] = fq.reduce_over_group(group, most, "max")

    return {"sums": sums, "counted": counted}[form]


def _by_items(form: str, columns: int) -> Any:
    @fq.kernel
    def own(item: fq.Item, a, t, out):
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = a[i, j] * 2 + t[i] + item.get_range(1)

    @fq.kernel
    def turned(item: fq.Item, a, t, out):
        i, j = item.get_id(0), item.get_id(1)
        if j % 3 > 0:
            return
        out[i, j] = a[i, columns - 1 - j] - t[i]

    @fq.kernel
    def above(item: fq.Item, a, t, out):
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = a[max(i - 1, 0), j] + t[min(i + 1, item.get_range(0) - 1)]

    @fq.kernel
    def linear(item: fq.Item, a, t, out):
        i, j = item.get_id(0) // a.shape[1], item.get_id(0) % a.shape[1]
        for k in range(j, min(j + 3, a.shape[1])):
            out[i, j] = out[i, j] + a[i, k] * t[i]

    return {"own": own, "turned": turned, "above": above, "linear": linear}[form]


@st.composite
def lists(draw: st.DrawFn) -> tuple[int, list[tuple[Any, ...]]]:
    """How many columns arrays have, and what is submitted: a kernel, its range, and the numbers of
    its matrices and of its vector."""
    columns = draw(st.sampled_from((1, 3, 8, 16, 23, 40)))
    lanes, flat = draw(st.sampled_from((4, 8))), draw(st.booleans())
    space = fq.NdRange(ROWS * lanes, lanes) if flat else fq.NdRange((ROWS, lanes), (1, lanes))
    made: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(2, 5))):
        a, out = draw(st.permutations(range(3)))[:2]
        vector = draw(st.integers(0, 1))
        if not made or draw(st.integers(0, 2)) == 0:
            kernel = _by_groups(draw(st.sampled_from(("sums", "counted"))), flat)
            made.append((kernel, space, a, vector, out))
            continue
        form = draw(st.sampled_from(("own", "turned", "above", "linear")))
        a = draw(st.sampled_from((a, made[-1][-1])))
        out = out if a != out or form == "own" else (out + 1) % 3
        range_ = ROWS * columns if form == "linear" else (ROWS, columns)
        made.append((_by_items(form, columns), range_, a, vector, out))
    return columns, made


def _run(queue: fq.FusionQueue, columns: int, made: Any, strategy: str) -> list[np.ndarray]:
    whole = np.arange(ROWS * columns).reshape(ROWS, columns)
    matrices = [fq.Buffer(whole * (k + 3) % 11 - 4) for k in range(3)]
    vectors = [fq.Buffer(np.arange(ROWS) * (k + 2) % 5) for k in range(2)]
    with fq.fusion(queue, strategy=strategy) as f:
        for kernel, space, a, vector, out in made:
            queue.submit(kernel, space, matrices[a], vectors[vector], matrices[out])
    f.event.wait()
    return [np.array(array.numpy()) for array in (*matrices, *vectors)]


def _check(target: str | None, made: tuple[int, list[tuple[Any, ...]]], strategy: str) -> None:
    columns, calls = made
    with fq.FusionQueue(target) if target else fq.FusionQueue() as queue:
        expected = _run(queue, columns, calls, "unfused")
        found = _run(queue, columns, calls, strategy)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


STRATEGIES = ("fused", "sequence", "megakernel", "auto")


@examples(30)
@given(lists(), st.sampled_from(STRATEGIES))
def test_on_the_reference_device(made: Any, strategy: str) -> None:
    _check("reference", made, strategy)


@needs_device
@examples(12)
@given(lists(), st.sampled_from(STRATEGIES))
def test_on_the_sycl_device(made: Any, strategy: str) -> None:
    _check(None, made, strategy)


@needs_device
@examples(10)
@given(lists())
def test_the_sycl_device_does_what_the_reference_device_does(made: Any) -> None:
    columns, calls = made
    results = []
    for target in ("reference", None):
        with fq.FusionQueue(target) if target else fq.FusionQueue() as queue:
            results.append(_run(queue, columns, calls, "unfused"))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
