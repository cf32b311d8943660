"""The feed-forward layers of a transformer: for many tokens, matrix products and GELU; for one
token, matrix-vector products and a gate."""

from __future__ import annotations

import numpy as np

from fusionq.benchmarks.baselines.host import numpy_baseline
from fusionq.benchmarks.case import ArraySpec, Case, Extents, HostArrays, Step
from fusionq.kernels import (
    add,
    add_2d,
    bias_add,
    column_sums,
    gelu_tanh_2d,
    matrix_multiply_by_rows,
    silu_gate,
    vector_matrix_slabs,
)
from fusionq.kernels.activations import gelu_tanh_reference, silu_gate_reference
from fusionq.kernels.products import DEPTH, blocks_of_rows

WIDTH = 512
"""Of the model, for many tokens."""
WEIGHTS = (-0.05, 0.05)


def tokens_width_hidden(size: int) -> Extents:
    """Tokens, the width of the model, and the width of the hidden layer."""
    width = min(size, WIDTH)
    return (-(-size // WIDTH), width, 4 * width)


def to_hidden(extents: Extents) -> Extents:
    """The range of the product that makes the hidden layer."""
    return blocks_of_rows(extents)


def from_hidden(extents: Extents) -> Extents:
    """The range of the product that goes back to the model's width."""
    tokens, width, hidden = extents
    return blocks_of_rows((tokens, hidden, width))


def tokens_by_width(extents: Extents) -> Extents:
    """All elements of the model's width."""
    return (extents[0], extents[1])


def tokens_by_hidden(extents: Extents) -> Extents:
    """All elements of the hidden layer."""
    return (extents[0], extents[2])


def mlp_with_numpy(arrays: HostArrays) -> None:
    """Two matrix products by NumPy's BLAS."""
    hidden, out = arrays["hidden"], arrays["out"]
    np.matmul(arrays["x"], arrays["up"], out=hidden)
    np.add(hidden, arrays["up_bias"], out=hidden)
    gelu_tanh_reference(hidden, arrays["activated"])
    np.matmul(arrays["activated"], arrays["down"], out=out)
    np.add(out, arrays["down_bias"], out=out)
    np.add(out, arrays["x"], out=out)


MLP = Case(
    name="mlp",
    description=f"tokens of width {WIDTH}: product, bias, GELU, product, bias, residual",
    sizes=(64 * WIDTH,),
    extents=tokens_width_hidden,
    arrays=(
        ArraySpec("x", "input", axes=(0, 1), between=(-1.0, 1.0)),
        ArraySpec("up", "input", axes=(1, 2), between=WEIGHTS),
        ArraySpec("up_bias", "input", axes=(2,), between=WEIGHTS),
        ArraySpec("down", "input", axes=(2, 1), between=WEIGHTS),
        ArraySpec("down_bias", "input", axes=(1,), between=WEIGHTS),
        *(ArraySpec(n, "temporary", axes=(0, 2)) for n in ("hidden", "biased", "activated")),
        *(ArraySpec(name, "temporary", axes=(0, 1)) for name in ("product", "sum")),
        ArraySpec("out", "output", axes=(0, 1)),
    ),
    steps=(
        Step(matrix_multiply_by_rows, ("x", "up", "hidden"), to_hidden),
        Step(bias_add, ("hidden", "up_bias", "biased"), tokens_by_hidden),
        Step(gelu_tanh_2d, ("biased", "activated"), tokens_by_hidden),
        Step(matrix_multiply_by_rows, ("activated", "down", "product"), from_hidden),
        Step(bias_add, ("product", "down_bias", "sum"), tokens_by_width),
        Step(add_2d, ("sum", "x", "out"), tokens_by_width),
    ),
    numpy=mlp_with_numpy,
    compare="strategies",
    tolerance=1e-4,
    baselines=(numpy_baseline(),),
)


def width_hidden(size: int) -> Extents:
    """The widths of the model and of the hidden layer."""
    return (size, 3 * size)


def slabs_to_hidden(extents: Extents) -> Extents:
    """Partial sums of a product that makes the hidden layer."""
    return (-(-extents[0] // DEPTH), extents[1])


def slabs_from_hidden(extents: Extents) -> Extents:
    """Partial sums of the product that goes back to the model's width."""
    return (-(-extents[1] // DEPTH), extents[0])


def hidden_only(extents: Extents) -> Extents:
    """The hidden layer."""
    return (extents[1],)


def width_only(extents: Extents) -> Extents:
    """A vector of the model."""
    return (extents[0],)


def gated_with_numpy(arrays: HostArrays) -> None:
    """Three matrix-vector products by NumPy's BLAS."""
    gate, up, out = arrays["gate"], arrays["up"], arrays["out"]
    np.matmul(arrays["x"], arrays["to_gate"], out=gate)
    np.matmul(arrays["x"], arrays["to_up"], out=up)
    silu_gate_reference(gate, up, arrays["gated"])
    np.matmul(arrays["gated"], arrays["to_out"], out=out)
    np.add(out, arrays["x"], out=out)


MLP_VECTOR = Case(
    name="mlp_vector",
    description="one token, size is its width: gate and up products, SiLU gate, product, residual",
    sizes=(1024, 256),
    extents=width_hidden,
    arrays=(
        ArraySpec("x", "input", shape_of=width_only, between=(-1.0, 1.0)),
        ArraySpec("to_gate", "input", axes=(0, 1), between=WEIGHTS),
        ArraySpec("to_up", "input", axes=(0, 1), between=WEIGHTS),
        ArraySpec("to_out", "input", axes=(1, 0), between=WEIGHTS),
        *(
            ArraySpec(name, "temporary", shape_of=slabs_to_hidden)
            for name in ("partial_gate", "partial_up")
        ),
        *(ArraySpec(n, "temporary", shape_of=hidden_only) for n in ("gate", "up", "gated")),
        ArraySpec("partial_out", "temporary", shape_of=slabs_from_hidden),
        ArraySpec("product", "temporary", shape_of=width_only),
        ArraySpec("out", "output", shape_of=width_only),
    ),
    steps=(
        Step(vector_matrix_slabs, ("x", "to_gate", "partial_gate"), slabs_to_hidden),
        Step(vector_matrix_slabs, ("x", "to_up", "partial_up"), slabs_to_hidden),
        Step(column_sums, ("partial_gate", "gate"), hidden_only),
        Step(column_sums, ("partial_up", "up"), hidden_only),
        Step(silu_gate, ("gate", "up", "gated"), hidden_only),
        Step(vector_matrix_slabs, ("gated", "to_out", "partial_out"), slabs_from_hidden),
        Step(column_sums, ("partial_out", "product"), width_only),
        Step(add, ("product", "x", "out"), width_only),
    ),
    numpy=gated_with_numpy,
    compare="strategies",
    tolerance=1e-4,
    baselines=(numpy_baseline(),),
)

CASES = (MLP, MLP_VECTOR)
