"""Scaled vector sums, after the BLAS: ``x``, ``y`` and ``out`` have one shape ``(n,)`` and one
dtype; ``alpha`` and ``beta`` are scalars; the range is ``n``."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, Scalar, reference_for

DTYPES = ("int32", "int64", *FLOATING)


@fq.kernel
def scale(item: fq.Item, alpha: Scalar, x: Array, out: Array) -> None:
    """``out = alpha · x``."""
    i = item.get_id(0)
    out[i] = alpha * x[i]


@reference_for(scale, dtypes=DTYPES, scalars={"alpha": 3})
def scale_reference(alpha: Scalar, x: Array, out: Array) -> None:
    np.multiply(alpha, x, out=out)


@fq.kernel
def scale_in_place(item: fq.Item, alpha: Scalar, x: Array) -> None:
    """``x = alpha · x`` (BLAS scal)."""
    i = item.get_id(0)
    x[i] = alpha * x[i]


@reference_for(scale_in_place, dtypes=DTYPES, scalars={"alpha": 3})
def scale_in_place_reference(alpha: Scalar, x: Array) -> None:
    np.multiply(alpha, x, out=x)


@fq.kernel
def axpy(item: fq.Item, alpha: Scalar, x: Array, y: Array) -> None:
    """``y = alpha · x + y`` (BLAS axpy)."""
    i = item.get_id(0)
    y[i] = alpha * x[i] + y[i]


@reference_for(axpy, dtypes=FLOATING, scalars={"alpha": 2.5})
def axpy_reference(alpha: Scalar, x: Array, y: Array) -> None:
    np.add(alpha * x, y, out=y)


@fq.kernel
def xpay(item: fq.Item, alpha: Scalar, x: Array, y: Array) -> None:
    """``y = x + alpha · y``, the update of a conjugate-gradient direction."""
    i = item.get_id(0)
    y[i] = x[i] + alpha * y[i]


@reference_for(xpay, dtypes=FLOATING, scalars={"alpha": -0.75})
def xpay_reference(alpha: Scalar, x: Array, y: Array) -> None:
    np.add(x, alpha * y, out=y)


@fq.kernel
def axpby(item: fq.Item, alpha: Scalar, x: Array, beta: Scalar, y: Array) -> None:
    """``y = alpha · x + beta · y``."""
    i = item.get_id(0)
    y[i] = alpha * x[i] + beta * y[i]


@reference_for(axpby, dtypes=FLOATING, scalars={"alpha": 2.5, "beta": -0.1})
def axpby_reference(alpha: Scalar, x: Array, beta: Scalar, y: Array) -> None:
    np.add(alpha * x, beta * y, out=y)


@fq.kernel
def weighted_sum(
    item: fq.Item, alpha: Scalar, x: Array, beta: Scalar, y: Array, out: Array
) -> None:
    """``out = alpha · x + beta · y`` (waxpby)."""
    i = item.get_id(0)
    out[i] = alpha * x[i] + beta * y[i]


@reference_for(weighted_sum, dtypes=FLOATING, scalars={"alpha": 2.5, "beta": -0.1})
def weighted_sum_reference(alpha: Scalar, x: Array, beta: Scalar, y: Array, out: Array) -> None:
    np.add(alpha * x, beta * y, out=out)
