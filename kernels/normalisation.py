"""Normalisation of vectors and of the rows of matrices, from sums that ``row_reductions`` and
``slabs`` make.  The range is the shape of ``out``."""

from __future__ import annotations

import math

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, reference_for
from fusionq.kernels.reductions import in_one
from fusionq.kernels.row_reductions import one_a_row


@fq.kernel
def standardise(item: fq.Item, x: Array, mean: Array, scale: Array, out: Array) -> None:
    """``out = (x - mean) · scale`` for ``x`` ``(n,)``; ``mean`` and ``scale``, the inverse
    standard deviation, ``(1,)``."""
    i = item.get_id(0)
    out[i] = (x[i] - mean[0]) * scale[0]


@reference_for(standardise, dtypes=FLOATING, shapes={"mean": in_one, "scale": in_one})
def standardise_reference(x: Array, mean: Array, scale: Array, out: Array) -> None:
    np.multiply(x - mean, scale, out=out)


@fq.kernel
def rms_normalise(item: fq.Item, x: Array, scale: Array, gain: Array, out: Array) -> None:
    """``out = x · scale · gain`` for ``x`` and ``gain`` ``(n,)``; ``scale``, the inverse root
    mean square, ``(1,)``.

    Source: Zhang, Sennrich, "Root Mean Square Layer Normalization", 2019.
    """
    i = item.get_id(0)
    out[i] = x[i] * scale[0] * gain[i]


@reference_for(rms_normalise, dtypes=FLOATING, shapes={"scale": in_one})
def rms_normalise_reference(x: Array, scale: Array, gain: Array, out: Array) -> None:
    np.multiply(x * scale, gain, out=out)


@fq.kernel
def rms_normalise_rows(item: fq.Item, x: Array, scales: Array, gain: Array, out: Array) -> None:
    """``rms_normalise`` for the rows of ``x`` ``(rows, columns)``; ``scales`` ``(rows,)``,
    ``gain`` ``(columns,)``."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = x[row, column] * scales[row] * gain[column]


@reference_for(rms_normalise_rows, ndim=2, dtypes=FLOATING, axes={"scales": (0,), "gain": (1,)})
def rms_normalise_rows_reference(x: Array, scales: Array, gain: Array, out: Array) -> None:
    np.multiply(x * scales[:, np.newaxis], gain, out=out)


@fq.kernel
def layer_normalise_rows(
    item: fq.Item, x: Array, means: Array, scales: Array, gain: Array, bias: Array, out: Array
) -> None:
    """``out = (x - mean) · scale · gain + bias`` for the rows of ``x`` ``(rows, columns)``;
    ``means`` and ``scales``, the inverse standard deviations, ``(rows,)``; ``gain`` and ``bias``
    ``(columns,)``.

    Source: Ba, Kiros, Hinton, "Layer Normalization", 2016.
    """
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = (x[row, column] - means[row]) * scales[row] * gain[column] + bias[column]


@reference_for(
    layer_normalise_rows, ndim=2, dtypes=FLOATING,
    axes={"means": (0,), "scales": (0,), "gain": (1,), "bias": (1,)},
)  # fmt: skip
def layer_normalise_rows_reference(
    x: Array, means: Array, scales: Array, gain: Array, bias: Array, out: Array
) -> None:
    np.add((x - means[:, np.newaxis]) * scales[:, np.newaxis] * gain, bias, out=out)


@fq.kernel
def row_exponentials(item: fq.Item, x: Array, maxima: Array, out: Array) -> None:
    """``out = exp(x - maximum)`` for the rows of ``x`` ``(rows, columns)`` and their ``maxima``
    ``(rows,)``: a softmax's numerators, none above 1."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = math.exp(x[row, column] - maxima[row])


@reference_for(row_exponentials, ndim=2, dtypes=FLOATING, shapes={"maxima": one_a_row}, ulps=4)
def row_exponentials_reference(x: Array, maxima: Array, out: Array) -> None:
    np.exp(x - maxima[:, np.newaxis], out=out)


@fq.kernel
def divide_rows(item: fq.Item, x: Array, sums: Array, out: Array) -> None:
    """``out = x / sums`` for the rows of ``x`` ``(rows, columns)`` and ``sums`` ``(rows,)``."""
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = x[row, column] / sums[row]


@reference_for(divide_rows, ndim=2, dtypes=FLOATING, shapes={"sums": one_a_row})
def divide_rows_reference(x: Array, sums: Array, out: Array) -> None:
    np.divide(x, sums[:, np.newaxis], out=out)
