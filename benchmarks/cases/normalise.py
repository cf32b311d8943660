"""Reductions over all work-groups, and what needs their results: layer normalisation of a vector,
softmax and RMS normalisation of rows, prefix sums."""

from __future__ import annotations

import numpy as np

from fusionq.benchmarks.baselines.host import numpy_baseline
from fusionq.benchmarks.case import ArraySpec, Case, Extents, HostArrays, Step
from fusionq.kernels import (
    column_sums,
    combine_inverse_roots,
    combine_maxima,
    combine_sums,
    divide_rows,
    inverse_root_of_sums,
    mean_of_sums,
    offsets_of_sums,
    prefix_sums_of_slabs,
    rms_normalise_rows,
    row_exponentials,
    row_maxima,
    row_square_sums,
    row_sums,
    slab_deviations,
    slab_sums,
    standardise,
)
from fusionq.kernels.reductions import in_one
from fusionq.kernels.row_reductions import one_a_lane, one_a_row
from fusionq.kernels.slabs import lanes_of_slabs, one_item, one_vector, slabs

COLUMNS = 4096
EPSILON = 1e-5


def elements(extents: Extents) -> float:
    """Elements of the vector."""
    return float(extents[0])


def columns(extents: Extents) -> float:
    """Elements of a row."""
    return float(extents[1])


def rows_of_columns(size: int) -> Extents:
    """A matrix of rows of COLUMNS."""
    return (-(-size // COLUMNS), min(size, COLUMNS))


def layer_norm_with_numpy(arrays: HostArrays) -> None:
    """Mean and variance by pairwise sums (BLAS loses five digits here), then two passes."""
    x, out = arrays["x"], arrays["out"]
    np.subtract(x, x.mean(), out=out)
    np.multiply(out, 1 / np.sqrt(np.square(out).mean() + np.float32(EPSILON)), out=out)


LAYER_NORM = Case(
    name="layer_norm",
    description="a whole vector less its mean, over its standard deviation",
    sizes=(1 << 24, 1 << 16),
    extents=lambda size: (size,),
    arrays=(
        ArraySpec("x", "input", between=(-1.0, 3.0)),
        ArraySpec("partial_sums", "temporary", shape_of=lanes_of_slabs),
        ArraySpec("sums", "temporary", shape_of=one_vector),
        ArraySpec("mean", "temporary", shape_of=in_one),
        ArraySpec("partial_squares", "temporary", shape_of=lanes_of_slabs),
        ArraySpec("squares", "temporary", shape_of=one_vector),
        ArraySpec("scale", "temporary", shape_of=in_one),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(slab_sums, ("x", "partial_sums"), lanes_of_slabs),
        Step(column_sums, ("partial_sums", "sums"), one_vector),
        Step(mean_of_sums, (elements, "sums", "mean"), one_item),
        Step(slab_deviations, ("x", "mean", "partial_squares"), lanes_of_slabs),
        Step(column_sums, ("partial_squares", "squares"), one_vector),
        Step(inverse_root_of_sums, (elements, EPSILON, "squares", "scale"), one_item),
        Step(standardise, ("x", "mean", "scale", "out")),
    ),
    numpy=layer_norm_with_numpy,
    compare="strategies",
    tolerance=2e-5,
    baselines=(numpy_baseline(),),
)


def softmax_with_numpy(arrays: HostArrays) -> None:
    """Four passes, one result."""
    x, out = arrays["x"], arrays["out"]
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=1, keepdims=True), out=out)


SOFTMAX = Case(
    name="softmax",
    description=f"softmax of rows of {COLUMNS}",
    sizes=(4096 * COLUMNS, 16 * COLUMNS),
    extents=rows_of_columns,
    arrays=(
        ArraySpec("x", "input", between=(-4.0, 4.0)),
        ArraySpec("partial_maxima", "temporary", shape_of=one_a_lane),
        ArraySpec("maxima", "temporary", shape_of=one_a_row),
        ArraySpec("exponentials", "temporary"),
        ArraySpec("partial_sums", "temporary", shape_of=one_a_lane),
        ArraySpec("sums", "temporary", shape_of=one_a_row),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(row_maxima, ("x", "partial_maxima"), one_a_lane),
        Step(combine_maxima, ("partial_maxima", "maxima"), one_a_row),
        Step(row_exponentials, ("x", "maxima", "exponentials")),
        Step(row_sums, ("exponentials", "partial_sums"), one_a_lane),
        Step(combine_sums, ("partial_sums", "sums"), one_a_row),
        Step(divide_rows, ("exponentials", "sums", "out")),
    ),
    numpy=softmax_with_numpy,
    compare="strategies",
    tolerance=1e-6,
    baselines=(numpy_baseline(),),
)


def rms_norm_with_numpy(arrays: HostArrays) -> None:
    """Three passes, one result."""
    x, out = arrays["x"], arrays["out"]
    squares = np.einsum("rc,rc->r", x, x)[:, np.newaxis]
    np.multiply(x, 1 / np.sqrt(squares / np.float32(x.shape[1]) + EPSILON), out=out)
    np.multiply(out, arrays["gain"], out=out)


RMS_NORM = Case(
    name="rms_norm",
    description=f"RMS normalisation of rows of {COLUMNS}",
    sizes=(4096 * COLUMNS, 16 * COLUMNS),
    extents=rows_of_columns,
    arrays=(
        ArraySpec("x", "input", between=(-1.0, 1.0)),
        ArraySpec("gain", "input", axes=(1,)),
        ArraySpec("partial_squares", "temporary", shape_of=one_a_lane),
        ArraySpec("scales", "temporary", shape_of=one_a_row),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(row_square_sums, ("x", "partial_squares"), one_a_lane),
        Step(combine_inverse_roots, (columns, EPSILON, "partial_squares", "scales"), one_a_row),
        Step(rms_normalise_rows, ("x", "scales", "gain", "out")),
    ),
    numpy=rms_norm_with_numpy,
    compare="strategies",
    tolerance=1e-5,
    baselines=(numpy_baseline(),),
)


def prefix_sum_with_numpy(arrays: HostArrays) -> None:
    """One pass on one core."""
    np.cumsum(arrays["x"], dtype=np.int32, out=arrays["out"])


PREFIX_SUM = Case(
    name="prefix_sum",
    description="int32: sums of slabs, their prefix sums, the prefix sums of all",
    sizes=(1 << 24, 1 << 16),
    extents=lambda size: (size,),
    arrays=(
        ArraySpec("x", "input", dtype="int32", between=(0, 100)),
        ArraySpec("partial", "temporary", shape_of=lanes_of_slabs, dtype="int32"),
        ArraySpec("sums", "temporary", shape_of=slabs, dtype="int32"),
        ArraySpec("offsets", "temporary", shape_of=slabs, dtype="int32"),
        ArraySpec("out", "output", dtype="int32"),
    ),
    steps=(
        Step(slab_sums, ("x", "partial"), lanes_of_slabs),
        Step(combine_sums, ("partial", "sums"), slabs),
        Step(offsets_of_sums, ("sums", "offsets"), one_item),
        Step(prefix_sums_of_slabs, ("x", "offsets", "out"), slabs),
    ),
    numpy=prefix_sum_with_numpy,
    compare="strategies",
    baselines=(numpy_baseline(),),
)

CASES = (LAYER_NORM, SOFTMAX, RMS_NORM, PREFIX_SUM)
