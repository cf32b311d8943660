"""Work-groups that do the work-items of others behind their own: the bits of launches."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from examples.llama.kernels import matrix_vector, matrix_vector_by_rows
from fusionq.kernels import add, silu_gate

pytestmark = pytest.mark.usefixtures("group_functions")

GROUP = 32


@fq.kernel
def neighbours(item: fq.Item, a, out):
    """Elements of the same four rows, in another order, and of all ids."""
    i = item.get_id(0)
    out[i] = a[i // 4 * 4 + 3 - i % 4] + np.float32(i) - np.float32(item.get_range(0))


def run(queue: fq.FusionQueue, strategy: str, rows: int, by_rows: bool) -> tuple[list, fq.Report]:
    rng = np.random.default_rng(rows)
    a, b = (fq.Buffer(rng.standard_normal((rows, 40)).astype(np.float32)) for _ in range(2))
    c = fq.Buffer(rng.standard_normal((rows, rows)).astype(np.float32))
    x = fq.Buffer(rng.standard_normal(40).astype(np.float32))
    gate, up, change, total, last = (fq.Buffer(rows, np.float32) for _ in range(5))
    total.write(rng.standard_normal(rows).astype(np.float32))
    space = fq.NdRange((rows // 4 if by_rows else rows, GROUP), (1, GROUP))
    kernel = matrix_vector_by_rows if by_rows else matrix_vector
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(kernel, space, a, x, gate)
        queue.submit(kernel, space, b, x, up)
        queue.submit(silu_gate, rows, gate, up, up)
        queue.submit(kernel, space, c, up, change)
        queue.submit(add, rows, total, change, total)
        queue.submit(neighbours, rows, total, last)
    f.event.wait()
    return [np.array(buffer.numpy()) for buffer in (up, total, last)], f.report


@pytest.mark.parametrize("by_rows", (True, False))
@pytest.mark.parametrize("strategy", ("fused", "sequence", "megakernel"))
def test_bits_are_those_of_launches(queue: fq.FusionQueue, strategy: str, by_rows: bool) -> None:
    rows = 48
    expected, _ = run(queue, "unfused", rows, by_rows)
    found, report = run(queue, strategy, rows, by_rows)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32))
    assert np.abs(found[-1]).max() > 0
    if strategy == "fused":
        assert len(report.stages) == (2 if by_rows else 3)
