"""Small kernels to build applications from, each with its NumPy reference.

``LIBRARY`` lists them all.  ``from fusionq.kernels import axpy, relu`` takes single ones.
"""

from fusionq.kernels.activations import (
    elu,
    gelu,
    gelu_tanh,
    hyperbolic_tangent,
    leaky_relu,
    relu,
    sigmoid,
    silu,
    softplus,
)
from fusionq.kernels.axpy import axpby, axpy, scale, scale_in_place, weighted_sum, xpay
from fusionq.kernels.copy_fill import copy, fill, iota, reverse
from fusionq.kernels.elementwise import (
    absolute,
    add,
    divide,
    exponential,
    floor_divide,
    logarithm,
    maximum,
    minimum,
    multiply,
    multiply_add,
    negative,
    reciprocal,
    remainder,
    square,
    square_root,
    subtract,
)
from fusionq.kernels.library import LIBRARY, LibraryKernel
from fusionq.kernels.multidim import (
    add_2d,
    add_3d,
    axpy_3d,
    bias_add,
    copy_2d,
    gelu_tanh_2d,
    outer,
    scale_columns,
    scale_planes,
    scale_rows,
    transpose,
)
from fusionq.kernels.select import clamp, equal, greater_equal, less, threshold, where

__all__ = [
    "LIBRARY", "LibraryKernel",
    "absolute", "add", "add_2d", "add_3d", "axpby", "axpy", "axpy_3d", "bias_add", "clamp",
    "copy", "copy_2d", "divide", "elu", "equal", "exponential", "fill", "floor_divide", "gelu",
    "gelu_tanh", "gelu_tanh_2d", "greater_equal", "hyperbolic_tangent", "iota", "leaky_relu",
    "less", "logarithm", "maximum", "minimum", "multiply", "multiply_add", "negative", "outer",
    "reciprocal", "relu", "remainder", "reverse", "scale", "scale_columns", "scale_in_place",
    "scale_planes", "scale_rows", "sigmoid", "silu", "softplus", "square", "square_root",
    "subtract", "threshold", "transpose", "weighted_sum", "where", "xpay",
]  # fmt: skip
