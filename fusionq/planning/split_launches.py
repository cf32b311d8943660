"""Launches whose work-groups go along rows, of which the inside has code without conditions.

A store of a vector under a condition on ids takes many times as long as one without where there are
no registers for masks (AVX2).  Loads under one take longer wherever what decides them is computed
for each lane (AVX-512: clamped indices three times as long, guards 1.1 to 1.3).  Only what bounds a
compiler's loop over work-items costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.analysis.validity import size_order
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.codegen.along_rows import rows_of
from fusionq.codegen.interior import Interior, interior_of
from fusionq.codegen.loop_bounds import loop_bounds, only_condition, with_loop_bounds
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.nodes import ArrayParam, Block, Expr, Kernel, Select, Store
from fusionq.ir.printer import print_expr
from fusionq.ir.range_guard import range_guard
from fusionq.ir.walk import expressions, is_persistent, statements
from fusionq.language.ranges import Range
from fusionq.passes.sources import ParamSource
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.known_values import KnownValues, launch_sizes
from fusionq.planning.plan import Guards

MASKED_BYTES = 4
"""Of the smallest elements that are loaded under masks by whole vectors (AVX2)."""

_ANY = 1 << 62


@dataclass(frozen=True)
class _Split:
    """The ``kernel`` along rows, whose work-items store ``stores`` times, and the ``interior``."""

    kernel: Kernel
    stores: int
    interior: Interior

    @property
    def guards(self) -> Guards:
        """What becomes of its conditions."""
        return guards_of(self.interior)


def guards_of(interior: Interior) -> Guards:
    """What becomes of conditions that are decided in the ``interior`` of rows."""
    return Guards((), tuple(map(print_expr, interior.decided)))


@dataclass(frozen=True)
class _Launched:
    """What is known of a kernel: its ``guards`` as it is, and how its rows are ``split``."""

    guards: Guards | None
    split: _Split | None


class SplitLaunches:
    """The launches of a list of ``submissions`` on ``target``; sizes on which it depends what they
    are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._known = ByKernel(partial(_known, target=target))

    def launched(
        self, kernel: Kernel, sources: Mapping[str, ParamSource], items: Range
    ) -> tuple[Kernel, Guards | None]:
        """``kernel`` as a launch over ``items`` runs it, and what becomes of its conditions."""
        if not self._target.device.splits_rows:
            return kernel, None
        known = self._known[kernel]
        split = known.split
        if split is None or not self._is_faster(split, sources, items):
            return kernel, known.guards
        return split.kernel, split.guards

    def _is_faster(self, split: _Split, sources: Mapping[str, ParamSource], items: Range) -> bool:
        """Whether launches over ``items`` take less along rows."""
        target, ndim = self._target, split.kernel.ndim
        row = items[-1] if ndim == len(items) else items.size
        saved = target.costs.masked_store_seconds / target.device.compute_units
        least = target.costs.split_saved_seconds
        fewest = ceil(least * target.sub_group_size / (saved * split.stores))
        if not self._validity.are_at_least(tuple(items), fewest):
            return False
        shortest = target.shortest_split_row * target.sub_group_size
        if ndim == len(items):
            low, beyond = size_order(row, bits=2)
            if row < shortest:
                beyond = min(beyond, shortest)
            else:
                low = max(low, shortest)
            self._validity.demand_between(row, low, beyond)
        if row < shortest:
            return False
        known = KnownValues(split.kernel, launch_sizes(split.kernel, sources, self._submissions))
        interior, limits = split.interior, split.interior.limits
        inside = _items(row, interior.lows, interior.highs, known, surely=True)
        done = _items(row, limits.lows, limits.highs, known, surely=False)
        return inside >= target.least_split_share * done


def _items(
    row: int, lows: Sequence[Expr], highs: Sequence[Expr], known: KnownValues, surely: bool
) -> int:
    """The items of a ``row`` of so many within bounds: none where these are not known if ``surely``
    so, else all."""
    least, most = (_ANY, -1) if surely else (0, row - 1)
    values = [known.value(e) for e in lows]
    first = max([0, *(least if v is None else v for v in values)])
    values = [known.value(e) for e in highs]
    last = min([row - 1, *(most if v is None else v for v in values)])
    return last - first + 1


def _known(kernel: Kernel, target: Target) -> _Launched:
    if is_persistent(kernel):
        return _Launched(None, None)
    body = flatten_blocks(kernel.body)
    guard = range_guard([s for s in body if not isinstance(s, Block)])
    bounds = loop_bounds(body if guard is None else guard.guard.then)
    guards = Guards(tuple(map(print_expr, bounds)), ()) if bounds else None
    return _Launched(guards, _split(kernel, target))


def _split(kernel: Kernel, target: Target) -> _Split | None:
    """``kernel`` along rows; None where that is not possible, or saves nothing."""
    rows = rows_of(kernel)
    if rows is None or rows.interior is None or not is_beside_bounds(kernel, rows.body):
        return None
    if _is_chosen_alone(kernel, rows.body, rows.interior):
        return None
    arrays = {param.name for param in kernel.params}
    stores = sum(isinstance(s, Store) and s.array in arrays for s in statements(rows.body))
    if not stores:
        return None
    return _Split(replace(kernel, row_lanes=target.sub_group_size), stores, rows.interior)


def _is_chosen_alone(kernel: Kernel, body: Body, interior: Interior) -> bool:
    """Whether nothing but choices between values bounds a row, of elements that compilers load
    under masks: they make vectors of such themselves."""
    if any(isinstance(p, ArrayParam) and p.dtype.nbytes < MASKED_BYTES for p in kernel.params):
        return False
    chosen = any(isinstance(e, Select) and e.speculated for e in expressions(interior.body))
    if not chosen:
        return False
    return interior_of(replace(kernel, body=body), keeps_rows=True, eager=False) is None


def is_beside_bounds(kernel: Kernel, body: Body) -> bool:
    """Whether conditions bound a part of a row that are no bounds of the compiler's loop."""
    inner = with_loop_bounds(body)
    while (bound := only_condition(inner)) is not None:
        inner = bound.then
    return interior_of(replace(kernel, body=inner), keeps_rows=True) is not None
