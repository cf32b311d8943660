"""Reductions of the rows of a matrix, without work-group barriers.

First a kernel over ``(rows, LANES)``: a work-item takes every LANES-th element of its row, so that
neighbouring work-items read neighbouring elements, and writes a partial result ``(rows, LANES)``.
Then a kernel over ``(rows,)`` combines them.  Floating sums depend on the order of adding up;
integers wrap.
"""

from __future__ import annotations

import math

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, Extents, Scalar, reference_for
from fusionq.kernels.reductions import least

LANES = 16
"""Work-items that share a row."""
SUMMED = ("int32", "int64", *FLOATING)


def one_a_lane(extents: Extents) -> Extents:
    """The range over a matrix's rows, and the shape of its partial results."""
    return (extents[0], LANES)


def one_a_row(extents: Extents) -> Extents:
    """The range that combines partial results."""
    return (extents[0],)


def in_lanes(x: Array, fill: Scalar) -> Array:
    """``x`` ``(rows, columns)`` as ``(rows, elements of a lane, LANES)``, filled up."""
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % LANES)), constant_values=fill)
    return padded.reshape(x.shape[0], padded.shape[1] // LANES, LANES)


@fq.kernel
def row_sums(item: fq.Item, x: Array, partial: Array) -> None:
    """Partial sums of the rows of ``x`` ``(rows, columns)``."""
    row = item.get_id(0)
    lane = item.get_id(1)
    total = x.dtype.type(0)
    for column in range(lane, x.shape[1], LANES):
        total += x[row, column]
    partial[row, lane] = total


@reference_for(
    row_sums, ndim=2, dtypes=SUMMED, range_of=one_a_lane, shapes={"partial": one_a_lane},
    reorders=True,
)  # fmt: skip
def row_sums_reference(x: Array, partial: Array) -> None:
    in_lanes(x, 0).sum(axis=1, dtype=x.dtype, out=partial)


@fq.kernel
def row_square_sums(item: fq.Item, x: Array, partial: Array) -> None:
    """Partial sums of the squares of the rows of ``x`` ``(rows, columns)``."""
    row = item.get_id(0)
    lane = item.get_id(1)
    total = x.dtype.type(0)
    for column in range(lane, x.shape[1], LANES):
        total += x[row, column] * x[row, column]
    partial[row, lane] = total


@reference_for(
    row_square_sums, ndim=2, dtypes=SUMMED, range_of=one_a_lane, shapes={"partial": one_a_lane},
    reorders=True,
)  # fmt: skip
def row_square_sums_reference(x: Array, partial: Array) -> None:
    row_sums_reference(x * x, partial)


@fq.kernel
def row_deviations(item: fq.Item, x: Array, means: Array, partial: Array) -> None:
    """Partial sums of ``(x - mean)²`` of the rows of ``x`` ``(rows, columns)``, with ``means``
    ``(rows,)``."""
    row = item.get_id(0)
    lane = item.get_id(1)
    total = x.dtype.type(0)
    for column in range(lane, x.shape[1], LANES):
        distance = x[row, column] - means[row]
        total += distance * distance
    partial[row, lane] = total


@reference_for(
    row_deviations, ndim=2, dtypes=FLOATING, range_of=one_a_lane,
    shapes={"means": one_a_row, "partial": one_a_lane}, reorders=True,
)  # fmt: skip
def row_deviations_reference(x: Array, means: Array, partial: Array) -> None:
    row_square_sums_reference(x - means[:, np.newaxis], partial)


@fq.kernel
def row_maxima(item: fq.Item, x: Array, partial: Array) -> None:
    """Partial maxima of the rows of ``x`` ``(rows, columns)``; NaN wins."""
    row = item.get_id(0)
    lane = item.get_id(1)
    greatest = x.dtype.type(least(x))
    for column in range(lane, x.shape[1], LANES):
        greatest = np.maximum(greatest, x[row, column])
    partial[row, lane] = greatest


@reference_for(
    row_maxima, ndim=2, dtypes=SUMMED, range_of=one_a_lane, shapes={"partial": one_a_lane}
)
def row_maxima_reference(x: Array, partial: Array) -> None:
    in_lanes(x, least(x)).max(axis=1, initial=least(x), out=partial)


@fq.kernel
def combine_sums(item: fq.Item, partial: Array, out: Array) -> None:
    """``out`` ``(rows,)``: the sums of the rows of ``partial`` ``(rows, parts)``."""
    row = item.get_id(0)
    total = partial.dtype.type(0)
    for part in range(partial.shape[1]):
        total += partial[row, part]
    out[row] = total


@reference_for(
    combine_sums, ndim=2, dtypes=SUMMED, range_of=one_a_row, shapes={"out": one_a_row},
    reorders=True,
)  # fmt: skip
def combine_sums_reference(partial: Array, out: Array) -> None:
    partial.sum(axis=1, dtype=partial.dtype, out=out)


@fq.kernel
def combine_maxima(item: fq.Item, partial: Array, out: Array) -> None:
    """``out`` ``(rows,)``: the maxima of the rows of ``partial`` ``(rows, parts)``; NaN wins."""
    row = item.get_id(0)
    greatest = partial.dtype.type(least(partial))
    for part in range(partial.shape[1]):
        greatest = np.maximum(greatest, partial[row, part])
    out[row] = greatest


@reference_for(combine_maxima, ndim=2, dtypes=SUMMED, range_of=one_a_row, shapes={"out": one_a_row})
def combine_maxima_reference(partial: Array, out: Array) -> None:
    partial.max(axis=1, initial=least(partial), out=out)


@fq.kernel
def combine_means(item: fq.Item, count: Scalar, partial: Array, out: Array) -> None:
    """``out = Σ partial / count``: the means ``(rows,)`` of rows of ``count`` elements whose sums
    are in ``partial`` ``(rows, parts)``."""
    row = item.get_id(0)
    total = partial.dtype.type(0)
    for part in range(partial.shape[1]):
        total += partial[row, part]
    out[row] = total / count


@reference_for(
    combine_means, ndim=2, dtypes=FLOATING, scalars={"count": 50.0}, range_of=one_a_row,
    shapes={"out": one_a_row}, reorders=True,
)  # fmt: skip
def combine_means_reference(count: Scalar, partial: Array, out: Array) -> None:
    np.divide(partial.sum(axis=1), count, out=out)


@fq.kernel
def combine_inverse_roots(
    item: fq.Item, count: Scalar, epsilon: Scalar, partial: Array, out: Array
) -> None:
    """``out = 1 / √(Σ partial / count + epsilon)``: the inverse standard deviations, or inverse
    root mean squares, ``(rows,)`` of rows of ``count`` elements whose squares' sums are in
    ``partial`` ``(rows, parts)``."""
    row = item.get_id(0)
    total = partial.dtype.type(0)
    for part in range(partial.shape[1]):
        total += partial[row, part]
    out[row] = 1.0 / math.sqrt(total / count + epsilon)


@reference_for(
    combine_inverse_roots, ndim=2, dtypes=FLOATING, scalars={"count": 50.0, "epsilon": 1e-5},
    range_of=one_a_row, shapes={"out": one_a_row}, positive=("partial",), reorders=True,
)  # fmt: skip
def combine_inverse_roots_reference(
    count: Scalar, epsilon: Scalar, partial: Array, out: Array
) -> None:
    np.divide(1.0, np.sqrt(partial.sum(axis=1) / count + epsilon), out=out)


@fq.kernel
def column_sums(item: fq.Item, x: Array, out: Array) -> None:
    """``out`` ``(columns,)``: the sums of the columns of ``x`` ``(rows, columns)``."""
    column = item.get_id(0)
    total = x.dtype.type(0)
    for row in range(x.shape[0]):
        total += x[row, column]
    out[column] = total


def one_a_column(extents: Extents) -> Extents:
    """The range over a matrix's columns."""
    return (extents[1],)


@reference_for(
    column_sums, ndim=2, dtypes=SUMMED, range_of=one_a_column, shapes={"out": one_a_column},
    reorders=True,
)  # fmt: skip
def column_sums_reference(x: Array, out: Array) -> None:
    x.sum(axis=0, dtype=x.dtype, out=out)
