"""Lists of submissions with dependences across work-groups, of a given size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq

Calls = list[tuple[Any, ...]]


@fq.kernel
def blur(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if 0 < i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i] + a[i + 1]
    else:
        b[i] = a[i]


@fq.kernel
def cross(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
    else:
        b[i, j] = a[i, j]


@fq.kernel
def cube(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    j = item.get_id(1)
    k = item.get_id(2)
    b[i, j, k] = a[i, j, k]
    if i > 0:
        b[i, j, k] += a[i - 1, j, k]
    if k + 1 < a.shape[2]:
        b[i, j, k] += a[i, j, k + 1]


@fq.kernel
def inside(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    k = item.get_id(2) + 1
    b[i, j, k] = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k]
    b[i, j, k] += a[i, j, k - 1] + a[i, j, k + 1]


@fq.kernel
def reverse(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i]


@fq.kernel
def shift(item: fq.Item, a, b, by):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if 0 <= i + by < a.shape[0]:
        b[i] = a[i + by]


@fq.kernel
def every_second(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if 2 * i < a.shape[0]:
        b[i] = a[2 * i]


@fq.kernel
def half(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    b[i] = a[i // 2]


@fq.kernel
def spread(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if 2 * i + 1 < b.shape[0]:
        b[2 * i + 1] = a[i]


@fq.kernel
def transpose(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[j, i]


@fq.kernel
def total(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    for k in range(a.shape[0]):
        b[item.get_id(0)] += a[k]


@fq.kernel
def scale(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    a[i] = a[i] * b[0]


@fq.kernel
def row_sums(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    for k in range(a.shape[1]):
        b[i] += a[i, k]


@fq.kernel
def multipliers(item: fq.Item, t, a, m):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    if i > t:
        m[i, t] = a[i, t] - 3 * a[t, t]


@fq.kernel
def eliminate(item: fq.Item, t, m, a):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    j = item.get_id(1)
    if i > t and j >= t:
        a[i, j] -= m[i, t] * a[t, j]


@fq.kernel
def ring(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    n = a.shape[0]
    up = i - 1 if i > 0 else n - 1
    down = i + 1 if i < n - 1 else 0
    b[i] = a[up] + 2 * a[i] + 3 * a[down]


@fq.kernel
def wheel(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    n = a.shape[0]
    b[i] = a[(i + n - 1) % n] + 2 * a[i] + 3 * a[(i + 1) % n]


@fq.kernel
def inner(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0) + 1
    j = item.get_id(1) + 1
    b[i, j] = a[i - 1, j] + 2 * a[i + 1, j] + 3 * a[i, j - 1] + 5 * a[i, j + 1]


@fq.kernel
def border_rows(item: fq.Item, a):  # type: ignore[no-untyped-def]  # kernel language
    j = item.get_id(0)
    n = a.shape[0]
    a[0, j] = a[n - 2, j]
    a[n - 1, j] = a[1, j]


@fq.kernel
def border_columns(item: fq.Item, a):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    m = a.shape[1]
    a[i, 0] = a[i, m - 2]
    a[i, m - 1] = a[i, 1]


def _array(*shape: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape).copy()


def _pairs(kernel: Any, shape: tuple[int, ...], steps: int, *more: Any) -> Calls:
    a, b = _array(*shape), _array(*shape)
    calls: Calls = []
    for _ in range(steps):
        calls.append((kernel, shape, a, b, *more))
        a, b = b, a
    return calls


def stencil(n: int) -> Calls:
    return _pairs(blur, (n,), 4)


def stencil_2d(n: int) -> Calls:
    return _pairs(cross, (n, n + 2), 3)


def stencil_3d(n: int) -> Calls:
    return _pairs(cube, (min(n, 3), 3, 4), 3)


def inside_3d(n: int) -> Calls:
    """Ranges that differ from the arrays' extents, for all that is known."""
    a, b = _array(n + 2, 4, 5), _array(n + 2, 4, 5)
    return [(inside, (n, 2, 3), a, b), (inside, (n, 2, 3), b, a), (inside, (n, 2, 3), a, b)]


def reversed_copy(n: int) -> Calls:
    return _pairs(reverse, (n,), 3)


def shifted(n: int) -> Calls:
    a, b, c = _array(n), _array(n), _array(n)
    return [(shift, n, a, b, 3), (shift, n, b, c, -2), (shift, n, c, a, 1)]


def strided(n: int) -> Calls:
    a, b, c = _array(n), _array(n), _array(n)
    return [(shift, n, a, b, 1), (every_second, n, b, c), (half, n, c, a), (spread, n, a, b)]


def transposes(n: int) -> Calls:
    a, b, c = _array(n, n), _array(n, n), _array(n, n)
    return [(transpose, (n, n), a, b), (cross, (n, n), b, c), (transpose, (n, n), c, a)]


def sum_then_scale(n: int) -> Calls:
    a, b, c = _array(n), _array(1), _array(n)
    return [(blur, n, c, a), (total, 1, a, b), (scale, n, a, b), (reverse, n, a, c)]


def rows(n: int) -> Calls:
    a, b, c = _array(n, 4), _array(n), _array(n)
    return [(cross, (n, 4), _array(n, 4), a), (row_sums, n, a, b), (reverse, n, b, c)]


def views(n: int) -> Calls:
    a, b = _array(2 * n), _array(n)
    return [
        (reverse, n, a[::2], b),
        (blur, n, b, a[n:]),
        (shift, n, a[:n], b, 1),
        (reverse, n, b, a[n - 1 :: -1]),
    ]


def eliminations(n: int, steps: int = 4) -> Calls:
    a, m = _array(n, n), _array(n, n)
    calls: Calls = []
    for t in range(steps):
        calls += [(multipliers, n, t, a, m), (eliminate, (n, n), t, m, a)]
    return calls


def periodic(n: int) -> Calls:
    return _pairs(ring, (n,), 4)


def remainders(n: int) -> Calls:
    """As ``periodic``, with neighbours that are remainders."""
    return _pairs(wheel, (n,), 4)


def bordered(n: int, steps: int = 3, m: int = 5) -> Calls:
    """Steps over an array whose borders have kernels of their own, of one dimension."""
    a, b = _array(n + 2, m), _array(n + 2, m)
    calls: Calls = []
    for _ in range(steps):
        calls += [(border_columns, n + 2, a), (border_rows, m, a), (inner, (n, m - 2), a, b)]
        a, b = b, a
    return calls


CASES: dict[str, Callable[[int], Calls]] = {
    f.__name__: f
    for f in (
        stencil, stencil_2d, stencil_3d, inside_3d, reversed_copy, shifted, strided, transposes,
        sum_then_scale, rows, views, eliminations, periodic, remainders, bordered,
    )
}  # fmt: skip
