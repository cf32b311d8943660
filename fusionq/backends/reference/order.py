"""The order in which the reference device runs work-groups, and work-items inside each.

A kernel without data races gives the same result in every order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Literal

Order = Literal["natural", "reversed", "shuffled"]
Index = tuple[int, ...]


def ordered_indices(extents: Index, order: Order, seed: int) -> list[Index]:
    """All indices below ``extents``; ``seed`` determines the shuffled order."""
    indices = list(product(*map(range, extents)))
    if order == "reversed":
        indices.reverse()
    elif order == "shuffled":
        random.Random(seed).shuffle(indices)
    return indices


def work_items(
    groups: Index, local_range: Index, order: Order, seed: int
) -> Iterator[tuple[Index, list[Index]]]:
    """Each group's index, with the local indices of its work-items; every group has an order
    of its own."""
    for number, group in enumerate(ordered_indices(groups, order, seed)):
        yield group, ordered_indices(local_range, order, seed + 1 + number)
