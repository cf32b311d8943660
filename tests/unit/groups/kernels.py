"""The kernels of the work-group tests: local memory, and sums by the usual strategies."""

from __future__ import annotations

import fusionq as fq


# -------------------------------------------------------------------------- local memory
@fq.kernel
def reverse_in_group(item: fq.NdItem, x, tile, out):
    i = item.get_global_id(0)
    local = item.get_local_id(0)
    tile[local] = x[i]
    fq.group_barrier(item.get_group())
    out[i] = tile[item.get_local_range(0) - 1 - local]


@fq.kernel
def transpose_tiles(item: fq.NdItem, x, tile, out):
    """The tiles are square: item (a, b) of a group stores what item (b, a) loaded."""
    row = item.get_local_id(0)
    column = item.get_local_id(1)
    tile[row, column] = x[item.get_global_id(0), item.get_global_id(1)]
    group = item.get_group()
    fq.group_barrier(group)
    first_row = group.get_group_id(1) * item.get_local_range(1)
    first_column = group.get_group_id(0) * item.get_local_range(0)
    out[first_row + row, first_column + column] = tile[column, row]


@fq.kernel
def stencil(item: fq.NdItem, x, tile, out):
    """The mean of three neighbours; ``tile`` has a halo of one element at each end."""
    n = x.shape[0]
    i = item.get_global_id(0)
    local = item.get_local_id(0)
    last = item.get_local_range(0) - 1
    tile[local + 1] = x[i] if i < n else 0
    if local == 0:
        tile[0] = x[i - 1] if 0 < i <= n else 0
    if local == last:
        tile[last + 2] = x[i + 1] if i + 1 < n else 0
    fq.group_barrier(item.get_group())
    if i < n:
        out[i] = (tile[local] + tile[local + 1] + tile[local + 2]) / 3


@fq.kernel
def rotate_in_box(item: fq.NdItem, x, box, out):
    """Three dimensions: item (a, b, c) of a group takes the value of (c, a, b)."""
    i = item.get_global_id(0)
    j = item.get_global_id(1)
    k = item.get_global_id(2)
    a = item.get_local_id(0)
    b = item.get_local_id(1)
    c = item.get_local_id(2)
    box[a, b, c] = x[i, j, k]
    fq.group_barrier(item.get_group())
    out[i, j, k] = box[c, a, b]


@fq.kernel
def two_tiles(item: fq.NdItem, x, whole, flags, out):
    """Two accessors of different types, and values that live across several barriers."""
    i = item.get_global_id(0)
    local = item.get_local_id(0)
    group = item.get_group()
    whole[local] = x[i]
    flags[local] = x[i] > 0
    kept = x[i]
    fq.group_barrier(group)
    size = item.get_local_range(0)
    for distance in range(1, 3):
        other = (local + distance) % size
        value = whole[other] if flags[other] else 0
        fq.group_barrier(group)
        whole[local] = kept + value
        fq.group_barrier(group)
    out[i] = whole[local]


# ------------------------------------------------------------- five ways to add things up
@fq.kernel
def sum_by_group_function(item: fq.NdItem, x, total):
    group = item.get_group()
    part = fq.reduce_over_group(group, x[item.get_global_id(0)])
    if group.leader:
        fq.AtomicRef(total, 0).fetch_add(part)


@fq.kernel
def sum_by_tree(item: fq.NdItem, x, tile, total):
    """The work-group's size is a power of two."""
    local = item.get_local_id(0)
    group = item.get_group()
    tile[local] = x[item.get_global_id(0)]
    stride = item.get_local_range(0) // 2
    while stride > 0:
        fq.group_barrier(group)
        if local < stride:
            tile[local] = tile[local] + tile[local + stride]
        stride = stride // 2
    if local == 0:
        fq.AtomicRef(total, 0).fetch_add(tile[0])


@fq.kernel
def sum_in_one_group(item: fq.NdItem, x, total):
    """One work-group; its work-items stride over the array."""
    own = x.dtype.type(0)
    for i in range(item.get_global_id(0), x.shape[0], item.get_global_range(0)):
        own = own + x[i]
    whole = fq.reduce_over_group(item.get_group(), own)
    if item.get_local_id(0) == 0:
        total[0] = whole


@fq.kernel
def sum_of_a_part(item: fq.NdItem, x, first, end, total):
    """The elements from ``first`` to ``end``; the other work-items add nothing."""
    i = item.get_global_id(0)
    group = item.get_group()
    own = x[i] if first <= i < end else x[i] * 0
    part = fq.reduce_over_group(group, own)
    if group.leader:
        fq.AtomicRef(total, 0).fetch_add(part)


@fq.kernel
def sum_by_atomics(item: fq.NdItem, x, total):
    fq.AtomicRef(total, 0).fetch_add(x[item.get_global_id(0)])


# ----------------------------------------------------------------------- for the fusions
@fq.kernel
def square(item: fq.Item, x, out):
    i = item.get_id(0)
    out[i] = x[i] * x[i]


@fq.kernel
def shift(item: fq.Item, x, offset, out):
    i = item.get_id(0)
    out[i] = x[i] - offset


@fq.kernel
def scale_by_total(item: fq.NdItem, x, total, out):
    i = item.get_global_id(0)
    out[i] = x[i] * total[0]
