"""Reductions of a range combine in one order on each device, whatever their work-groups are."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.language.combine import COMBINE, joint_reduction, over_group
from tests.in_turn import one_in

pytestmark = pytest.mark.usefixtures("group_functions")

SIZES = (1, 17, 64, 65, 100, 197, 256)
"""One work-item; few, which the first combines; many that are whole sub-groups or not."""


@fq.kernel
def combine(item: fq.NdItem, x, total, greatest):
    i = item.get_global_id(0)
    total += x[i]
    greatest.combine(-x[i])


def expected(op: str, x: np.ndarray, size: int) -> np.generic:
    """``x`` combined by work-groups of ``size``, and then their results."""
    groups = [over_group("reduce", op, list(row), None)[0] for row in x.reshape(-1, size)]
    return groups[0] if len(groups) == 1 else joint_reduction(op, groups, x.dtype, 256)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
def test_the_order_is_that_of_work_group_functions(queue, strategy, dtype):
    rng = np.random.default_rng(3)
    for size in one_in(2, SIZES, first=dtype == "int32"):
        x = (rng.standard_normal(3 * size) * 1000).astype(dtype)
        given = fq.Buffer(x)
        total, greatest = fq.Buffer(1, dtype), fq.Buffer(1, dtype)
        with fq.fusion(queue, strategy=strategy):
            queue.submit(
                combine, fq.NdRange(x.size, size), given,
                fq.Reduction(total, "add", initialize=True),
                fq.Reduction(greatest, "maximum", initialize=True),
            )  # fmt: skip
        assert total.numpy()[0] == expected("add", x, size), size
        assert greatest.numpy()[0] == expected("max", -x, size), size


def test_the_order_shows():
    """Another one gives other bits, so that the comparison above means something."""
    x = (np.random.default_rng(3).standard_normal(197) * 1000).astype(np.float32)
    one_after_the_other = x[0]
    for value in x[1:]:
        one_after_the_other = COMBINE["add"](one_after_the_other, value)
    assert one_after_the_other != expected("add", x, 197)
