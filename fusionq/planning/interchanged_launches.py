"""Launches whose fastest dimension is not the last one of their range.

Neighbours in the last dimension of a range are lanes of a vector, and access elements that lie side
by side where that is the last index, too.  Where kernels take the first id for the last index, as
those do that come from languages whose first dimension is the fastest, each element is accessed by
itself, and each cache line again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.language.ranges import Range
from fusionq.passes.permute_dimensions import permute_dimensions
from fusionq.passes.sources import ParamSource
from fusionq.planning.known_values import Sizes, launch_sizes
from fusionq.planning.lane_dimension import is_free, vector_cost

TIMES = 2.0
"""By how much vectors along another dimension have to be cheaper: both are estimates."""

FEWEST_VECTORS = 2
"""Of either dimension."""


@dataclass(frozen=True)
class Interchanged:
    """A ``kernel`` over a range whose dimensions are in another ``order``, each the number of one
    of the submissions' range."""

    kernel: Kernel
    order: tuple[int, ...]

    def range_of(self, items: Range) -> Range:
        """The range, where the submissions' is ``items``."""
        return Range(*(items[d] for d in self.order))


class InterchangedLaunches:
    """The launches of a list of ``submissions`` on ``target``; sizes on which it depends what they
    are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._made: dict[tuple[int, tuple[int, ...]], tuple[Kernel, Interchanged]] = {}
        """The kernel stays, so that no other one has its identity."""

    def launched(
        self, kernel: Kernel, sources: Mapping[str, ParamSource], items: Range
    ) -> Interchanged | None:
        """``kernel`` as a launch over ``items`` runs it with another dimension as the last one;
        None where that is not faster."""
        if kernel.ndim != len(items) or not items.size:
            return None
        sizes = launch_sizes(kernel, sources, self._submissions)
        order = faster_order(kernel, replace(sizes, items=tuple(items)), self._target)
        fewest = FEWEST_VECTORS * self._target.sub_group_size
        if order is None or not all(
            self._validity.are_at_least((items[d],), fewest) for d in (order[-1], kernel.ndim - 1)
        ):
            return None
        key = id(kernel), order
        if key not in self._made:
            made = Interchanged(permute_dimensions(kernel, order), order)
            self._made[key] = kernel, made
        return self._made[key][1]


def faster_order(kernel: Kernel, sizes: Sizes, target: Target) -> tuple[int, ...] | None:
    """The dimensions of ``kernel`` with another one as the last, if vectors along that are cheaper
    by enough and work-items may be done in any order."""
    if not target.device.jams_rows or kernel.ndim == 1 or not is_free(kernel):
        return None
    costs = [vector_cost(kernel, sizes, d, target.weights) for d in range(kernel.ndim)]
    best = min(range(kernel.ndim), key=costs.__getitem__)
    if costs[best] * TIMES > costs[-1]:
        return None
    return (*(d for d in range(kernel.ndim) if d != best), best)
