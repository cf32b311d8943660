"""Loops over rows that load and store the same elements, by work-groups that each do some rows: the
bits of launches, and of the reference backend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import is_whole, one_in

pytestmark = pytest.mark.usefixtures("group_functions")

GROUP = 32
ROWS = 9


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
def distances(item: fq.NdItem, x, top, out, total):
    """Stores what it loads again at once."""
    i, own = item.get_global_id(0), item.get_local_id(1)
    value = x.dtype.type(0)
    for j in range(own, x.shape[1], GROUP):
        out[i, j] = top[i] - x[i, j]
        value += out[i, j]
    value = fq.reduce_over_group(item.get_group(), value, "add")
    if own == 0:
        total[i] = value


@fq.kernel
def scale(item: fq.Item, total, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = out[i, j] * total[i]


@fq.kernel
def weigh(item: fq.Item, gain, bias, x, out):
    i, j = item.get_linear_id() // x.shape[1], item.get_linear_id() % x.shape[1]
    out[i, j] = (x[i, j] + out[i, j]) * gain[j] - bias[j]


@fq.kernel
def turned(item: fq.Item, x, out):
    """Of what other work-items have stored."""
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = x[i, x.shape[1] - 1 - j]


@fq.kernel
def in_place(item: fq.NdItem, x, total):
    """All of a work-group load an element that one of them stores to; a loop behind stores to
    elements of others, a last one to its own."""
    i, own = item.get_global_id(0), item.get_local_id(1)
    first = x[i, 0]
    value = x.dtype.type(0)
    for j in range(own, x.shape[1], GROUP):
        value += x[i, j]
    value = fq.reduce_over_group(item.get_group(), value, "add")
    for j in range(own, x.shape[1], GROUP):
        x[i, j] = x[i, j] + first
    if own == 0:
        total[i] = value
    fq.group_barrier(item.get_group())
    for j in range(own, x.shape[1], GROUP):
        x[i, x.shape[1] - 1 - j] = x[i, x.shape[1] - 1 - j] + x.dtype.type(1)
    fq.group_barrier(item.get_group())
    for j in range(own, x.shape[1], GROUP):
        x[i, j] = x[i, j] + total[i]


@fq.kernel
def twice(item: fq.NdItem, x, out):
    """Two loops over its row, the second one of them the shorter."""
    i, own = item.get_global_id(0), item.get_local_id(1)
    for j in range(own, x.shape[1], GROUP):
        out[i, j] = x[i, j] + x[i, j]
    for j in range(own, out.shape[1], GROUP):
        out[i, j] = out[i, j] + x[i, j] if j % 3 > 0 else x[i, j]


def softmax(queue: fq.FusionQueue, x, y, top, total, gain, bias) -> None:
    space = fq.NdRange((ROWS, GROUP), (1, GROUP))
    queue.submit(maxima, space, x, top)
    queue.submit(distances, space, x, top, y, total)
    queue.submit(scale, y.shape, total, y)


def norm(queue: fq.FusionQueue, x, y, top, total, gain, bias) -> None:
    softmax(queue, x, y, top, total, gain, bias)
    queue.submit(weigh, ROWS * x.shape[1], gain, bias, x, y)
    queue.submit(scale, y.shape, top, y)


def by_others(queue: fq.FusionQueue, x, y, top, total, gain, bias) -> None:
    space = fq.NdRange((ROWS, GROUP), (1, GROUP))
    queue.submit(in_place, space, x, total)
    queue.submit(turned, y.shape, x, y)
    queue.submit(scale, y.shape, total, x)
    queue.submit(weigh, ROWS * x.shape[1], gain, bias, x, y)


def shorter(queue: fq.FusionQueue, x, y, top, total, gain, bias) -> None:
    space = fq.NdRange((ROWS, GROUP), (1, GROUP))
    queue.submit(twice, space, y, x)
    queue.submit(scale, x.shape, total, x)


PROGRAMS = softmax, norm, by_others, shorter
DTYPES = "float32", "float64", "int16"
COLUMNS = 3, 4 * GROUP - 1, 4 * GROUP, 5 * GROUP + 7, 9 * GROUP, 70 * GROUP + 1


def run(
    queue: fq.FusionQueue, program: Callable[..., None], strategy: str, columns: int, dtype: str
) -> tuple[list[np.ndarray], fq.Report]:
    rng = np.random.default_rng(columns)
    shapes = [(ROWS, columns), (ROWS, columns), ROWS, ROWS, columns, columns]
    arrays = [fq.Buffer(rng.integers(0, 7, shape).astype(dtype)) for shape in shapes]
    with fq.fusion(queue, strategy=strategy) as f:
        program(queue, *arrays)
    f.event.wait()
    return [np.array(array.numpy()) for array in arrays], f.report


CASES = [(p, c, dtype) for p in range(4) for c in range(6) for dtype in range(3)]


@pytest.mark.parametrize(
    "program, columns, dtype",
    [
        pytest.param(PROGRAMS[p], COLUMNS[c], DTYPES[d], id=f"{PROGRAMS[p].__name__}-{c}-{d}")
        for p, c, d in CASES
        if is_whole() or ((p + c + d) % 3 == 0 and (p + c) % 2 == 0)
    ],
)
def test_bits_are_those_of_launches_and_of_the_reference_backend(
    queue: fq.FusionQueue, program: Callable[..., None], columns: int, dtype: str
) -> None:
    with fq.FusionQueue("reference") as reference:
        expected, _ = run(reference, program, "unfused", columns, dtype)
    strategies = ("unfused", "fused", "sequence", "auto")
    for strategy in one_in(2, strategies, first=COLUMNS.index(columns) // 2 % 2):
        found, _ = run(queue, program, strategy, columns, dtype)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize("columns", (9 * GROUP, 21 * GROUP + 3))
def test_replays_and_trials_have_the_same_bits(queue: fq.FusionQueue, columns: int) -> None:
    """Of a list that is run again, measured, and checked access by access."""
    with fq.FusionQueue("reference") as reference:
        expected, _ = run(reference, norm, "unfused", columns, "float32")
    for options in ({"strategy": "fused"}, {"tune": True}, {"check": True, "strategy": "fused"}):
        rng = np.random.default_rng(columns)
        shapes = [(ROWS, columns), (ROWS, columns), ROWS, ROWS, columns, columns]
        arrays = [fq.Buffer(rng.integers(0, 7, shape).astype("float32")) for shape in shapes]
        with fq.fusion(queue, **options) as f:
            norm(queue, *arrays)
        f.event.wait()
        if options == {"strategy": "fused"}:  # it reads nothing that it writes
            f.replay().wait()
        for one, other in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(one.numpy().view(np.uint8), other.view(np.uint8))
