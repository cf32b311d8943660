"""The element-wise kernels of the cases, as one writes them for numba-dpex.

Imported by ``dpex_child.py`` in another environment.  Literals are float32, because numba takes
``float32 * 0.5`` for a float64.
"""

import math
from collections.abc import Callable
from typing import Any

import numba_dpex
import numpy as np
from numba_dpex.kernel_api import Item

kernel: Callable[[Callable[..., None]], Any] = numba_dpex.kernel
ZERO, ONE = np.float32(0), np.float32(1)


@kernel
def mul(item: Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@kernel
def sub(item: Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] - b[i]


@kernel
def multiply(item: Item, a: Any, b: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@kernel
def weighted_sum(item: Item, alpha: Any, x: Any, beta: Any, y: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = alpha * x[i] + beta * y[i]


@kernel
def logistic(item: Item, rate: Any, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = rate * x[i] * (ONE - x[i])


@kernel
def softplus(item: Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = max(x[i], ZERO) + math.log1p(math.exp(-abs(x[i])))


@kernel
def hyperbolic_tangent(item: Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = math.tanh(x[i])
