"""The order in which the reference device runs work-groups, and work-items inside each.

A kernel without data races gives the same result in every order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Literal

Order = Literal["natural", "reversed", "shuffled"]
Index = tuple[int, ...]
Box = tuple[range, ...]
"""Indices: a range of each dimension's."""


def ordered_indices(extents: Index, order: Order, seed: int) -> list[Index]:
    """All indices below ``extents``; ``seed`` determines the shuffled order."""
    return ordered(list(product(*map(range, extents))), order, seed)


def ordered(indices: list[Index], order: Order, seed: int) -> list[Index]:
    """``indices``, which are in the natural order, in another; ``seed`` as above."""
    found = indices[::-1] if order == "reversed" else list(indices)
    if order == "shuffled":
        random.Random(seed).shuffle(found)
    return found


def work_items(
    groups: Index, local_range: Index, order: Order, seed: int
) -> Iterator[tuple[Index, list[Index]]]:
    """Each group's index, with the local indices of its work-items; every group has an order
    of its own."""
    for number, group in enumerate(ordered_indices(groups, order, seed)):
        yield group, ordered_indices(local_range, order, seed + 1 + number)


def box_items(
    boxes: Sequence[Box],
    global_range: Index,
    order: Order | Callable[[list[Index]], Sequence[Index]],
    seed: int,
) -> list[Index]:
    """The global ids in ``boxes``, each once, all in one order: a named one, in which the natural
    one goes box by box, or what a function makes of that.  ValueError for an id outside
    ``global_range``."""
    found: dict[Index, None] = {}
    for box in boxes:
        fits = len(box) == len(global_range) and all(
            not ids or (min(ids) >= 0 and max(ids) < extent)
            for ids, extent in zip(box, global_range, strict=True)
        )
        if not fits:
            raise ValueError(
                f"the box {box} has work-items outside the global range {global_range}; cut it to "
                "the range"
            )
        found.update(dict.fromkeys(product(*box)))
    items = list(found)
    if callable(order):
        return list(order(items))
    return ordered(items, order, seed)
