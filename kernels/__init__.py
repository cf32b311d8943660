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
from fusionq.kernels.reductions import (
    dot_by_groups,
    maximum_by_groups,
    minimum_by_groups,
    sum_by_atomics,
    sum_by_groups,
    sum_by_tree,
    sum_in_one_group,
    sums_of_groups,
)
from fusionq.kernels.scans import (
    exclusive_scan_of_groups,
    inclusive_scan_of_groups,
    scan_by_doubling,
)
from fusionq.kernels.select import clamp, equal, greater_equal, less, threshold, where

__all__ = [
    "LIBRARY", "LibraryKernel",
    "absolute", "add", "add_2d", "add_3d", "axpby", "axpy", "axpy_3d", "bias_add", "clamp", "copy",
    "copy_2d", "divide", "dot_by_groups", "elu", "equal", "exclusive_scan_of_groups", "exponential",
    "fill", "floor_divide", "gelu", "gelu_tanh", "gelu_tanh_2d", "greater_equal",
    "hyperbolic_tangent", "inclusive_scan_of_groups", "iota", "leaky_relu", "less", "logarithm",
    "maximum", "maximum_by_groups", "minimum", "minimum_by_groups", "multiply", "multiply_add",
    "negative", "outer", "reciprocal", "relu", "remainder", "reverse", "scale", "scale_columns",
    "scale_in_place", "scale_planes", "scale_rows", "scan_by_doubling", "sigmoid", "silu",
    "softplus", "square", "square_root", "subtract", "sum_by_atomics", "sum_by_groups",
    "sum_by_tree", "sum_in_one_group", "sums_of_groups", "threshold", "transpose", "weighted_sum",
    "where", "xpay",
]  # fmt: skip
