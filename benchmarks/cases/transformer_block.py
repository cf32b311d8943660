"""One step of a small decoder: a transformer block for one token, with cached keys and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusionq.benchmarks.baselines.host import numpy_baseline
from fusionq.benchmarks.case import ArraySpec, Case, Extents, HostArrays, Step
from fusionq.kernels import (
    add,
    attention_output,
    attention_scores,
    column_sums,
    combine_maxima,
    combine_sums,
    divide_rows,
    inverse_root_of_sums,
    lane_square_sums,
    rms_normalise,
    row_exponentials,
    row_maxima,
    row_sums,
    silu_gate,
    store_key,
    store_value,
    vector_matrix_slabs,
)
from fusionq.kernels.activations import silu_gate_reference
from fusionq.kernels.attention import heads_and_context, heads_and_depth, of_model
from fusionq.kernels.library import Array
from fusionq.kernels.products import DEPTH
from fusionq.kernels.reductions import in_one
from fusionq.kernels.row_reductions import LANES
from fusionq.kernels.slabs import one_item, one_vector

HEAD_DEPTH = 64
CONTEXT = 512
EPSILON = 1e-5
WEIGHTS = (-0.05, 0.05)
HIDDEN_FACTOR = 3
"""Width of the hidden layer over that of the model."""


def extents(size: int) -> Extents:
    """Heads, their depth, and the length of the context; heads times depth is the width."""
    depth = min(size, HEAD_DEPTH)
    return (-(-size // depth), depth, min(CONTEXT, 2 * size))


def hidden(extents: Extents) -> Extents:
    """A vector of the hidden layer."""
    return (HIDDEN_FACTOR * extents[0] * extents[1],)


def width_by_width(extents: Extents) -> Extents:
    """The weights of a projection."""
    return of_model(extents) * 2


def width_by_hidden(extents: Extents) -> Extents:
    """The weights to the hidden layer."""
    return (*of_model(extents), *hidden(extents))


def hidden_by_width(extents: Extents) -> Extents:
    """The weights from the hidden layer."""
    return (*hidden(extents), *of_model(extents))


def slabs_of_width(extents: Extents) -> Extents:
    """Partial sums of a projection."""
    (width,) = of_model(extents)
    return (-(-width // DEPTH), width)


def slabs_to_hidden(extents: Extents) -> Extents:
    """Partial sums of a product that makes the hidden layer."""
    return (slabs_of_width(extents)[0], *hidden(extents))


def slabs_from_hidden(extents: Extents) -> Extents:
    """Partial sums of the product that goes back to the model's width."""
    return (-(-hidden(extents)[0] // DEPTH), *of_model(extents))


def head_lanes(extents: Extents) -> Extents:
    """Partial results of the reductions of each head's scores."""
    return (extents[0], LANES)


def heads_only(extents: Extents) -> Extents:
    """One number a head."""
    return (extents[0],)


def width(extents: Extents) -> float:
    """Elements of a vector of the model."""
    return float(of_model(extents)[0])


def scale(extents: Extents) -> float:
    """What the scores are multiplied with."""
    return 1 / math.sqrt(extents[1])


def last_position(extents: Extents) -> int:
    """Where the token's own key and value go."""
    return extents[2] - 1


def normalisation(source: str, gain: str, name: str) -> tuple[Step, ...]:
    """RMS normalisation of ``source`` into ``name``."""
    return (
        Step(lane_square_sums, (source, f"{name}_squares"), one_vector),
        Step(inverse_root_of_sums, (width, EPSILON, f"{name}_squares", f"{name}_scale"), one_item),
        Step(rms_normalise, (source, f"{name}_scale", gain, name), of_model),
    )


def product(source: str, weights: str, name: str, slabs: Any, result: Any) -> tuple[Step, ...]:
    """``name = source · weights``."""
    return (
        Step(vector_matrix_slabs, (source, weights, f"{name}_partial"), slabs),
        Step(column_sums, (f"{name}_partial", name), result),
    )


STEPS = (
    *normalisation("x", "attention_gain", "normal"),
    *(
        step
        for name in ("query", "key", "value")
        for step in product("normal", f"to_{name}", name, slabs_of_width, of_model)
    ),
    Step(store_key, (last_position, "key", "keys"), heads_and_depth),
    Step(store_value, (last_position, "value", "values"), heads_and_depth),
    Step(attention_scores, (scale, "query", "keys", "scores"), heads_and_context),
    Step(row_maxima, ("scores", "partial_maxima"), head_lanes),
    Step(combine_maxima, ("partial_maxima", "maxima"), heads_only),
    Step(row_exponentials, ("scores", "maxima", "exponentials"), heads_and_context),
    Step(row_sums, ("exponentials", "partial_sums"), head_lanes),
    Step(combine_sums, ("partial_sums", "sums"), heads_only),
    Step(divide_rows, ("exponentials", "sums", "weights"), heads_and_context),
    Step(attention_output, ("weights", "values", "attention"), heads_and_depth),
    *product("attention", "from_attention", "projected", slabs_of_width, of_model),
    Step(add, ("x", "projected", "middle"), of_model),
    *normalisation("middle", "mlp_gain", "rescaled"),
    *product("rescaled", "to_gate", "gate", slabs_to_hidden, hidden),
    *product("rescaled", "to_up", "up", slabs_to_hidden, hidden),
    Step(silu_gate, ("gate", "up", "gated"), hidden),
    *product("gated", "from_hidden", "down", slabs_from_hidden, of_model),
    Step(add, ("middle", "down", "out"), of_model),
)

ARRAYS = (
    ArraySpec("x", "input", shape_of=of_model, between=(-1.0, 1.0)),
    *(
        ArraySpec(name, "input", shape_of=of_model, between=(0.5, 1.5))
        for name in ("attention_gain", "mlp_gain")
    ),
    *(
        ArraySpec(name, "input", shape_of=width_by_width, between=WEIGHTS)
        for name in ("to_query", "to_key", "to_value", "from_attention")
    ),
    *(
        ArraySpec(name, "input", shape_of=width_by_hidden, between=WEIGHTS)
        for name in ("to_gate", "to_up")
    ),
    ArraySpec("from_hidden", "input", shape_of=hidden_by_width, between=WEIGHTS),
    ArraySpec("keys", "state", axes=(0, 1, 2), between=(-1.0, 1.0)),
    ArraySpec("values", "state", axes=(0, 2, 1), between=(-1.0, 1.0)),
    *(
        ArraySpec(f"{name}_partial", "temporary", shape_of=slabs_of_width)
        for name in ("query", "key", "value", "projected")
    ),
    *(ArraySpec(f"{n}_partial", "temporary", shape_of=slabs_to_hidden) for n in ("gate", "up")),
    ArraySpec("down_partial", "temporary", shape_of=slabs_from_hidden),
    *(
        ArraySpec(name, "temporary", shape_of=of_model)
        for name in (
            "normal", "query", "key", "value", "attention", "projected", "middle", "rescaled",
            "down",
        )
    ),
    *(ArraySpec(f"{n}_squares", "temporary", shape_of=one_vector) for n in ("normal", "rescaled")),
    *(ArraySpec(f"{n}_scale", "temporary", shape_of=in_one) for n in ("normal", "rescaled")),
    *(
        ArraySpec(name, "temporary", shape_of=heads_and_context)
        for name in ("scores", "exponentials", "weights")
    ),
    *(ArraySpec(n, "temporary", shape_of=head_lanes) for n in ("partial_maxima", "partial_sums")),
    *(ArraySpec(name, "temporary", shape_of=heads_only) for name in ("maxima", "sums")),
    *(ArraySpec(name, "temporary", shape_of=hidden) for name in ("gate", "up", "gated")),
    ArraySpec("out", "output", shape_of=of_model),
)  # fmt: skip


def normalised(x: Array, gain: Array) -> Array:
    """RMS normalisation."""
    root: Array = np.sqrt(np.dot(x, x) / np.float32(x.size) + np.float32(EPSILON))
    return x / root * gain


def with_numpy(arrays: HostArrays) -> None:
    """Matrix-vector products by NumPy's BLAS."""
    keys, values = arrays["keys"], arrays["values"]
    heads, depth, _ = keys.shape
    normal = normalised(arrays["x"], arrays["attention_gain"])
    query, key, value = (
        np.matmul(normal, arrays[f"to_{name}"]).reshape(heads, depth)
        for name in ("query", "key", "value")
    )
    keys[:, :, -1], values[:, -1, :] = key, value
    scores = np.matmul(query[:, np.newaxis], keys)[:, 0] / np.float32(math.sqrt(depth))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    attention = np.matmul(weights[:, np.newaxis], values).reshape(-1)
    middle = arrays["x"] + np.matmul(attention, arrays["from_attention"])
    rescaled = normalised(middle, arrays["mlp_gain"])
    gate, up = (np.matmul(rescaled, arrays[name]) for name in ("to_gate", "to_up"))
    silu_gate_reference(gate, up, up)
    np.add(middle, np.matmul(up, arrays["from_hidden"]), out=arrays["out"])


CASE = Case(
    name="transformer_block",
    description="one token, size is the width: RMSNorm, QKV, attention, output, gated MLP",
    sizes=(512, 1024, 256),
    extents=extents,
    arrays=ARRAYS,
    steps=STEPS,
    numpy=with_numpy,
    compare="strategies",
    tolerance=1e-4,
    baselines=(numpy_baseline(),),
)
