"""Rows of which some work-items do nothing, alone and in lists: every element is as those that do
something leave it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fusionq as fq
from tests.in_turn import one_in

pytestmark = pytest.mark.usefixtures("printed")

ROWS = 40
WIDTHS, LARGE = (1, 15, 16, 17, 33, 64), 2111
"""Of launches, and of those whose work-groups go along rows."""


@fq.kernel
def inside(item: fq.Item, t, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and not (j == 0 or j == t):
        b[i, j] = a[i, j - 1] + 1


@fq.kernel
def returned(item: fq.Item, t, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if j < 3:
        return
    value = a[i, j]
    if j + 2 > t:
        return
    b[i, j] = value + 1


@fq.kernel
def one(item: fq.Item, t, a, b):
    if item.get_id(1) == t:
        b[item.get_id(0), item.get_id(1)] = a[item.get_id(0), 0] + 1


@fq.kernel
def triangle(item: fq.Item, t, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if j <= i + t and 9 - j <= 7:
        b[i, j] = a[i, j] + 1


@fq.kernel
def both(item: fq.Item, t, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if j > 4 and j < t:
        b[i, j] = a[i, j] + 1
    if j < t:
        a[i, j] = i


@fq.kernel
def other_side(item: fq.Item, t, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if j > t:
        b[i, j] = a[i, j] + 1
    else:
        b[i, j] = a[i, j]


@fq.kernel
def but_one(item: fq.Item, t, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if j != t and j != t - 1 and j != 5:
        b[i, j] += a[i, j] + 1


Mask = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
MASKS: dict[fq.Kernel, Mask] = {
    inside: lambda i, j, t: (i > 0) & (j != 0) & (j != t),
    returned: lambda i, j, t: (j >= 3) & (j + 2 <= t),
    one: lambda i, j, t: j == t,
    triangle: lambda i, j, t: (j <= i + t) & (j >= 2),
    both: lambda i, j, t: (j > 4) & (j < t),
    other_side: lambda i, j, t: j >= 0,
    but_one: lambda i, j, t: (j != t) & (j != t - 1) & (j != 5),
}


def stored(kernel: fq.Kernel, a: np.ndarray, b: np.ndarray, t: int) -> np.ndarray:
    i, j = np.indices(a.shape)
    value = a + 1
    if kernel is inside:
        value = np.roll(a, 1, 1) + 1
    elif kernel is one:
        value = np.repeat(a[:, :1], a.shape[1], 1) + 1
    elif kernel is other_side:
        value = np.where(j > t, a + 1, a)
    elif kernel is but_one:
        value = b + a + 1
    return np.where(MASKS[kernel](i, j, t), value, b)


CASES = [
    (width, t)
    for width in (*WIDTHS, LARGE)
    for t in (-(1 << 40), -1, 0, 1, width // 2, width - 2, width - 1, width, 1 << 40)
]


@pytest.mark.parametrize("kernel", MASKS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("strategy", ("unfused", "megakernel", "overlap"))
def test_elements_are_as_work_items_leave_them(
    queue: fq.FusionQueue, target: str, kernel: fq.Kernel, strategy: str
) -> None:
    cases = CASES if target != "reference" else [c for c in CASES if c[0] < LARGE]
    for width, t in one_in(4, cases):
        rng = np.random.default_rng(width)
        a, b = rng.integers(0, 99, (2, ROWS, width)).astype(np.float64)
        want = a.copy(), stored(kernel, a, b, t)
        if kernel is both:
            i, j = np.indices(a.shape)
            want = np.where(j < t, i, a), want[1]
        want = want[0], stored(inside, want[1], want[1], width - 1)
        buffers = [fq.Buffer(x) for x in (a, b, want[1] * 0)]
        with fq.fusion(queue, strategy=strategy):
            queue.submit(kernel, (ROWS, width), t, *buffers[:2])
            queue.submit(copied, (ROWS, width), buffers[1], buffers[2])
            queue.submit(inside, (ROWS, width), width - 1, buffers[1], buffers[2])
        for found, wanted in zip(buffers[::2], want, strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted, f"{width}, {t}")


@fq.kernel
def copied(item: fq.Item, a, b):
    b[item.get_id(0), item.get_id(1)] = a[item.get_id(0), item.get_id(1)]
