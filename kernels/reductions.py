"""Sums, products of vectors and extrema, by the usual strategies.

All vectors have one shape ``(n,)``.  The kernels run over work-groups of ``GROUP`` work-items,
``NdRange(n rounded up, GROUP)``; what lies beyond ``n`` changes nothing.  Results are combined
with what ``total`` ``(1,)`` holds before.  Floating sums depend on the order of adding up, within
``n·eps·Σ|x|``; integers wrap.
"""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import Array, Scalar, in_groups, one_group, reference_for

GROUP = 64
"""Work-items in a group; a power of two."""
ATOMIC = ("int32", "int64", "uint32", "uint64", "float32", "float64")
"""The dtypes that atomic operations take."""


def in_one(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a single result."""
    return (1,)


def one_each_group(extents: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one result for each work-group."""
    return (-(-extents[0] // GROUP),)


def greatest(x: Array) -> Scalar:
    """The value that is no minimum of others, of the type of ``x``."""
    if x.dtype == np.float32 or x.dtype == np.float64:
        return np.inf
    return np.iinfo(x.dtype).max


def least(x: Array) -> Scalar:
    """The value that is no maximum of others, of the type of ``x``."""
    if x.dtype == np.float32 or x.dtype == np.float64:
        return -np.inf
    return np.iinfo(x.dtype).min


@fq.kernel
def sum_by_groups(item: fq.NdItem, x: Array, total: Array) -> None:
    """``total += Σ x``: each work-group adds up, its leader adds the sum atomically."""
    i = item.get_global_id(0)
    group = item.get_group()
    part = fq.reduce_over_group(group, x[i] if i < x.shape[0] else 0)
    if group.leader:
        fq.AtomicRef(total, 0).fetch_add(part)


@reference_for(
    sum_by_groups, dtypes=ATOMIC, range_of=in_groups(GROUP), shapes={"total": in_one}, reorders=True
)
def sum_by_groups_reference(x: Array, total: Array) -> None:
    total += x.sum(dtype=x.dtype)


@fq.kernel
def sum_by_tree(item: fq.NdItem, x: Array, tile: fq.LocalAccessor, total: Array) -> None:
    """``total += Σ x``: a tree in local memory, ``tile`` ``(GROUP,)``, then atomically."""
    i = item.get_global_id(0)
    local = item.get_local_id(0)
    group = item.get_group()
    tile[local] = x[i] if i < x.shape[0] else 0
    stride = item.get_local_range(0) // 2
    while stride > 0:
        fq.group_barrier(group)
        if local < stride:
            tile[local] = tile[local] + tile[local + stride]
        stride = stride // 2
    if group.leader:
        fq.AtomicRef(total, 0).fetch_add(tile[0])


@reference_for(
    sum_by_tree, dtypes=ATOMIC, range_of=in_groups(GROUP), shapes={"total": in_one},
    local={"tile": (GROUP,)}, reorders=True,
)  # fmt: skip
def sum_by_tree_reference(x: Array, tile: fq.LocalAccessor, total: Array) -> None:
    total += x.sum(dtype=x.dtype)


@fq.kernel
def sum_in_one_group(item: fq.NdItem, x: Array, total: Array) -> None:
    """``total += Σ x``: one work-group, whose work-items stride over the vector."""
    part = x.dtype.type(0)
    for i in range(item.get_global_id(0), x.shape[0], item.get_global_range(0)):
        part += x[i]
    whole = fq.reduce_over_group(item.get_group(), part)
    if item.get_group().leader:
        total[0] += whole


@reference_for(
    sum_in_one_group, dtypes=ATOMIC, range_of=one_group(GROUP), shapes={"total": in_one},
    reorders=True,
)  # fmt: skip
def sum_in_one_group_reference(x: Array, total: Array) -> None:
    total += x.sum(dtype=x.dtype)


@fq.kernel
def sum_by_atomics(item: fq.NdItem, x: Array, total: Array) -> None:
    """``total += Σ x``: every work-item adds its element atomically."""
    i = item.get_global_id(0)
    if i < x.shape[0]:
        fq.AtomicRef(total, 0).fetch_add(x[i])


@reference_for(
    sum_by_atomics, dtypes=ATOMIC, range_of=in_groups(GROUP), shapes={"total": in_one},
    reorders=True,
)  # fmt: skip
def sum_by_atomics_reference(x: Array, total: Array) -> None:
    total += x.sum(dtype=x.dtype)


@fq.kernel
def sums_of_groups(item: fq.NdItem, x: Array, sums: Array) -> None:
    """``sums[g]`` is the sum of work-group ``g``'s part of ``x``; ``sums`` ``(groups,)``."""
    i = item.get_global_id(0)
    group = item.get_group()
    part = fq.reduce_over_group(group, x[i] if i < x.shape[0] else 0)
    if group.leader:
        sums[group.get_group_id(0)] = part


@reference_for(
    sums_of_groups, dtypes=ATOMIC, range_of=in_groups(GROUP), shapes={"sums": one_each_group},
    reorders=True,
)  # fmt: skip
def sums_of_groups_reference(x: Array, sums: Array) -> None:
    padded = np.concatenate([x, np.zeros(-x.size % GROUP, x.dtype)])
    padded.reshape(-1, GROUP).sum(axis=1, dtype=x.dtype, out=sums)


@fq.kernel
def dot_by_groups(item: fq.NdItem, x: Array, y: Array, total: Array) -> None:
    """``total += Σ x·y``: each work-group adds up, its leader adds the sum atomically."""
    i = item.get_global_id(0)
    group = item.get_group()
    part = fq.reduce_over_group(group, x[i] * y[i] if i < x.shape[0] else 0)
    if group.leader:
        fq.AtomicRef(total, 0).fetch_add(part)


@reference_for(
    dot_by_groups, dtypes=ATOMIC, range_of=in_groups(GROUP), shapes={"total": in_one},
    reorders=True,
)  # fmt: skip
def dot_by_groups_reference(x: Array, y: Array, total: Array) -> None:
    total += (x * y).sum(dtype=x.dtype)


@fq.kernel
def minimum_by_groups(item: fq.NdItem, x: Array, total: Array) -> None:
    """``total = min(total, min x)``: each work-group's minimum, then atomically."""
    i = item.get_global_id(0)
    group = item.get_group()
    part = fq.reduce_over_group(group, x[i] if i < x.shape[0] else greatest(x), "min")
    if group.leader:
        fq.AtomicRef(total, 0).fetch_min(part)


@reference_for(
    minimum_by_groups, dtypes=ATOMIC, range_of=in_groups(GROUP), shapes={"total": in_one}
)
def minimum_by_groups_reference(x: Array, total: Array) -> None:
    total[0] = np.minimum.reduce(x, initial=total[0])


@fq.kernel
def maximum_by_groups(item: fq.NdItem, x: Array, total: Array) -> None:
    """``total = max(total, max x)``: each work-group's maximum, then atomically."""
    i = item.get_global_id(0)
    group = item.get_group()
    part = fq.reduce_over_group(group, x[i] if i < x.shape[0] else least(x), "max")
    if group.leader:
        fq.AtomicRef(total, 0).fetch_max(part)


@reference_for(
    maximum_by_groups, dtypes=ATOMIC, range_of=in_groups(GROUP), shapes={"total": in_one}
)
def maximum_by_groups_reference(x: Array, total: Array) -> None:
    total[0] = np.maximum.reduce(x, initial=total[0])
