"""Activation functions.  ``x`` and ``out`` have one shape ``(n,)`` and one floating dtype; the
range is ``n``."""

from __future__ import annotations

import math

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, Scalar, reference_for

SQRT_HALF = math.sqrt(0.5)
SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)

erf = np.vectorize(math.erf, otypes=[np.float64])


@fq.kernel
def relu(item: fq.Item, x: Array, out: Array) -> None:
    """``out = max(x, 0)``; NaN stays NaN."""
    i = item.get_id(0)
    out[i] = np.maximum(x[i], 0)


@reference_for(relu, dtypes=("int32", "float16", *FLOATING))
def relu_reference(x: Array, out: Array) -> None:
    np.maximum(x, 0, out=out)


@fq.kernel
def leaky_relu(item: fq.Item, slope: Scalar, x: Array, out: Array) -> None:
    """``out = x if x > 0 else slope · x``."""
    i = item.get_id(0)
    out[i] = x[i] if x[i] > 0 else slope * x[i]


@reference_for(leaky_relu, dtypes=FLOATING, scalars={"slope": 0.01})
def leaky_relu_reference(slope: Scalar, x: Array, out: Array) -> None:
    out[...] = np.where(x > 0, x, slope * x)


@fq.kernel
def elu(item: fq.Item, alpha: Scalar, x: Array, out: Array) -> None:
    """``out = x if x > 0 else alpha · (exp(x) - 1)``.

    Source: Clevert, Unterthiner, Hochreiter, "Fast and Accurate Deep Network Learning by
    Exponential Linear Units", 2015.
    """
    i = item.get_id(0)
    out[i] = x[i] if x[i] > 0 else alpha * math.expm1(x[i])


@reference_for(elu, dtypes=FLOATING, scalars={"alpha": 1.5}, ulps=4)
def elu_reference(alpha: Scalar, x: Array, out: Array) -> None:
    out[...] = np.where(x > 0, x, alpha * np.expm1(x))


@fq.kernel
def sigmoid(item: fq.Item, x: Array, out: Array) -> None:
    """``out = 1 / (1 + exp(-x))``."""
    i = item.get_id(0)
    out[i] = 1.0 / (1.0 + math.exp(-x[i]))


@reference_for(sigmoid, dtypes=FLOATING, ulps=4)
def sigmoid_reference(x: Array, out: Array) -> None:
    np.divide(1.0, 1.0 + np.exp(-x), out=out)


@fq.kernel
def hyperbolic_tangent(item: fq.Item, x: Array, out: Array) -> None:
    """``out = tanh(x)``."""
    i = item.get_id(0)
    out[i] = math.tanh(x[i])


@reference_for(hyperbolic_tangent, dtypes=FLOATING, ulps=4)
def hyperbolic_tangent_reference(x: Array, out: Array) -> None:
    np.tanh(x, out=out)


@fq.kernel
def gelu(item: fq.Item, x: Array, out: Array) -> None:
    """``out = x/2 · (1 + erf(x / √2))``, the exact form.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """
    i = item.get_id(0)
    out[i] = 0.5 * x[i] * (1.0 + math.erf(x[i] * SQRT_HALF))


@reference_for(gelu, dtypes=FLOATING, ulps=8)
def gelu_reference(x: Array, out: Array) -> None:
    np.multiply(0.5 * x, 1.0 + erf(x * SQRT_HALF).astype(x.dtype), out=out)


@fq.kernel
def gelu_tanh(item: fq.Item, x: Array, out: Array) -> None:
    """``out = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))``, the usual approximation of
    ``gelu``; same source."""
    i = item.get_id(0)
    v = x[i]
    out[i] = 0.5 * v * (1.0 + math.tanh(SQRT_2_OVER_PI * (v + 0.044715 * v * v * v)))


@reference_for(gelu_tanh, dtypes=FLOATING, ulps=8)
def gelu_tanh_reference(x: Array, out: Array) -> None:
    inner = SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)
    np.multiply(0.5 * x, 1.0 + np.tanh(inner), out=out)


@fq.kernel
def silu(item: fq.Item, x: Array, out: Array) -> None:
    """``out = x / (1 + exp(-x))``, also called swish.

    Source: Elfwing, Uchibe, Doya, "Sigmoid-Weighted Linear Units", 2017.
    """
    i = item.get_id(0)
    out[i] = x[i] / (1.0 + math.exp(-x[i]))


@reference_for(silu, dtypes=FLOATING, ulps=4)
def silu_reference(x: Array, out: Array) -> None:
    np.divide(x, 1.0 + np.exp(-x), out=out)


@fq.kernel
def silu_gate(item: fq.Item, gate: Array, x: Array, out: Array) -> None:
    """``out = silu(gate) · x``, the middle of a SwiGLU layer.

    Source: Shazeer, "GLU Variants Improve Transformer", 2020.
    """
    i = item.get_id(0)
    out[i] = gate[i] / (1.0 + math.exp(-gate[i])) * x[i]


@reference_for(silu_gate, dtypes=FLOATING, ulps=8)
def silu_gate_reference(gate: Array, x: Array, out: Array) -> None:
    np.multiply(gate / (1.0 + np.exp(-gate)), x, out=out)


@fq.kernel
def softplus(item: fq.Item, x: Array, out: Array) -> None:
    """``out = ln(1 + exp(x))``, as ``max(x, 0) + ln(1 + exp(-|x|))`` so that it never
    overflows."""
    i = item.get_id(0)
    out[i] = np.maximum(x[i], 0.0) + math.log1p(math.exp(-abs(x[i])))


@reference_for(softplus, dtypes=FLOATING, ulps=4)
def softplus_reference(x: Array, out: Array) -> None:
    np.add(np.maximum(x, 0.0), np.log1p(np.exp(-np.abs(x))), out=out)
