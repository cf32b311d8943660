"""Stages that read elements of other work-groups' work-items: reversed and transposed."""

from __future__ import annotations

import numpy as np

from fusionq.benchmarks.baselines.host import numpy_baseline
from fusionq.benchmarks.case import ArraySpec, Case, Extents, HostArrays, Step
from fusionq.benchmarks.cases.stencils import cube
from fusionq.kernels import (
    add_2d,
    bias_add,
    multiply,
    reverse,
    scale_rows,
    subtract,
    transpose_strips,
)
from fusionq.kernels.multidim import strips


def reverse_with_numpy(arrays: HostArrays) -> None:
    """Two passes: the reversal is a view."""
    product, out = arrays["product"], arrays["out"]
    np.multiply(arrays["a"], arrays["b"], out=product)
    np.subtract(product[::-1], arrays["c"], out=out)


REVERSE = Case(
    name="reverse",
    description="a product, its elements in reversed order, a difference",
    sizes=(1 << 24, 1 << 16),
    extents=lambda size: (size,),
    arrays=(
        *(ArraySpec(name, "input") for name in ("a", "b", "c")),
        *(ArraySpec(name, "temporary") for name in ("product", "reversed")),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(multiply, ("a", "b", "product")),
        Step(reverse, ("product", "reversed")),
        Step(subtract, ("reversed", "c", "out")),
    ),
    numpy=reverse_with_numpy,
    compare="strategies",
    baselines=(numpy_baseline(),),
)


def transposed(extents: Extents) -> Extents:
    """The shape and range of the transposed matrix."""
    return extents[::-1]


def strips_of_transposed(extents: Extents) -> Extents:
    """The range that transposes the transposed matrix."""
    return strips(transposed(extents))


def transpose_with_numpy(arrays: HostArrays) -> None:
    """The first transposition is a copy, the second a view."""
    biased, turned = arrays["biased"], arrays["turned"]
    np.add(arrays["x"], arrays["bias"], out=biased)
    np.multiply(biased.T, arrays["factors"][:, np.newaxis], out=turned)
    np.add(turned.T, arrays["residual"], out=arrays["out"])


TRANSPOSE = Case(
    name="transpose",
    description="2-D: bias, transposed, scaled, transposed back, residual",
    sizes=(4096 * 4096, 256 * 256),
    extents=cube(2),
    arrays=(
        ArraySpec("x", "input"),
        ArraySpec("bias", "input", axes=(1,)),
        ArraySpec("factors", "input", axes=(1,)),
        ArraySpec("residual", "input"),
        ArraySpec("biased", "temporary"),
        ArraySpec("turned", "temporary", shape_of=transposed),
        ArraySpec("scaled", "temporary", shape_of=transposed),
        ArraySpec("back", "temporary"),
        ArraySpec("out", "output"),
    ),
    steps=(
        Step(bias_add, ("x", "bias", "biased")),
        Step(transpose_strips, ("biased", "turned"), strips),
        Step(scale_rows, ("factors", "turned", "scaled"), transposed),
        Step(transpose_strips, ("scaled", "back"), strips_of_transposed),
        Step(add_2d, ("back", "residual", "out")),
    ),
    numpy=transpose_with_numpy,
    compare="strategies",
    baselines=(numpy_baseline(),),
)

CASES = (REVERSE, TRANSPOSE)
