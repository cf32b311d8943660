"""Runs a kernel's Python function itself over NumPy arrays, with no compiler in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from fusionq.backends.reference.order import Order, work_items
from fusionq.language.execute import argument, patched
from fusionq.language.item import Item, NdItem
from fusionq.language.local_memory import LocalAccessor, work_group_array
from fusionq.language.meeting import run_together
from fusionq.language.ranges import NdRange, Range


def run_function(
    function: FunctionType,
    range: Range | NdRange,
    arguments: Sequence[Any],
    order: Order = "shuffled",
    seed: int = 0,
    sub_group_size: int = 16,
) -> None:
    """Call ``function`` once for each work-item of ``range``, in the given order.

    ``function``: the undecorated Python function.  ``arguments``: those after the item, NumPy
    arrays (changed in place), scalars and LocalAccessors.  The work-items of a group run
    together, from barrier to barrier; ``sub_group_size`` of them are a sub-group.
    Raises what the function raises; an index outside an array is an IndexError.
    """
    kernel = patched(function)
    values = [argument(value) for value in arguments]
    if isinstance(range, NdRange):
        for items in _groups(range, order, seed, sub_group_size):
            own = [work_group_array(v) if isinstance(v, LocalAccessor) else v for v in values]
            run_together([(int(i.get_local_linear_id()), partial(kernel, i, *own)) for i in items])
        return
    with np.errstate(all="ignore"):
        for _, ids in work_items((1,) * range.ndim, tuple(range), order, seed):
            for id in ids:
                kernel(Item(id, range), *values)


def _groups(
    range: NdRange, order: Order, seed: int, sub_group_size: int
) -> Iterator[list[NdItem]]:
    """The work-items of each work-group."""
    whole, part = range.global_range, range.local_range
    groups = tuple(w // p for w, p in zip(whole, part, strict=True))
    for group, members in work_items(groups, tuple(part), order, seed):
        ids = [
            tuple(g * p + i for g, p, i in zip(group, part, local, strict=True))
            for local in members
        ]
        yield [
            NdItem(id, local, group, whole, part, sub_group_size)
            for id, local in zip(ids, members, strict=True)
        ]
