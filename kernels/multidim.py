"""Kernels over two- and three-dimensional ranges.  The last axis is contiguous and fastest."""

from __future__ import annotations

import math

import numpy as np

import fusionq as fq
from fusionq.kernels.activations import SQRT_2_OVER_PI, gelu_tanh_reference
from fusionq.kernels.library import (
    FLOATING,
    NUMERIC,
    Array,
    Extents,
    Scalar,
    reference_for,
)


@fq.kernel
def add_2d(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a + b`` for matrices ``(rows, columns)``; any numeric dtype."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = a[row, column] + b[row, column]


@reference_for(add_2d, ndim=2)
def add_2d_reference(a: Array, b: Array, out: Array) -> None:
    np.add(a, b, out=out)


@fq.kernel
def bias_add(item: fq.Item, x: Array, bias: Array, out: Array) -> None:
    """``out = x + bias`` for ``x`` ``(rows, columns)`` and one bias a column, ``(columns,)``."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = x[row, column] + bias[column]


@reference_for(bias_add, ndim=2, axes={"bias": (1,)})
def bias_add_reference(x: Array, bias: Array, out: Array) -> None:
    np.add(x, bias, out=out)


@fq.kernel
def scale_rows(item: fq.Item, factors: Array, x: Array, out: Array) -> None:
    """``out = factors · x`` for ``x`` ``(rows, columns)`` and one factor a row, ``(rows,)``."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = factors[row] * x[row, column]


@reference_for(scale_rows, ndim=2, axes={"factors": (0,)})
def scale_rows_reference(factors: Array, x: Array, out: Array) -> None:
    np.multiply(factors[:, np.newaxis], x, out=out)


@fq.kernel
def scale_columns(item: fq.Item, factors: Array, x: Array, out: Array) -> None:
    """``out = x · factors`` for ``x`` ``(rows, columns)`` and a factor a column, ``(columns,)``."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = x[row, column] * factors[column]


@reference_for(scale_columns, ndim=2, axes={"factors": (1,)})
def scale_columns_reference(factors: Array, x: Array, out: Array) -> None:
    np.multiply(x, factors, out=out)


@fq.kernel
def gelu_tanh_2d(item: fq.Item, x: Array, out: Array) -> None:
    """``gelu_tanh`` for matrices ``(rows, columns)``; floating dtypes."""
    row = item.get_id(0)
    column = item.get_id(1)
    v = x[row, column]
    out[row, column] = 0.5 * v * (1.0 + math.tanh(SQRT_2_OVER_PI * (v + 0.044715 * v * v * v)))


@reference_for(gelu_tanh_2d, ndim=2, dtypes=FLOATING, ulps=8)
def gelu_tanh_2d_reference(x: Array, out: Array) -> None:
    gelu_tanh_reference(x, out)


@fq.kernel
def outer(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out[i, j] = a[i] · b[j]``: the outer product ``(rows, columns)``; any numeric dtype."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = a[row] * b[column]


@reference_for(outer, ndim=2, axes={"a": (0,), "b": (1,)})
def outer_reference(a: Array, b: Array, out: Array) -> None:
    np.multiply(a[:, np.newaxis], b, out=out)


@fq.kernel
def transpose(item: fq.Item, x: Array, out: Array) -> None:
    """``out[j, i] = x[i, j]`` for ``x`` ``(rows, columns)``, ``out`` ``(columns, rows)``."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[column, row] = x[row, column]


@reference_for(transpose, ndim=2, axes={"out": (1, 0)}, dtypes=("bool", *NUMERIC))
def transpose_reference(x: Array, out: Array) -> None:
    out[...] = x.T


STRIP = 16
"""Elements of a column that one work-item of ``transpose_strips`` moves: a float32 cache line."""


@fq.kernel
def transpose_strips(item: fq.Item, x: Array, out: Array) -> None:
    """``transpose`` in which a work-item moves STRIP elements of one column, so that it writes
    whole cache lines; the range is ``(rows / STRIP rounded up, columns)``."""
    first = STRIP * item.get_id(0)
    column = item.get_id(1)
    for row in range(first, min(first + STRIP, x.shape[0])):
        out[column, row] = x[row, column]


def strips(extents: Extents) -> Extents:
    """The range of ``transpose_strips``."""
    return (-(-extents[0] // STRIP), extents[1])


@reference_for(
    transpose_strips, ndim=2, axes={"out": (1, 0)}, dtypes=("bool", *NUMERIC), range_of=strips
)
def transpose_strips_reference(x: Array, out: Array) -> None:
    out[...] = x.T


@fq.kernel
def copy_2d(item: fq.Item, x: Array, out: Array) -> None:
    """``out = x`` for matrices ``(rows, columns)``, converted to ``out``'s dtype."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = x[row, column]


@reference_for(copy_2d, ndim=2, dtypes=("bool", *NUMERIC))
def copy_2d_reference(x: Array, out: Array) -> None:
    out[...] = x


@fq.kernel
def add_3d(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a + b`` for arrays ``(planes, rows, columns)``; any numeric dtype."""
    plane = item.get_id(0)
    row = item.get_id(1)
    column = item.get_id(2)
    out[plane, row, column] = a[plane, row, column] + b[plane, row, column]


@reference_for(add_3d, ndim=3)
def add_3d_reference(a: Array, b: Array, out: Array) -> None:
    np.add(a, b, out=out)


@fq.kernel
def axpy_3d(item: fq.Item, alpha: Scalar, x: Array, y: Array) -> None:
    """``y = alpha · x + y`` for arrays ``(planes, rows, columns)``; floating dtypes."""
    plane = item.get_id(0)
    row = item.get_id(1)
    column = item.get_id(2)
    y[plane, row, column] = alpha * x[plane, row, column] + y[plane, row, column]


@reference_for(axpy_3d, ndim=3, dtypes=FLOATING, scalars={"alpha": 2.5})
def axpy_3d_reference(alpha: Scalar, x: Array, y: Array) -> None:
    np.add(alpha * x, y, out=y)


@fq.kernel
def scale_planes(item: fq.Item, factors: Array, x: Array, out: Array) -> None:
    """``out = factors · x`` for ``x`` ``(planes, rows, columns)``, one factor a plane."""
    plane = item.get_id(0)
    row = item.get_id(1)
    column = item.get_id(2)
    out[plane, row, column] = factors[plane] * x[plane, row, column]


@reference_for(scale_planes, ndim=3, axes={"factors": (0,)})
def scale_planes_reference(factors: Array, x: Array, out: Array) -> None:
    np.multiply(factors[:, np.newaxis, np.newaxis], x, out=out)
