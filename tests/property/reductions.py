"""Reductions of views of a random list's buffers, between its submissions; and in plain Python the
order of operations of docs/semantics.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.dtypes import is_floating
from fusionq.language.combine import COMBINE, identity, joint_reduction, over_group
from fusionq.memory.reduction import OPERATIONS
from fusionq.runtime.reductions import group_shape
from tests.property.kernel_expressions import Draw
from tests.property.launches import Array, Slices, random_slices


@dataclass(frozen=True)
class View:
    """A part of a buffer."""

    buffer: int
    slices: Slices


@dataclass(frozen=True)
class ReductionSpec:
    """The elements of ``source`` combined by ``op`` into ``target``, of one element, before a
    submission.  ``local``: the work-groups of an NdRange; None: a Range.  ``twice``: a work-item
    combines its element twice, unless the sum of its ids leaves 1 when divided by 3."""

    before: int
    target: View
    source: View
    op: str
    initialize: bool
    local: tuple[int, ...] | None
    twice: bool

    def submit(self, queue: fq.FusionQueue, target: Any, source: Any) -> None:
        """Submit it."""
        space: Any = tuple(source.shape)
        if self.local is not None:
            space = fq.NdRange(space, self.local)
        kernel = KERNELS[self.local is not None, self.twice][len(source.shape) - 1]
        reduction = fq.Reduction(target, self.op, initialize=self.initialize)
        queue.submit(kernel, space, source, reduction)

    def run_python(self, target: Array, source: Array) -> None:
        """Store the result."""
        op = OPERATIONS[self.op]
        dtype = np.dtype(bool) if self.op.startswith("logical") else source.dtype
        combine, values = COMBINE[op], source.astype(dtype)
        by_item = np.full(source.shape, identity(op, dtype), dtype)
        for ids in np.ndindex(source.shape):
            for _ in range(self.twice + 1 if not self.twice or sum(ids) % 3 != 1 else 0):
                by_item[ids] = combine(by_item[ids], values[ids])
        local = self.local or group_shape(source.shape)
        total = in_order(op, by_item, local)
        place = (0,) * target.ndim
        if total is not None and not self.initialize:
            total = combine(dtype.type(target[place]), total)
        if total is None and self.initialize:
            total = identity(op, dtype)
        if total is not None:
            target[place] = total


def in_order(op: str, by_item: Array, local: Sequence[int]) -> Any:
    """What the work-items of a range have combined, combined in work-groups of ``local``: each
    group's in a tree, then the groups' by lanes; None where there are none."""
    dtype = by_item.dtype
    whole = [-(-e // size) * size for e, size in zip(by_item.shape, local, strict=True)]
    padded = np.full(whole, identity(op, dtype), dtype)
    padded[tuple(map(slice, by_item.shape))] = by_item
    partials = []
    for group in np.ndindex(*[w // size for w, size in zip(whole, local, strict=True)]):
        part = padded[tuple(slice(g * s, (g + 1) * s) for g, s in zip(group, local, strict=True))]
        partials.append(over_group("reduce", op, list(part.reshape(-1)), None)[0])
    if len(partials) < 2:
        return partials[0] if partials else None
    return joint_reduction(op, partials, dtype, 256)


def random_reduction(
    draw: Draw, contents: Sequence[Array], before: int, numbers: Sequence[int]
) -> ReductionSpec | None:
    """A reduction between two of the buffers with these ``numbers`` and ``contents``; None where
    there is none."""
    target = draw(st.sampled_from(numbers))
    into = contents[target]
    alike = [n for n in numbers if contents[n].dtype == into.dtype and contents[n].ndim <= 3]
    if not into.size or not alike:
        return None
    source = draw(st.sampled_from(alike))
    places = [draw(st.integers(0, extent - 1)) for extent in into.shape]
    element = tuple(slice(place, place + 1) for place in places)
    part = random_slices(draw, contents[source].shape)
    read = contents[source][part]
    if read.ndim > 3 or np.shares_memory(into[element], read):
        return None
    ops = ["logical_and", "logical_or"]
    if into.dtype.kind != "b":
        ops += ["add", "add", "multiply", "minimum", "maximum"]
    if not is_floating(into.dtype):
        ops += ["bit_and", "bit_or", "bit_xor"]
    local = None
    if draw(st.booleans()) and prod(read.shape):
        local = tuple(
            draw(st.sampled_from([d for d in range(1, extent + 1) if extent % d == 0]))
            for extent in read.shape
        )
    return ReductionSpec(
        before,
        View(target, element),
        View(source, part),
        draw(st.sampled_from(ops)),
        draw(st.booleans()),
        local,
        draw(st.booleans()),
    )


# ----------------------------------------------------------------------------- kernels
@fq.kernel
def of_1d(item: fq.Item, a, r):
    r.combine(a[item.get_id(0)])


@fq.kernel
def of_2d(item: fq.Item, a, r):
    r.combine(a[item.get_id(0), item.get_id(1)])


@fq.kernel
def of_3d(item: fq.Item, a, r):
    r.combine(a[item.get_id(0), item.get_id(1), item.get_id(2)])


@fq.kernel
def twice_of_1d(item: fq.Item, a, r):
    i = item.get_id(0)
    if i % 3 != 1:
        for _ in range(2):
            r.combine(a[i])


@fq.kernel
def twice_of_2d(item: fq.Item, a, r):
    i, j = item.get_id(0), item.get_id(1)
    if (i + j) % 3 != 1:
        for _ in range(2):
            r.combine(a[i, j])


@fq.kernel
def twice_of_3d(item: fq.Item, a, r):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    if (i + j + k) % 3 != 1:
        for _ in range(2):
            r.combine(a[i, j, k])


@fq.kernel
def of_groups_1d(item: fq.NdItem, a, r):
    r.combine(a[item.get_global_id(0)])


@fq.kernel
def of_groups_2d(item: fq.NdItem, a, r):
    r.combine(a[item.get_global_id(0), item.get_global_id(1)])


@fq.kernel
def of_groups_3d(item: fq.NdItem, a, r):
    r.combine(a[item.get_global_id(0), item.get_global_id(1), item.get_global_id(2)])


@fq.kernel
def twice_of_groups_1d(item: fq.NdItem, a, r):
    i = item.get_global_id(0)
    if i % 3 != 1:
        for _ in range(2):
            r.combine(a[i])


@fq.kernel
def twice_of_groups_2d(item: fq.NdItem, a, r):
    i, j = item.get_global_id(0), item.get_global_id(1)
    if (i + j) % 3 != 1:
        for _ in range(2):
            r.combine(a[i, j])


@fq.kernel
def twice_of_groups_3d(item: fq.NdItem, a, r):
    i, j, k = item.get_global_id(0), item.get_global_id(1), item.get_global_id(2)
    if (i + j + k) % 3 != 1:
        for _ in range(2):
            r.combine(a[i, j, k])


KERNELS = {
    (False, False): (of_1d, of_2d, of_3d),
    (False, True): (twice_of_1d, twice_of_2d, twice_of_3d),
    (True, False): (of_groups_1d, of_groups_2d, of_groups_3d),
    (True, True): (twice_of_groups_1d, twice_of_groups_2d, twice_of_groups_3d),
}
"""By whether they run over an NdRange and combine twice, for each number of dimensions."""
