"""Attention of one query over a cache of keys and values, by heads.

A query, key or value of the model is one vector ``(heads · depth,)``.  The cache holds keys
``(heads, depth, context)``, so that neighbouring work-items read neighbouring positions, and values
``(heads, context, depth)``.  ``row_reductions`` and ``normalisation`` have the softmax between.

Source: Vaswani and others, "Attention Is All You Need", 2017.
"""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import FLOATING, Array, Extents, Scalar, reference_for


def of_model(extents: Extents) -> Extents:
    """The shape of a vector of the model, from heads, depth and context."""
    return (extents[0] * extents[1],)


def heads_and_depth(extents: Extents) -> Extents:
    """The range of one work-item an element of a vector of the model."""
    return (extents[0], extents[1])


def heads_and_context(extents: Extents) -> Extents:
    """The range, and the shape, of one number a head and position."""
    return (extents[0], extents[2])


@fq.kernel
def store_key(item: fq.Item, position: Scalar, key: Array, keys: Array) -> None:
    """``keys[head, :, position] = key[head]``; the range is ``(heads, depth)``."""
    head = item.get_id(0)
    d = item.get_id(1)
    keys[head, d, position] = key[head * keys.shape[1] + d]


@reference_for(
    store_key, ndim=3, dtypes=("int32", *FLOATING), scalars={"position": 0},
    range_of=heads_and_depth, shapes={"key": of_model},
)  # fmt: skip
def store_key_reference(position: Scalar, key: Array, keys: Array) -> None:
    keys[:, :, position] = key.reshape(keys.shape[:2])


@fq.kernel
def store_value(item: fq.Item, position: Scalar, value: Array, values: Array) -> None:
    """``values[head, position, :] = value[head]``; the range is ``(heads, depth)``."""
    head = item.get_id(0)
    d = item.get_id(1)
    values[head, position, d] = value[head * values.shape[2] + d]


@reference_for(
    store_value, ndim=3, dtypes=("int32", *FLOATING), scalars={"position": 0},
    range_of=heads_and_depth, shapes={"value": of_model}, axes={"values": (0, 2, 1)},
)  # fmt: skip
def store_value_reference(position: Scalar, value: Array, values: Array) -> None:
    values[:, position, :] = value.reshape(values.shape[0], values.shape[2])


@fq.kernel
def attention_scores(
    item: fq.Item, scale: Scalar, query: Array, keys: Array, scores: Array
) -> None:
    """``scores[head, t] = scale · (query[head] · keys[head, :, t])``; the range is
    ``(heads, context)``, ``scale`` usually ``1 / √depth``."""
    head = item.get_id(0)
    t = item.get_id(1)
    total = query.dtype.type(0)
    for d in range(keys.shape[1]):
        total += query[head * keys.shape[1] + d] * keys[head, d, t]
    scores[head, t] = scale * total


@reference_for(
    attention_scores, ndim=3, dtypes=FLOATING, scalars={"scale": 0.125},
    range_of=heads_and_context, shapes={"query": of_model, "scores": heads_and_context},
    reorders=True,
)  # fmt: skip
def attention_scores_reference(scale: Scalar, query: Array, keys: Array, scores: Array) -> None:
    heads, depth, _ = keys.shape
    # Not np.einsum, which multiplies an empty sum by what lies behind an empty array: NaN at times.
    totals = (query.reshape(heads, depth, 1) * keys).sum(axis=1)
    np.multiply(scale, totals, out=scores)


@fq.kernel
def attention_output(item: fq.Item, weights: Array, values: Array, out: Array) -> None:
    """``out[head] = Σ weights[head, t] · values[head, t]`` over the positions ``t``, for
    ``weights`` ``(heads, context)`` and ``out`` ``(heads · depth,)``; the range is
    ``(heads, depth)``."""
    head = item.get_id(0)
    d = item.get_id(1)
    total = values.dtype.type(0)
    for t in range(values.shape[1]):
        total += weights[head, t] * values[head, t, d]
    out[head * values.shape[2] + d] = total


@reference_for(
    attention_output, ndim=3, dtypes=FLOATING, range_of=heads_and_depth,
    shapes={"weights": heads_and_context, "out": of_model}, axes={"values": (0, 2, 1)},
    reorders=True,
)  # fmt: skip
def attention_output_reference(weights: Array, values: Array, out: Array) -> None:
    out[...] = (weights[:, :, np.newaxis] * values).sum(axis=1).reshape(-1)
