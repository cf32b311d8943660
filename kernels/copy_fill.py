"""Copies and fills.  The arrays have one shape ``(n,)``; the range is ``n``."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import NUMERIC, Array, Scalar, reference_for


@fq.kernel
def copy(item: fq.Item, x: Array, out: Array) -> None:
    """``out = x``, converted to ``out``'s dtype; any dtypes."""
    i = item.get_id(0)
    out[i] = x[i]


@reference_for(copy, dtypes=("bool", *NUMERIC))
def copy_reference(x: Array, out: Array) -> None:
    out[...] = x


@fq.kernel
def fill(item: fq.Item, value: Scalar, out: Array) -> None:
    """``out = value``; any numeric dtype."""
    i = item.get_id(0)
    out[i] = value


@reference_for(fill, scalars={"value": 7})
def fill_reference(value: Scalar, out: Array) -> None:
    out[...] = value


@fq.kernel
def iota(item: fq.Item, start: Scalar, step: Scalar, out: Array) -> None:
    """``out[i] = start + i · step``; numeric dtypes of 32 bits and more."""
    i = item.get_id(0)
    out[i] = start + i * step


@reference_for(
    iota,
    dtypes=("int32", "int64", "float32", "float64"),
    scalars={"start": 5, "step": -3},
)
def iota_reference(start: Scalar, step: Scalar, out: Array) -> None:
    out[...] = start + np.arange(out.shape[0]) * step


@fq.kernel
def reverse(item: fq.Item, x: Array, out: Array) -> None:
    """``out[i] = x[n - 1 - i]``; any dtype."""
    i = item.get_id(0)
    out[i] = x[item.get_range(0) - 1 - i]


@reference_for(reverse, dtypes=("bool", *NUMERIC))
def reverse_reference(x: Array, out: Array) -> None:
    out[...] = x[::-1]
