"""Comparisons and selections.  All arrays have one shape ``(n,)``; the range is ``n``."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import SIGNED, Array, Scalar, reference_for

TO_BOOL = {"out": "bool"}


@fq.kernel
def less(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a < b``, a bool array; any numeric dtype."""
    i = item.get_id(0)
    out[i] = a[i] < b[i]


@reference_for(less, array_dtypes=TO_BOOL)
def less_reference(a: Array, b: Array, out: Array) -> None:
    np.less(a, b, out=out)


@fq.kernel
def greater_equal(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a >= b``, a bool array; any numeric dtype."""
    i = item.get_id(0)
    out[i] = a[i] >= b[i]


@reference_for(greater_equal, array_dtypes=TO_BOOL)
def greater_equal_reference(a: Array, b: Array, out: Array) -> None:
    np.greater_equal(a, b, out=out)


@fq.kernel
def equal(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a == b``, a bool array; any numeric dtype."""
    i = item.get_id(0)
    out[i] = a[i] == b[i]


@reference_for(equal, array_dtypes=TO_BOOL)
def equal_reference(a: Array, b: Array, out: Array) -> None:
    np.equal(a, b, out=out)


@fq.kernel
def where(item: fq.Item, condition: Array, a: Array, b: Array, out: Array) -> None:
    """``out = a if condition else b``; ``condition`` is bool, the others any numeric dtype."""
    i = item.get_id(0)
    out[i] = a[i] if condition[i] else b[i]


@reference_for(where, array_dtypes={"condition": "bool"})
def where_reference(condition: Array, a: Array, b: Array, out: Array) -> None:
    out[...] = np.where(condition, a, b)


@fq.kernel
def clamp(item: fq.Item, low: Scalar, high: Scalar, x: Array, out: Array) -> None:
    """``out = min(max(x, low), high)``; any numeric dtype, NaN stays NaN."""
    i = item.get_id(0)
    out[i] = np.minimum(np.maximum(x[i], low), high)


@reference_for(clamp, scalars={"low": 1, "high": 3})
def clamp_reference(low: Scalar, high: Scalar, x: Array, out: Array) -> None:
    np.minimum(np.maximum(x, low), high, out=out)


@fq.kernel
def threshold(item: fq.Item, limit: Scalar, value: Scalar, x: Array, out: Array) -> None:
    """``out = x if x > limit else value``; signed integers and floats."""
    i = item.get_id(0)
    out[i] = x[i] if x[i] > limit else value


@reference_for(threshold, dtypes=SIGNED, scalars={"limit": 1, "value": -2})
def threshold_reference(limit: Scalar, value: Scalar, x: Array, out: Array) -> None:
    out[...] = np.where(x > limit, x, np.asarray(value, dtype=x.dtype))
