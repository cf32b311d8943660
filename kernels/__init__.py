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
    silu_gate,
    softplus,
)
from fusionq.kernels.attention import (
    attention_output,
    attention_scores,
    store_key,
    store_value,
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
    transpose_strips,
)
from fusionq.kernels.normalisation import (
    divide_rows,
    layer_normalise_rows,
    rms_normalise,
    rms_normalise_rows,
    row_exponentials,
    standardise,
)
from fusionq.kernels.products import (
    matrix_multiply,
    matrix_multiply_by_rows,
    matrix_vector,
    matrix_vector_lanes,
    vector_matrix,
    vector_matrix_slabs,
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
from fusionq.kernels.row_reductions import (
    column_sums,
    combine_inverse_roots,
    combine_maxima,
    combine_means,
    combine_sums,
    row_deviations,
    row_maxima,
    row_square_sums,
    row_sums,
)
from fusionq.kernels.scans import (
    exclusive_scan_of_groups,
    inclusive_scan_of_groups,
    scan_by_doubling,
)
from fusionq.kernels.select import clamp, equal, greater_equal, less, threshold, where
from fusionq.kernels.slabs import (
    inverse_root_of_sums,
    lane_square_sums,
    mean_of_sums,
    offsets_of_sums,
    prefix_sums_of_slabs,
    slab_deviations,
    slab_sums,
)
from fusionq.kernels.stencils import heat_1d, heat_2d, heat_3d, wave_1d, wave_2d

__all__ = [
    "LIBRARY", "LibraryKernel",
    "absolute", "add", "add_2d", "add_3d", "attention_output", "attention_scores", "axpby", "axpy",
    "axpy_3d", "bias_add", "clamp", "column_sums", "combine_inverse_roots", "combine_maxima",
    "combine_means", "combine_sums", "copy", "copy_2d", "divide", "divide_rows", "dot_by_groups",
    "elu", "equal", "exclusive_scan_of_groups", "exponential", "fill", "floor_divide", "gelu",
    "gelu_tanh", "gelu_tanh_2d", "greater_equal", "heat_1d", "heat_2d", "heat_3d",
    "hyperbolic_tangent", "inclusive_scan_of_groups", "inverse_root_of_sums", "iota",
    "lane_square_sums", "layer_normalise_rows", "leaky_relu", "less", "logarithm",
    "matrix_multiply", "matrix_multiply_by_rows", "matrix_vector", "matrix_vector_lanes", "maximum",
    "maximum_by_groups", "mean_of_sums", "minimum", "minimum_by_groups", "multiply", "multiply_add",
    "negative", "offsets_of_sums", "outer", "prefix_sums_of_slabs", "reciprocal", "relu",
    "remainder", "reverse", "rms_normalise", "rms_normalise_rows", "row_deviations",
    "row_exponentials", "row_maxima", "row_square_sums", "row_sums", "scale", "scale_columns",
    "scale_in_place", "scale_planes", "scale_rows", "scan_by_doubling", "sigmoid", "silu",
    "silu_gate", "slab_deviations", "slab_sums", "softplus", "square", "square_root", "standardise",
    "store_key", "store_value", "subtract", "sum_by_atomics", "sum_by_groups", "sum_by_tree",
    "sum_in_one_group", "sums_of_groups", "threshold", "transpose", "transpose_strips",
    "vector_matrix", "vector_matrix_slabs", "wave_1d", "wave_2d", "weighted_sum", "where", "xpay",
]  # fmt: skip
