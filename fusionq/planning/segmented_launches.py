"""Launches whose work-groups go along rows that are cut where quotients of ids change.

A work-item that finds its place by dividing its id, ``i = id // m`` and ``j = id % m``, divides for
itself, and the compiler does not see that neighbours access neighbours.  In segments
(``codegen.row_segments``) that is divided once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.submission import Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.target import Target
from fusionq.codegen.along_rows import Rows, rows_of
from fusionq.codegen.row_segments import row_segments
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Binary, Cast, Const, Expr, Extent, Kernel, Param
from fusionq.ir.printer import print_expr
from fusionq.ir.types import INT64
from fusionq.ir.walk import subexpressions
from fusionq.language.ranges import Range
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource, RangeSource
from fusionq.planning.by_kernel import ByKernel
from fusionq.planning.cost import items_for_build, tile_seconds
from fusionq.planning.item_work import item_work
from fusionq.planning.known_values import KnownValues, launch_sizes, sizes_of
from fusionq.planning.plan import Guards
from fusionq.planning.split_launches import guards_of

FEWEST_STEPS = 2
"""Of a segment, by all lanes, at least: what begins and ends it takes as long as some steps."""

_SIGNS = {"add": "+", "sub": "-", "mul": "*"}
_BOUND = 1 << 62
"""Beyond what divisors are made of: none wraps."""


@dataclass(frozen=True)
class Cut:
    """A ``kernel`` whose ``rows`` are cut."""

    kernel: Kernel
    rows: Rows

    @property
    def guards(self) -> Guards:
        """What becomes of its conditions, and what ids are divided by."""
        segments, interior = self.rows.segments, self.rows.interior
        assert segments is not None
        guards = Guards((), ()) if interior is None else guards_of(interior)
        return replace(guards, divisors=tuple(map(print_expr, segments.divisors)))


class SegmentedLaunches:
    """The launches of a list of ``submissions`` on ``target``; sizes and scalars on which it
    depends what they are ``validity`` remembers."""

    def __init__(
        self, submissions: Sequence[Submission], target: Target, validity: ListValidity
    ) -> None:
        self._submissions = submissions
        self._target = target
        self._validity = validity
        self._cut = ByKernel(partial(_cut, lanes=target.sub_group_size))
        self._demanded: dict[tuple[str, tuple[Source, ...]], bool] = {}

    def launched(
        self, kernel: Kernel, sources: Mapping[str, ParamSource], items: Range
    ) -> Cut | None:
        """``kernel`` as a launch over ``items`` runs it in segments; None where it does not."""
        if not self._target.device.jams_rows or not items.size:
            return None
        cut = self._cut[kernel]
        if cut is None:
            return None
        sizes = launch_sizes(kernel, sources, self._submissions)
        sizes = replace(sizes, items=tuple(items) if kernel.ndim == len(items) else (items.size,))
        seconds = tile_seconds(item_work(kernel, sizes, self._target), 0.0, self._target)
        earning = items_for_build(seconds, self._target)
        if earning is None or not self._validity.are_at_least(tuple(items), earning):
            return None
        return cut if self._are_long(cut, sources) else None

    def _are_long(self, cut: Cut, sources: Mapping[str, ParamSource]) -> bool:
        """Whether all segments are, but for the last ones of rows; that has to stay so."""
        assert cut.rows.segments is not None
        places: dict[Source, str] = {}
        fewest = FEWEST_STEPS * self._target.sub_group_size
        texts: list[str] = []
        for divisor in cut.rows.segments.divisors:
            values = [_text(e, sources, places) for e in subexpressions(divisor)]
            if None in values:
                return False
            whole = _text(divisor, sources, places)
            texts += [f"-{_BOUND} < {value} < {_BOUND}" for value in values]
            texts.append(f"{whole} >= {fewest}")
        return self._demand(" and ".join(dict.fromkeys(texts)), places)

    def _demand(self, text: str, places: Mapping[Source, str]) -> bool:
        """Whether ``text`` is true of the values at ``places`` today; that has to stay so."""
        key = text, tuple(places)
        if key not in self._demanded:
            named = {name: place for place, name in places.items()}
            condition = Condition(text, tuple(named), (tuple(named),))
            values = {name: place.value(self._submissions) for name, place in named.items()}
            holds = self._demanded[key] = condition.holds(values)
            if not holds:
                condition = replace(condition, text=f"not ({text})")
            self._validity.demand(condition, named)
        return self._demanded[key]


def launched_in_segments(submission: Submission, target: Target) -> bool:
    """Whether a launch of ``submission`` by itself is in segments, for its sizes of today."""
    if not target.device.jams_rows or not isinstance(submission.range, Range):
        return False
    divisors = _divisors(submission.ir)
    if not divisors:
        return False
    known = KnownValues(submission.ir, sizes_of(submission))
    fewest = FEWEST_STEPS * target.sub_group_size
    return all((known.value(d) or 0) >= fewest for d in divisors)


@cached_by_identity
def _divisors(kernel: Kernel) -> tuple[Expr, ...]:
    """What ids of ``kernel`` are divided by."""
    segments = row_segments(kernel, flatten_blocks(kernel.body))
    return () if segments is None else segments.divisors


def _cut(kernel: Kernel, lanes: int) -> Cut | None:
    made = replace(kernel, row_lanes=lanes, cuts_rows=True)
    rows = rows_of(made)
    return None if rows is None or rows.segments is None else Cut(made, rows)


def _text(expr: Expr, sources: Mapping[str, ParamSource], places: dict[Source, str]) -> str | None:
    """``expr``, which is made of arguments, as a Python expression over the names of ``places``, to
    which it adds; None for what takes more than sums and products."""
    match expr:
        case Const():
            return str(int(expr.value))
        case Cast(_, Param() as operand) if expr.type == INT64 and operand.type.bits < 64:
            return _text(operand, sources, places)
        case Binary(_, "add" | "sub" | "mul" as op, lhs, rhs):
            left, right = (_text(e, sources, places) for e in (lhs, rhs))
            return None if left is None or right is None else f"({left} {_SIGNS[op]} {right})"
        case Binary(_, "floordiv", lhs, Const(_, divisor)) if int(divisor) > 0:
            left = _text(lhs, sources, places)
            return None if left is None else f"({left} // {int(divisor)})"
        case Extent(array, dim):
            source = sources[array]
            assert isinstance(source, ArgumentSource)
            place = Source(source.submission, source.argument, dim)
        case Param(_, name):
            match sources[name]:
                case ArgumentSource(submission, argument):
                    place = Source(submission, argument, None)
                case ExtentSource(submission, argument, dim):
                    place = Source(submission, argument, dim)
                case RangeSource(submission, dim):
                    place = Source(submission, None, dim)
                case _:
                    return None
        case _:
            return None
    return places.setdefault(place, f"n{len(places)}")
