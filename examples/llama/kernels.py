"""The kernels of a decode step that the kernel library has not: each does one small thing.

Vectors of the model are one-dimensional: ``heads · depth`` numbers for queries, keys and values.
``position`` is the token's place in the sequence; the caches hold the keys and values of all places
up to ``capacity``.  Weights may be bfloat16: they are read as stored, and computed with in the type
of the vector that they meet, float32.

Source: Touvron and others, "LLaMA: Open and Efficient Foundation Language Models", 2023; Ainslie
and others, "GQA", 2023; Su and others, "RoFormer", 2021.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import fusionq as fq


@fq.kernel
def embed(item: fq.Item, position: Any, tokens: Any, table: Any, out: Any) -> None:
    """``out = table[tokens[position]]``; a work-item an element."""
    i = item.get_id(0)
    out[i] = np.float32(table[tokens[position], i])


@fq.kernel
def rms_norm(item: fq.NdItem, epsilon: Any, x: Any, gain: Any, out: Any) -> None:
    """``out = x / √(mean(x²) + epsilon) · gain``; one work-group.

    Source: Zhang, Sennrich, "Root Mean Square Layer Normalization", 2019.
    """
    own = np.float32(0)
    for i in range(item.get_local_id(0), x.shape[0], item.get_local_range(0)):
        own += x[i] * x[i]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    scale = np.float32(1) / np.sqrt(total / np.float32(x.shape[0]) + epsilon)
    for i in range(item.get_local_id(0), x.shape[0], item.get_local_range(0)):
        out[i] = x[i] * scale * np.float32(gain[i])


@fq.kernel
def matrix_vector(item: fq.NdItem, a: Any, x: Any, out: Any) -> None:
    """``out = A x`` for ``a`` ``(rows, columns)``; a work-group a row."""
    row = item.get_global_id(0)
    own = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], item.get_local_range(1)):
        own += np.float32(a[row, k]) * x[k]
    total = fq.reduce_over_group(item.get_group(), own, "add")
    if item.get_local_id(1) == 0:
        out[row] = total


ROWS = 4
"""Rows that a work-group of ``matrix_vector_by_rows`` takes."""


@fq.kernel
def matrix_vector_by_rows(item: fq.NdItem, a: Any, x: Any, out: Any) -> None:
    """``matrix_vector`` in which a work-group takes four rows, so that more reads are on their way
    at once, and an element of ``x`` is read for four products; ``(rows / 4, …)`` work-items."""
    row = ROWS * item.get_global_id(0)
    own0 = np.float32(0)
    own1 = np.float32(0)
    own2 = np.float32(0)
    own3 = np.float32(0)
    for k in range(item.get_local_id(1), a.shape[1], item.get_local_range(1)):
        factor = x[k]
        own0 += np.float32(a[row, k]) * factor
        own1 += np.float32(a[row + 1, k]) * factor
        own2 += np.float32(a[row + 2, k]) * factor
        own3 += np.float32(a[row + 3, k]) * factor
    group = item.get_group()
    total0 = fq.reduce_over_group(group, own0, "add")
    total1 = fq.reduce_over_group(group, own1, "add")
    total2 = fq.reduce_over_group(group, own2, "add")
    total3 = fq.reduce_over_group(group, own3, "add")
    if item.get_local_id(1) == 0:
        out[row] = total0
        out[row + 1] = total1
        out[row + 2] = total2
        out[row + 3] = total3


@fq.kernel
def rotate(item: fq.Item, position: Any, frequencies: Any, x: Any) -> None:
    """Turn the pairs ``(x[j], x[j + depth/2])`` of each head by ``position · frequencies[j]``; the
    range is ``(heads, depth/2)``."""
    half = frequencies.shape[0]
    i = item.get_id(0) * (2 * half) + item.get_id(1)
    angle = np.float32(position) * frequencies[item.get_id(1)]
    c = np.cos(angle)
    s = np.sin(angle)
    first = x[i]
    second = x[i + half]
    x[i] = first * c - second * s
    x[i + half] = second * c + first * s


@fq.kernel
def store_rotated_key(
    item: fq.Item, position: Any, frequencies: Any, key: Any, keys: Any
) -> None:
    """``rotate`` a key into ``keys[head, :, position]``, for ``keys`` ``(heads, depth, capacity)``;
    the range is ``(heads, depth/2)``."""
    head = item.get_id(0)
    j = item.get_id(1)
    half = frequencies.shape[0]
    angle = np.float32(position) * frequencies[j]
    c = np.cos(angle)
    s = np.sin(angle)
    first = key[head * (2 * half) + j]
    second = key[head * (2 * half) + half + j]
    keys[head, j, position] = first * c - second * s
    keys[head, half + j, position] = second * c + first * s


@fq.kernel
def scores(
    item: fq.NdItem, position: Any, scale: Any, query: Any, keys: Any, out: Any
) -> None:
    """``out[head, t] = scale · (query[head] · keys[kv, :, t])`` for ``t`` up to ``position``, where
    neighbouring heads share a key; ``out`` ``(heads, capacity)``; a work-group a head."""
    head = item.get_global_id(0)
    kv = head * keys.shape[0] // out.shape[0]
    depth = keys.shape[1]
    for t in range(item.get_local_id(1), position + 1, item.get_local_range(1)):
        total = np.float32(0)
        for d in range(depth):
            total += query[head * depth + d] * keys[kv, d, t]
        out[head, t] = total * scale


@fq.kernel
def softmax(item: fq.NdItem, position: Any, x: Any) -> None:
    """The softmax of ``x[head, : position + 1]``, in place; a work-group a head."""
    head = item.get_global_id(0)
    lane = item.get_local_id(1)
    lanes = item.get_local_range(1)
    own = np.float32(-np.inf)
    for t in range(lane, position + 1, lanes):
        own = max(own, x[head, t])
    largest = fq.reduce_over_group(item.get_group(), own, "max")
    part = np.float32(0)
    for t in range(lane, position + 1, lanes):
        power = math.exp(x[head, t] - largest)
        x[head, t] = power
        part += power
    total = fq.reduce_over_group(item.get_group(), part, "add")
    for t in range(lane, position + 1, lanes):
        x[head, t] = x[head, t] / total


@fq.kernel
def mix_values(
    item: fq.NdItem, position: Any, weights: Any, values: Any, parts: Any, out: Any
) -> None:
    """``out[head] = Σ weights[head, t] · values[kv, t]`` for ``t`` up to ``position``; a work-group
    a head, of a multiple of ``depth`` work-items, whose sums over every so many places meet in the
    local array ``parts``, one for each work-item."""
    head = item.get_global_id(0)
    lane = item.get_local_id(1)
    lanes = item.get_local_range(1)
    kv = head * values.shape[0] // weights.shape[0]
    depth = values.shape[2]
    total = np.float32(0)
    for t in range(lane // depth, position + 1, lanes // depth):
        total += weights[head, t] * values[kv, t, lane % depth]
    parts[lane] = total
    fq.group_barrier(item.get_group())
    if lane < depth:
        whole = np.float32(0)
        for k in range(lane, lanes, depth):
            whole += parts[k]
        out[head * depth + lane] = whole


@fq.kernel
def largest_of_groups(item: fq.NdItem, x: Any, largest: Any, places: Any) -> None:
    """Of each work-group's part of ``x`` the largest element, and its first place."""
    i = item.get_global_id(0)
    group = item.get_group()
    value = x[i] if i < x.shape[0] else np.float32(-np.inf)
    top = fq.reduce_over_group(group, value, "max")
    place = fq.reduce_over_group(group, i if value == top else x.shape[0] - 1, "min")
    if group.leader:
        largest[group.get_group_id(0)] = top
        places[group.get_group_id(0)] = place


@fq.kernel
def choose_token(
    item: fq.NdItem, position: Any, prompt: Any, largest: Any, places: Any, tokens: Any
) -> None:
    """``tokens[position + 1]`` becomes the first place of the largest element, unless it belongs to
    the prompt, the first ``prompt`` tokens; one work-group.  It is stored in any case: a step then
    does the same to memory whether it belongs to the prompt or not, and has the same plan."""
    own = np.float32(-np.inf)
    for i in range(item.get_local_id(0), largest.shape[0], item.get_local_range(0)):
        own = max(own, largest[i])
    top = fq.reduce_over_group(item.get_group(), own, "max")
    first = np.iinfo(np.int64).max
    for i in range(item.get_local_id(0), largest.shape[0], item.get_local_range(0)):
        if largest[i] == top:
            first = min(first, places[i])
    first = fq.reduce_over_group(item.get_group(), first, "min")
    if item.get_local_id(0) == 0:
        tokens[position + 1] = first if position + 1 >= prompt else tokens[position + 1]
