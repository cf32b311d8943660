"""The bounds of the part of a row in which conditions on the last id hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.codegen.likely_conditions import is_few
from fusionq.codegen.row_forms import RowForms, plus, without_addend
from fusionq.codegen.row_limits import FAR, bound_by
from fusionq.ir.nodes import Compare, Const, Expr, Extent, Load, Var
from fusionq.ir.types import INT64

_DISTANT = 1 << 61
"""Up to it, what is subtracted from a bound of ids does not wrap."""


class InteriorBounds:
    """Collects them: see ``interior.Interior``."""

    def __init__(self, forms: RowForms) -> None:
        self._forms = forms
        self.lows: list[Expr] = []
        self.highs: list[Expr] = []
        self.where: list[Expr] = []
        self.decided: list[Compare] = []

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many there are."""
        return len(self.lows), len(self.highs), len(self.where), len(self.decided)

    def forget(self, counts: tuple[int, int, int, int]) -> None:
        """All but the first ones."""
        lows, highs, where, decided = counts
        del self.lows[lows:], self.highs[highs:], self.where[where:], self.decided[decided:]

    def bound_all(self, conds: Sequence[Compare]) -> bool:
        """Bound the interior so that all of ``conds`` hold; by none of them unless by all."""
        bounds = self.counts
        if all(map(self.bound, conds)):
            return True
        self.forget(bounds)
        return False

    def bound(self, cond: Compare) -> bool:
        """Bound the interior so that ``cond`` holds, if it is one on the last id."""
        found = bound_by(self._forms, cond)
        if found is None:
            return False
        op, end, distance = found.op, found.end, found.form.distance
        if op in ("lt", "le") and isinstance(end, Const) and is_few(end.value):
            return False
        match op:
            case "lt":
                self.highs.append(plus(end, -1))
            case "le":
                self.highs.append(end)
            case "gt":
                self.lows.append(plus(end, 1))
            case "ge":
                self.lows.append(end)
            case "ne" if isinstance(end, Const) or end in self.lows:
                self.lows.append(plus(end, 1))
            case "ne":
                self.highs.append(plus(end, -1))
            case _:
                return False
        for each in () if distance is None else dict.fromkeys(distance):
            # With one that is farther away, sums might have wrapped around.
            if not isinstance(each, Var):
                self.where.append(Compare("ge", each, Const(INT64, -_DISTANT)))
                self.where.append(Compare("le", each, Const(INT64, _DISTANT)))
        known = self._forms.known
        self.decided.append(replace(cond, lhs=known(cond.lhs), rhs=known(cond.rhs)))
        return True

    def within_period(self, place: Expr, period: Expr) -> Expr | None:
        """What ``place % period`` is where that leaves ``place`` as it is, or takes away the one
        period that was added to it, ``(id - 1 + period) % period``; None where it is neither."""
        bounds = self.counts
        rest = without_addend(self._forms.known(place), self._forms.known(period))
        if rest is not None:
            if self._forms.offset(rest) is None or not self._forms.uniform(period):
                return None
            # Of a longer one the sum might have wrapped around.
            self.where.append(Compare("le", self._forms.known(period), Const(INT64, FAR)))
            place = rest
        elif self._forms.offset(place) is None:
            return None
        inside = Compare("ge", place, Const(INT64, 0)), Compare("lt", place, period)
        if self.bound_all(inside):
            return place
        self.forget(bounds)
        return None

    def are_inside(self, loads: Sequence[Load]) -> bool:
        """Bound the interior so that all of ``loads`` are inside of their arrays; by none of them
        unless by all."""
        before = self.counts
        found = all(map(self._is_inside, loads))
        if not found:
            self.forget(before)
        del self.decided[before[3] :]  # no conditions of the kernel's
        return found

    def _is_inside(self, load: Load) -> bool:
        for dim, index in enumerate(load.indices):
            inside = (
                Compare("ge", index, Const(INT64, 0)),
                Compare("lt", index, Extent(load.array, dim)),
            )
            if self._forms.offset(index) is not None:
                if not self.bound_all(inside):
                    return False
            elif index.type == INT64 and self._forms.uniform(index):
                self.where += [replace(c, lhs=self._forms.known(index)) for c in inside]
            else:
                return False
        return True
