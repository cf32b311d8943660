"""Element-wise arithmetic.  All arrays have one shape ``(n,)``; the range is ``n``."""

from __future__ import annotations

import math

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, NUMERIC, SIGNED, Array, reference_for

INTEGERS_AND_FLOATS = tuple(dtype for dtype in NUMERIC if dtype != "float16")


@fq.kernel
def add(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a + b``; any numeric dtype, integers wrap."""
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@reference_for(add)
def add_reference(a: Array, b: Array, out: Array) -> None:
    np.add(a, b, out=out)


@fq.kernel
def subtract(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a - b``; any numeric dtype, integers wrap."""
    i = item.get_id(0)
    out[i] = a[i] - b[i]


@reference_for(subtract)
def subtract_reference(a: Array, b: Array, out: Array) -> None:
    np.subtract(a, b, out=out)


@fq.kernel
def multiply(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a · b``; any numeric dtype, integers wrap."""
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@reference_for(multiply)
def multiply_reference(a: Array, b: Array, out: Array) -> None:
    np.multiply(a, b, out=out)


@fq.kernel
def multiply_add(item: fq.Item, a: Array, b: Array, c: Array, out: Array) -> None:
    """``out = a · b + c``, rounded twice as NumPy does; any numeric dtype, integers wrap."""
    i = item.get_id(0)
    out[i] = a[i] * b[i] + c[i]


@reference_for(multiply_add)
def multiply_add_reference(a: Array, b: Array, c: Array, out: Array) -> None:
    np.add(a * b, c, out=out)


@fq.kernel
def divide(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a / b``; floating dtypes."""
    i = item.get_id(0)
    out[i] = a[i] / b[i]


@reference_for(divide, dtypes=("float16", *FLOATING))
def divide_reference(a: Array, b: Array, out: Array) -> None:
    np.divide(a, b, out=out)


@fq.kernel
def floor_divide(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a // b``, rounded down as Python does; integers and floats."""
    i = item.get_id(0)
    out[i] = a[i] // b[i]


@reference_for(floor_divide, dtypes=INTEGERS_AND_FLOATS)
def floor_divide_reference(a: Array, b: Array, out: Array) -> None:
    np.floor_divide(a, b, out=out)


@fq.kernel
def remainder(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = a % b``, with the divisor's sign as in Python; integers and floats."""
    i = item.get_id(0)
    out[i] = a[i] % b[i]


@reference_for(remainder, dtypes=INTEGERS_AND_FLOATS)
def remainder_reference(a: Array, b: Array, out: Array) -> None:
    np.remainder(a, b, out=out)


@fq.kernel
def negative(item: fq.Item, x: Array, out: Array) -> None:
    """``out = -x``; signed integers and floats."""
    i = item.get_id(0)
    out[i] = -x[i]


@reference_for(negative, dtypes=SIGNED)
def negative_reference(x: Array, out: Array) -> None:
    np.negative(x, out=out)


@fq.kernel
def absolute(item: fq.Item, x: Array, out: Array) -> None:
    """``out = |x|``; any numeric dtype."""
    i = item.get_id(0)
    out[i] = abs(x[i])


@reference_for(absolute)
def absolute_reference(x: Array, out: Array) -> None:
    np.absolute(x, out=out)


@fq.kernel
def square(item: fq.Item, x: Array, out: Array) -> None:
    """``out = x · x``; any numeric dtype, integers wrap."""
    i = item.get_id(0)
    out[i] = x[i] * x[i]


@reference_for(square)
def square_reference(x: Array, out: Array) -> None:
    np.square(x, out=out)


@fq.kernel
def reciprocal(item: fq.Item, x: Array, out: Array) -> None:
    """``out = 1 / x``; floating dtypes."""
    i = item.get_id(0)
    out[i] = 1 / x[i]


@reference_for(reciprocal, dtypes=FLOATING)
def reciprocal_reference(x: Array, out: Array) -> None:
    np.divide(1, x, out=out)


@fq.kernel
def square_root(item: fq.Item, x: Array, out: Array) -> None:
    """``out = √|x|``; floating dtypes."""
    i = item.get_id(0)
    out[i] = math.sqrt(abs(x[i]))


@reference_for(square_root, dtypes=FLOATING)
def square_root_reference(x: Array, out: Array) -> None:
    np.sqrt(np.abs(x), out=out)


@fq.kernel
def exponential(item: fq.Item, x: Array, out: Array) -> None:
    """``out = exp(x)``; floating dtypes."""
    i = item.get_id(0)
    out[i] = math.exp(x[i])


@reference_for(exponential, dtypes=FLOATING, ulps=4)
def exponential_reference(x: Array, out: Array) -> None:
    np.exp(x, out=out)


@fq.kernel
def logarithm(item: fq.Item, x: Array, out: Array) -> None:
    """``out = ln|x|``; floating dtypes."""
    i = item.get_id(0)
    out[i] = math.log(abs(x[i]))


@reference_for(logarithm, dtypes=FLOATING, ulps=4)
def logarithm_reference(x: Array, out: Array) -> None:
    np.log(np.abs(x), out=out)


@fq.kernel
def minimum(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = min(a, b)``; any numeric dtype, NaN wins."""
    i = item.get_id(0)
    out[i] = np.minimum(a[i], b[i])


@reference_for(minimum)
def minimum_reference(a: Array, b: Array, out: Array) -> None:
    np.minimum(a, b, out=out)


@fq.kernel
def maximum(item: fq.Item, a: Array, b: Array, out: Array) -> None:
    """``out = max(a, b)``; any numeric dtype, NaN wins."""
    i = item.get_id(0)
    out[i] = np.maximum(a[i], b[i])


@reference_for(maximum)
def maximum_reference(a: Array, b: Array, out: Array) -> None:
    np.maximum(a, b, out=out)
