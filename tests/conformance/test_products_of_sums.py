"""Products of sums that share terms and factors round as they are written, whatever stands beside
them and however many work-items there are: the same bits as the definition in every strategy.

Intel's compiler for CPUs multiplies the terms, once, where several such products share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from tests.conformance.running import Array

SIZES = (1, 7, 12, 17, 33, 100)
ROWS = ((64, 5), (200, 1), (7, 33))


@fq.kernel
def by_constants(item: fq.Item, a: Any, sums: Any, differences: Any) -> None:
    """A step of a Haar wavelet."""
    i = item.get_id(0)
    sums[i] = (a[2 * i] + a[2 * i + 1]) * a.dtype.type(0.7)
    differences[i] = (a[2 * i] - a[2 * i + 1]) * a.dtype.type(0.7)


@fq.kernel
def by_variables(item: fq.Item, a: Any, sums: Any, differences: Any) -> None:
    i = item.get_id(0)
    x, y, factor = a[2 * i], a[2 * i + 1], a[0]
    total = x + y
    apart = x
    apart -= y
    sums[i] = factor * total
    differences[i] = -apart * factor


@fq.kernel
def halves(item: fq.Item, a: Any, sums: Any, differences: Any) -> None:
    """The terms' halves may be inexact, or their sum too large."""
    i = item.get_id(0)
    sums[i] = (a[2 * i] + a[2 * i + 1]) / 2
    differences[i] = (a[2 * i] - a[2 * i + 1]) / 2


@fq.kernel
def squares(item: fq.Item, a: Any, sums: Any, differences: Any) -> None:
    i = item.get_id(0)
    x, y, z = a[2 * i], a[2 * i + 1], a[0]
    sums[i] = (x - y) * (x - y) + (x - z) * (x - y)
    differences[i] = (x + y) * (x - z) - (x + y) * (x + z)


@fq.kernel
def of_rows(item: fq.Item, u: Any, v: Any, w: Any, first: Any, second: Any) -> None:
    """What is the same for a row is computed once, beside the vectors."""
    i, j = item.get_id(0), item.get_id(1)
    first[i, j] = (u[i] + v[i]) * u.dtype.type(0.7) + w[j]
    second[i, j] = ((u[i] - v[i]) * u.dtype.type(0.7)) * w[j]


@fq.kernel
def upside_down(item: fq.Item, a: Any, b: Any) -> None:
    """Needs all of the kernel before it."""
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] += a[a.shape[0] - 1 - i, j]


def expected(name: str, a: Array) -> tuple[Array, Array]:
    """By NumPy, which rounds each operation."""
    x, y, z, c = a[::2], a[1::2], a[0], a.dtype.type(0.7)
    match name:
        case "by_constants":
            return (x + y) * c, (x - y) * c
        case "by_variables":
            return z * (x + y), -(x - y) * z
        case "halves":
            return (x + y) / 2, (x - y) / 2
        case _:
            return (
                (x - y) * (x - y) + (x - z) * (x - y),
                (x + y) * (x - z) - (x + y) * (x + z),
            )


def same_bits(found: Sequence[Array], wanted: Sequence[Array]) -> bool:
    return all(f.tobytes() == w.tobytes() for f, w in zip(found, wanted, strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [by_constants, by_variables, halves, squares])
def test_whatever_is_left_over_beside_vectors(
    queue: fq.FusionQueue, kernel: fq.Kernel, dtype: type
) -> None:
    for size in SIZES:
        a = (np.random.default_rng(size).random(2 * size) * 7).astype(dtype)
        if kernel is halves:
            a[: size // 2] *= np.finfo(dtype).tiny
        outputs = [fq.Buffer(size, dtype) for _ in range(2)]
        queue.submit(kernel, size, fq.Buffer(a), *outputs)
        found = [output.numpy() for output in outputs]
        assert same_bits(found, expected(kernel.__name__, a)), size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
def test_in_lists(queue: fq.FusionQueue, strategy: Any, dtype: type) -> None:
    for shape in ROWS:
        rng = np.random.default_rng(3)
        u, v, w = ((rng.random(n) * 5).astype(dtype) for n in (shape[0], shape[0], shape[1]))
        given = [fq.Buffer(x) for x in (u, v, w)]
        first, second = (fq.Buffer(np.zeros(shape, dtype)) for _ in range(2))
        with fq.fusion(queue, strategy=strategy, barriers="none"):
            queue.submit(of_rows, shape, *given, first, second)
            queue.submit(upside_down, shape, first, second)
        c = dtype(0.7)
        above = ((u + v) * c)[:, None] + w
        below = (((u - v) * c)[:, None] * w) + above[::-1]
        assert same_bits([first.numpy(), second.numpy()], [above, below]), shape
