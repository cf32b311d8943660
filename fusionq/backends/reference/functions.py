"""Runs a kernel's Python function itself over NumPy arrays, with no compiler in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from fusionq.backends.reference.order import Order, work_items
from fusionq.language.execute import argument, patched
from fusionq.language.item import Item, NdItem
from fusionq.language.ranges import NdRange, Range


def run_function(
    function: FunctionType,
    range: Range | NdRange,
    arguments: Sequence[Any],
    order: Order = "shuffled",
    seed: int = 0,
) -> None:
    """Call ``function`` once for each work-item of ``range``, in the given order.

    ``function``: the undecorated Python function.  ``arguments``: those after the item, NumPy
    arrays (changed in place) and scalars.  Raises what the function raises; an index outside an
    array is an IndexError.
    """
    kernel = patched(function)
    values = [argument(value) for value in arguments]
    with np.errstate(all="ignore"):
        for item in _items(range, order, seed):
            kernel(item, *values)


def _items(range: Range | NdRange, order: Order, seed: int) -> Iterator[Item | NdItem]:
    if isinstance(range, Range):
        for _, ids in work_items((1,) * range.ndim, tuple(range), order, seed):
            for id in ids:
                yield Item(id, range)
        return
    whole, part = range.global_range, range.local_range
    groups = tuple(w // p for w, p in zip(whole, part, strict=True))
    for group, members in work_items(groups, tuple(part), order, seed):
        for local in members:
            id = tuple(g * p + i for g, p, i in zip(group, part, local, strict=True))
            yield NdItem(id, local, group, whole, part)
