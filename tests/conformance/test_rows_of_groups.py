"""Work-groups that do rows of plain ranges behind their own, and loops in steps of a work-group:
the bits of launches, and of the reference backend."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole

pytestmark = pytest.mark.usefixtures("group_functions")

GROUP = 16


@fq.kernel
def maxima(item: fq.NdItem, x, top):
    i, own = item.get_global_id(0), item.get_local_id(1)
    best = x[i, 0]
    for j in range(own, x.shape[1], GROUP):
        best = max(best, x[i, j])
    best = fq.reduce_over_group(item.get_group(), best, "max")
    if own == 0:
        top[i] = best


@fq.kernel
def shares(item: fq.NdItem, x, top, total, out):
    """A loop that C programmers write, from the second element of a row on."""
    i = item.get_global_id(0)
    value = x.dtype.type(0)
    j = 1 + item.get_local_id(1)
    while j < x.shape[1]:
        out[i, j] = x[i, j] - top[i]
        value += out[i, j]
        j += item.get_local_range(1)
    value = fq.reduce_over_group(item.get_group(), value, "add")
    if item.get_local_id(1) == 0:
        out[i, 0] = x[i, 0]
        total[i] = value


@fq.kernel
def divide(item: fq.Item, total, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = out[i, j] / (total[i] + out.dtype.type(3))


@fq.kernel
def turned(item: fq.Item, x, total, out):
    i, j = item.get_linear_id() // out.shape[1], item.get_linear_id() % out.shape[1]
    if j == 3:
        return
    out[i, j] = x[i, out.shape[1] - 1 - j] * total[i]


def run(queue: fq.FusionQueue, strategy: str, columns: int, dtype: str) -> tuple[list, fq.Report]:
    rows = 40
    rng = np.random.default_rng(columns)
    x = fq.Buffer(rng.standard_normal((rows, columns)).astype(dtype))
    first, second = (fq.Buffer(np.zeros((rows, columns), dtype)) for _ in range(2))
    top, total = (fq.Buffer(np.zeros(rows, dtype)) for _ in range(2))
    space = fq.NdRange((rows, GROUP), (1, GROUP))
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(maxima, space, x, top)
        queue.submit(shares, space, x, top, total, first)
        queue.submit(divide, (rows, columns), total, first)
        queue.submit(turned, rows * columns, first, total, second)
    f.event.wait()
    return [np.array(buffer.numpy()) for buffer in (top, total, first, second)], f.report


STRATEGIES = ("unfused", "fused", "sequence", "megakernel")
"""Each where rows are as long as a work-group, two of them elsewhere."""


@pytest.mark.parametrize(
    "columns, dtype", ((1, "float32"), (16, "float64"), (100, "float32"), (17, "float32"))
)
def test_bits_are_those_of_launches_and_of_the_reference_backend(
    queue: fq.FusionQueue, columns: int, dtype: str
) -> None:
    with fq.FusionQueue("reference") as reference:
        expected, _ = run(reference, "unfused", columns, dtype)
    for strategy in STRATEGIES if is_whole() or columns == GROUP else STRATEGIES[1::2]:
        found, report = run(queue, strategy, columns, dtype)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
        if strategy == "fused":
            # Rows as long as a work-group are its own ids, and no host's share.
            assert len(report.stages) == (2 if columns == GROUP else 1)
    assert np.abs(expected[-1]).max() > 0 or columns == 1
