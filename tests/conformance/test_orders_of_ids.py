"""Kernels that take the first id for the last index, that divide a linear id, that make an id of a
work-group's and the local one, or that are over staggered grids: whichever way they run, the bits
are those of the reference backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusionq as fq

pytestmark = pytest.mark.usefixtures("printed")

SHAPES = ((70, 64), (33, 130))


@fq.kernel
def turned(item: fq.Item, a, c):
    x, y = item.get_id(0), item.get_id(1)
    c[y, x] = a[y, x] * 2 + x - 3 * y


@fq.kernel
def inside(item: fq.Item, a, c):
    x, y = item.get_id(0), item.get_id(1)
    if 0 < x < a.shape[1] - 1 and 0 < y < a.shape[0] - 1:
        c[y, x] = a[y, x - 1] + 2 * a[y, x + 1] + 3 * a[y - 1, x] + 5 * a[y + 1, x]
    else:
        c[y, x] = -a[y, x]


@fq.kernel
def rows(item: fq.Item, a, c):
    y, x = item.get_id(0), item.get_id(1)
    c[y, x] = a[y, x] * 5 + x


@fq.kernel
def divided(item: fq.Item, m, a, c):
    n = item.get_id(0)
    y, x = n // m, n % m
    if x > 0 and x < m - 1 and y > 0:
        c[y, x] = a[y, x - 1] - a[y - 1, x] * 3 + a[y, x + 1]
    else:
        c[y, x] = a[y, x] + y - x


@fq.kernel
def remainders(item: fq.Item, a, c):
    n = item.get_id(0)
    y, x = n // a.shape[1], n % a.shape[1]
    c[y, x] = max(a[y, x], a[0, n % a.shape[1]])


@fq.kernel
def placed(item: fq.NdItem, a, c):
    n = item.get_group().get_group_id(0) * item.get_local_range(0) + item.get_local_id(0)
    if n < a.shape[1]:
        for y in range(a.shape[0]):
            c[y, n] = a[y, n] + n


@fq.kernel
def fluxes(item: fq.Item, a, dy, dx, c):
    y, x = item.get_id(0), item.get_id(1)
    if c[y, x] < -40:
        return
    slope = a[y + dy, x + dx] - a[y, x]
    if slope * a[y, x] > 0:
        slope = 0
    c[y, x] = slope


@fq.kernel
def first_row(item: fq.Item, a, c):
    x = item.get_id(0)
    c[0, x] = a[x] * 3


@fq.kernel
def added(item: fq.Item, a, c):
    y, x = item.get_id(0), item.get_id(1)
    c[y, x] += a[x, y]


@fq.kernel
def balanced(item: fq.Item, by_rows, by_columns, c):
    y, x = item.get_id(0), item.get_id(1)
    c[y, x] += by_rows[y, x] + by_columns[y, x]


def first_ids(queue: fq.FusionQueue, a: Any, b: Any) -> None:
    shape = (a.shape[1], a.shape[0])
    queue.submit(turned, shape, a, b)
    queue.submit(inside, shape, b, a)
    queue.submit(rows, a.shape, a, b)
    queue.submit(inside, shape, b, a)


def linear_ids(queue: fq.FusionQueue, a: Any, b: Any) -> None:
    count = a.shape[0] * a.shape[1]
    queue.submit(divided, count, a.shape[1], a, b)
    queue.submit(remainders, count, b, a)
    queue.submit(divided, count - 7, a.shape[1], a, b)


def group_ids(queue: fq.FusionQueue, a: Any, b: Any) -> None:
    items = fq.NdRange(-(-a.shape[1] // 32) * 32, 32)
    queue.submit(placed, items, a, b)
    queue.submit(placed, items, b, a)


def staggered_grids(queue: fq.FusionQueue, a: Any, b: Any) -> None:
    n, m = a.shape
    columns, rows = (fq.Buffer(np.zeros(s, a.dtype)) for s in ((n, m - 1), (n - 1, m)))
    queue.submit(fluxes, columns.shape, a, 0, 1, columns)
    queue.submit(fluxes, rows.shape, a, 1, 0, rows)
    queue.submit(balanced, (n - 1, m - 1), rows, columns, b)
    queue.submit(fluxes, rows.shape, b, 1, 0, rows)
    queue.submit(fluxes, columns.shape, b, 0, 1, columns)
    queue.submit(first_row, m, fq.Buffer(np.arange(m + 1)), rows)
    queue.submit(balanced, (n - 1, m - 1), rows, columns, a)


def grids_by_both_orders(queue: fq.FusionQueue, a: Any, b: Any) -> None:
    """Independent submissions, over ranges none of which holds the others in the order of rows."""
    n, m = a.shape
    grid, other = (fq.Buffer(np.arange(n * m).reshape(m, n) + k) for k in range(2))
    queue.submit(turned, (m, n), a, b)
    queue.submit(rows, (m, n), grid, other)
    queue.submit(rows, (m, n), other, grid)
    queue.submit(turned, (m, n), b, a)
    queue.submit(added, a.shape, grid, b)


@pytest.mark.parametrize(
    "submit",
    [first_ids, linear_ids, group_ids, staggered_grids, grids_by_both_orders],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel", "overlap"])
def test_the_bits_are_the_same(
    queue: fq.FusionQueue, submit: Callable[..., None], strategy: Any
) -> None:
    for shape in SHAPES:
        values = np.random.default_rng(shape).integers(-50, 50, shape)
        found = []
        with fq.FusionQueue("reference") as reference:
            for each, asked in ((reference, "unfused"), (queue, strategy)):
                a, b = fq.Buffer(values), fq.Buffer(values + 1)
                with fq.fusion(each, strategy=asked):
                    submit(each, a, b)
                found.append((a.numpy().tobytes(), b.numpy().tobytes()))
        assert found[0] == found[1], shape
