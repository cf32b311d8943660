"""Products of matrices and vectors.

Neighbouring work-items of the last dimension read neighbouring elements, except where a kernel says
otherwise.  Floating sums depend on the order of adding up.
"""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, Extents, reference_for
from fusionq.kernels.row_reductions import (
    LANES,
    one_a_column,
    one_a_lane,
    one_a_row,
    row_sums_reference,
)

DEPTH = 32
"""Rows of the matrix that one work-item of ``vector_matrix_slabs`` takes."""
ROWS = 4
"""Rows that one work-item of ``matrix_multiply_by_rows`` computes."""
DTYPES = ("int32", *FLOATING)


@fq.kernel
def matrix_vector(item: fq.Item, a: Array, x: Array, out: Array) -> None:
    """``out = A x`` for ``a`` ``(rows, columns)``, ``x`` ``(columns,)``, ``out`` ``(rows,)``; a
    work-item takes a row, so neighbours read from different rows: good for few columns."""
    row = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[row, k] * x[k]
    out[row] = total


@reference_for(
    matrix_vector, ndim=2, dtypes=DTYPES, range_of=one_a_row, axes={"x": (1,), "out": (0,)},
    reorders=True,
)  # fmt: skip
def matrix_vector_reference(a: Array, x: Array, out: Array) -> None:
    np.matmul(a, x, out=out)


@fq.kernel
def matrix_vector_lanes(item: fq.Item, a: Array, x: Array, partial: Array) -> None:
    """Partial sums ``(rows, LANES)`` of ``A x`` for ``a`` ``(rows, columns)``, ``x``
    ``(columns,)``; ``combine_sums`` adds them up."""
    row = item.get_id(0)
    lane = item.get_id(1)
    total = a.dtype.type(0)
    for k in range(lane, a.shape[1], LANES):
        total += a[row, k] * x[k]
    partial[row, lane] = total


@reference_for(
    matrix_vector_lanes, ndim=2, dtypes=DTYPES, range_of=one_a_lane, axes={"x": (1,)},
    shapes={"partial": one_a_lane}, reorders=True,
)  # fmt: skip
def matrix_vector_lanes_reference(a: Array, x: Array, partial: Array) -> None:
    row_sums_reference(a * x, partial)


@fq.kernel
def vector_matrix(item: fq.Item, x: Array, a: Array, out: Array) -> None:
    """``out = x A`` for ``x`` ``(rows,)``, ``a`` ``(rows, columns)``, ``out`` ``(columns,)``."""
    column = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += x[k] * a[k, column]
    out[column] = total


@reference_for(
    vector_matrix, ndim=2, dtypes=DTYPES, range_of=one_a_column, axes={"x": (0,), "out": (1,)},
    reorders=True,
)  # fmt: skip
def vector_matrix_reference(x: Array, a: Array, out: Array) -> None:
    np.matmul(x, a, out=out)


def slabs_of_rows(extents: Extents) -> Extents:
    """The range, and the shape of the partial results, of ``vector_matrix_slabs``."""
    return (-(-extents[0] // DEPTH), extents[1])


@fq.kernel
def vector_matrix_slabs(item: fq.Item, x: Array, a: Array, partial: Array) -> None:
    """Partial sums ``(slabs, columns)`` of ``x A``, each over DEPTH rows of ``a``; ``column_sums``
    adds them up.  Reads a large matrix row by row, where ``vector_matrix`` reads it column by
    column."""
    slab = item.get_id(0)
    column = item.get_id(1)
    total = a.dtype.type(0)
    for k in range(slab * DEPTH, min((slab + 1) * DEPTH, a.shape[0])):
        total += x[k] * a[k, column]
    partial[slab, column] = total


@reference_for(
    vector_matrix_slabs, ndim=2, dtypes=DTYPES, range_of=slabs_of_rows, axes={"x": (0,)},
    shapes={"partial": slabs_of_rows}, reorders=True,
)  # fmt: skip
def vector_matrix_slabs_reference(x: Array, a: Array, partial: Array) -> None:
    for slab in range(partial.shape[0]):
        rows = slice(slab * DEPTH, (slab + 1) * DEPTH)
        np.matmul(x[rows], a[rows], out=partial[slab])


def product_range(extents: Extents) -> Extents:
    """The range of a product of (rows, depth) and (depth, columns), from the three extents."""
    return (extents[0], extents[2])


@fq.kernel
def matrix_multiply(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = A B`` for ``a`` ``(rows, depth)``, ``b`` ``(depth, columns)``, ``out``
    ``(rows, columns)``; the range is ``out``'s shape."""
    row = item.get_id(0)
    column = item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    out[row, column] = total


@reference_for(
    matrix_multiply, ndim=3, dtypes=DTYPES, range_of=product_range,
    axes={"a": (0, 1), "b": (1, 2), "out": (0, 2)}, reorders=True,
)  # fmt: skip
def matrix_multiply_reference(a: Array, b: Array, out: Array) -> None:
    np.matmul(a, b, out=out)


def blocks_of_rows(extents: Extents) -> Extents:
    """The range of ``matrix_multiply_by_rows``, from rows, depth and columns."""
    return (-(-extents[0] // ROWS), extents[2])


@fq.kernel
def matrix_multiply_by_rows(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``matrix_multiply`` in which a work-item computes four rows of one column, so that it reads
    an element of ``b`` once for four products; the range is ``(rows / 4 rounded up, columns)``."""
    row = ROWS * item.get_id(0)
    column = item.get_id(1)
    last = a.shape[0] - 1
    row1 = min(row + 1, last)
    row2 = min(row + 2, last)
    row3 = min(row + 3, last)
    total0 = a.dtype.type(0)
    total1 = a.dtype.type(0)
    total2 = a.dtype.type(0)
    total3 = a.dtype.type(0)
    for k in range(a.shape[1]):
        factor = b[k, column]
        total0 += a[row, k] * factor
        total1 += a[row1, k] * factor
        total2 += a[row2, k] * factor
        total3 += a[row3, k] * factor
    out[row, column] = total0
    if row + 1 <= last:
        out[row + 1, column] = total1
    if row + 2 <= last:
        out[row + 2, column] = total2
    if row + 3 <= last:
        out[row + 3, column] = total3


@reference_for(
    matrix_multiply_by_rows, ndim=3, dtypes=DTYPES, range_of=blocks_of_rows,
    axes={"a": (0, 1), "b": (1, 2), "out": (0, 2)}, reorders=True,
)  # fmt: skip
def matrix_multiply_by_rows_reference(a: Array, b: Array, out: Array) -> None:
    matrix_multiply_reference(a, b, out)
