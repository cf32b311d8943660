"""Functions of all elements of rows, arrays made in kernels, sorted numbers and slices that go
backwards: the bits of the reference backend, in launches and in fused kernels."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import Strategy

ROWS = 50


@fq.kernel
def of_rows(item: fq.Item, a, b, out, scale=2, bias=None):
    i = item[0]
    t = np.zeros(3, a.dtype)
    t[:] = a[i, ::-1][:3]
    s = sorted((a[i, 0], a[i, 1], a[i, 2], a[i, 3]))
    first, *others = t
    out[i, 0] = a[i] @ b
    out[i, 1] = np.sum(a[i] * b - 1) + t.sum() + s[1] * first + others[1]
    out[i, 2] = (a[i] - b).max() * np.mean(a[i]) * scale
    out[i, 3] = np.argmax(a[i]) + 10 * a[i].argmin() + (100 if i in range(3, 40, 2) else 0)
    out[i, 4] = np.linalg.norm(a[i, 1:]) + np.std(a[i])
    if bias is not None:
        out[i, :] = out[i] * bias[i]


@pytest.mark.in_turn
@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
@pytest.mark.parametrize("columns", [4, 37])
def test_bits_are_those_of_the_reference_backend(
    queue: fq.FusionQueue, strategy: Strategy, columns: int
) -> None:
    with fq.FusionQueue("reference") as reference:
        expected = run(reference, "unfused", columns)
    assert run(queue, strategy, columns) == expected


def run(queue: fq.FusionQueue, strategy: Strategy, columns: int) -> list[bytes]:
    rng = np.random.default_rng(5)
    a = fq.Buffer(rng.standard_normal((ROWS, columns)).astype(np.float32))
    b = fq.Buffer(rng.standard_normal(columns).astype(np.float32))
    bias = fq.Buffer(rng.standard_normal(ROWS).astype(np.float32))
    first, second = (fq.Buffer(np.zeros((ROWS, 5), np.float32)) for _ in range(2))
    with fq.fusion(queue, strategy=strategy):
        queue.submit(of_rows, ROWS, a, b, first)
        queue.submit(of_rows, ROWS, first, first[0], second, 3, bias)
    return [np.array(buffer.numpy()).tobytes() for buffer in (first, second)]
