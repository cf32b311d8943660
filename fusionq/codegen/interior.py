"""The part of a tile's rows in which conditions on a work-item's id are decided.

    if 0 < id and id < n - 1:          for max(0 + 1, …) <= id <= min(n - 1 - 1, …):
        inner                     →        inner
    else:
        edge

A row is the work-items that differ in their last id only.  Without its conditions its code is
vectorised without masks.  What is not decided stays as it is; the other work-items, at the edges,
run the whole code.  A condition with the variable of a loop is decided for all of its iterations,
and a loop over a window around the id, ``range(max(id - 3, 0), min(id + 4, n))``, counts up to 7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import NamedTuple

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.eager_conditions import may_be_speculated
from fusionq.codegen.if_conversion import as_choice, as_choices, loads_in
from fusionq.codegen.scoping import Body, flatten_blocks, read_unassigned
from fusionq.ir.comparisons import MIRRORED, NEGATED
from fusionq.ir.interval_arithmetic import Interval, arithmetic, within
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Call,
    Compare,
    CompareOp,
    Const,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Param,
    Select,
    StageCode,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import BOOL, INT64
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    map_operands,
    rewrite,
    rewrite_body,
    statements,
    subexpressions,
    takes_work_groups,
)

MOST_NODES = 400
"""Expressions of the largest kernel whose code is worth having twice."""

_FAR = 1 << 62
"""Beyond all ids; up to it, what is added to an id does not wrap."""

_DISTANT = 1 << 61
"""Up to it, what is subtracted from a bound of ids does not wrap."""

_SMALL = 1 << 32


@dataclass(frozen=True)
class Interior:
    """``body`` serves a row's work-items whose last id is at least all ``lows`` and at most all
    ``highs`` (int64), if all of ``where`` hold (bool), which are the same for the row.
    ``decided``: the conditions that this bounds."""

    lows: tuple[Expr, ...]
    highs: tuple[Expr, ...]
    where: tuple[Expr, ...]
    body: Body
    decided: tuple[Compare, ...] = ()


def parted(code: StageCode) -> tuple[Body, Interior | None]:
    """What a stage's code does for a work-item of a tile; and the interior of its rows, None if no
    condition bounds it."""
    if takes_work_groups(code.kernel):  # whose groups may reach beyond the range
        return flatten_blocks(code.kernel.body), None
    return parted_items(code.kernel, code.extents)


def parted_items(
    kernel: Kernel, extents: Sequence[Expr], nodes: int | None = None
) -> tuple[Body, Interior | None]:
    """The same where ``kernel`` runs below ``extents`` only, whatever memory is shared.  ``nodes``:
    its expressions, without those that say where temporaries lie."""
    body = _within_extents(flatten_blocks(kernel.body), extents)
    return body, interior_of(replace(kernel, body=body), nodes=nodes)


def interior_of(
    kernel: Kernel,
    row: Collection[str] = (),
    asked: Collection[Expr] = (),
    nodes: int | None = None,
    keeps_rows: bool = False,
    eager: bool = True,
) -> Interior | None:
    """The interior of the rows in which work-items do a kernel's body; None where no condition
    bounds it, or that has too many ``nodes`` (None: those of the body).  ``row``: variables that
    are the same for all of a row.  ``asked``: conditions that are, too, and hold in some rows only:
    they stay, and where ``keeps_rows``, so do all of these.  ``eager``: a condition on memory is
    computed without a branch before its loads, where these are inside of their arrays."""
    if (nodes_of(kernel.body) if nodes is None else nodes) > MOST_NODES:
        return None
    found = _Decider(kernel, frozenset(row), frozenset(asked), keeps_rows, eager)
    inner = found.body(kernel.body)
    lows, highs, where = (tuple(dict.fromkeys(x)) for x in (found.lows, found.highs, found.where))
    decided = tuple(dict.fromkeys(found.decided))
    return Interior(lows, highs, where, inner, decided) if lows or highs else None


def whole_rows(body: Body, interior: Interior | None) -> Interior | None:
    """``interior``, or where no condition bounds it, all of a row."""
    small = nodes_of(body) <= MOST_NODES
    return Interior((), (), (), body) if interior is None and small else interior


def nodes_of(body: Sequence[Stmt]) -> int:
    """The expressions of ``body``."""
    return sum(1 for _ in expressions(body))


def _within_extents(body: Body, extents: Sequence[Expr]) -> Body:
    """``body`` without conditions that hold for all ids below ``extents``."""
    true = {Compare("lt", ItemQuery("global_id", d), e) for d, e in enumerate(extents)}

    def expr(e: Expr) -> Expr:
        if e in true:
            return Const(BOOL, True)
        return _combined(e) if isinstance(e, Logical) else e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        return s.then if isinstance(s, If) and s.cond == Const(BOOL, True) else (s,)

    return rewrite_body(body, expr, stmt)


def _combined(e: Logical) -> Expr:
    neutral = Const(BOOL, e.op == "and")
    if e.lhs == neutral:
        return e.rhs
    return e.lhs if e.rhs == neutral else e


class _Offset(NamedTuple):
    """An id by ``sign``, to which ``distance`` is added before, from the first to the second of two
    values that are the same for a row, and from ``least`` to ``greatest`` behind that: constants
    and variables of loops."""

    sign: int
    least: int
    greatest: int
    distance: tuple[Expr, Expr] | None

    @property
    def added(self) -> Interval:
        return self.least, self.greatest

    def within_small(self, sign: int, added: Interval | None) -> _Offset | None:
        """With another sign, and with ``added`` if it is small."""
        if added is None or not within(added, (-_SMALL, _SMALL)):
            return None
        return _Offset(sign, *added, self.distance)


@dataclass
class _Decider:
    """Decides conditions, and collects what that takes."""

    kernel: Kernel
    row: frozenset[str]
    asked: frozenset[Expr]
    keeps_rows: bool
    eager: bool
    lows: list[Expr] = field(default_factory=list)
    highs: list[Expr] = field(default_factory=list)
    where: list[Expr] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)
    """The variables that certainly have a value before the statement that is looked at."""
    decided: list[Compare] = field(default_factory=list)

    def __post_init__(self) -> None:
        """``row``, ``asked``, ``keeps_rows``, ``eager``: see ``interior_of``."""
        self.arrays = {p.name for p in self.kernel.params if isinstance(p, ArrayParam)}
        self.last = self.kernel.ndim - 1
        every = list(statements(self.kernel.body))
        times = Counter(assigned_variable(s) for s in every)
        loops = Counter(s.var for s in every if isinstance(s, For))
        self.loops: dict[str, Interval] = {}
        """The least and the greatest value of the variables of the loops around a statement."""
        self.spans: dict[str, tuple[Expr, Expr]] = {}
        """The same of those whose bounds are no constants, but the same for a row."""
        self.values: dict[str, Expr] = {}
        for s in every:
            if isinstance(s, Assign) and times[s.name] == 1:
                value = self._known(s.value)
                used = list(subexpressions(value))
                if not any(
                    isinstance(e, Load)
                    or (isinstance(e, Var) and e.name not in self.row and loops[e.name] != 1)
                    for e in used
                ):
                    self.values[s.name] = value
        self.loaded: dict[str, Expr] = {}
        for s in every:
            if isinstance(s, Assign) and times[s.name] == 1:
                loads = filter(self._is_of_array, subexpressions(s.value))
                if (load := next(loads, None)) is not None:
                    self.loaded[s.name] = load

    @cached_property
    def unassigned(self) -> frozenset[str]:
        """See ``read_unassigned``: few kernels have conditions that ask for it."""
        return read_unassigned([self.kernel.body])

    def _known(self, expr: Expr) -> Expr:
        """``expr`` with the values of variables that have but one."""
        return rewrite(expr, lambda e: self.values.get(e.name, e) if isinstance(e, Var) else e)

    # ------------------------------------------------------------------------ statements
    def body(self, body: Sequence[Stmt]) -> Body:
        """``body`` for the interior."""
        return tuple(new for stmt in body for new in self._stmt(stmt))

    def _nested(self, body: Sequence[Stmt]) -> Body:
        """``body`` for the interior, which may not run."""
        before = set(self.assigned)
        made = self.body(body)
        self.assigned = before
        return made

    def _without_branch(self, stmt: If) -> tuple[Stmt, ...]:
        """What ``stmt`` assigns without a branch, where memory says whether it does and what is
        loaded for it is inside of its array in the interior: see ``if_conversion``."""
        if self.eager and self._asks_memory(stmt.cond):
            made = as_choices(stmt, self.assigned, self.unassigned)
            if made is not None and self._are_inside(loads_in(*(s.value for s in made))):
                return made
        return (stmt,)

    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case If():
                bigger = self._bigger(stmt.then, stmt.orelse)
                cond = self._decided(stmt.cond, bigger)
                if isinstance(cond, Const):
                    return self.body(stmt.then if cond.value else stmt.orelse)
                if self.eager and isinstance(cond, Logical):
                    cond = self._computed_whole(cond)
                then, orelse = self._nested(stmt.then), self._nested(stmt.orelse)
                return self._without_branch(replace(stmt, cond=cond, then=then, orelse=orelse))
            case For():
                return (self._loop(self._over_turns(stmt)),)
            case While():
                return (replace(stmt, body=self._nested(stmt.body)),)
            case Assign():
                value = self._expr(stmt.value)
                self.assigned.add(stmt.name)
                return (replace(stmt, value=value),)
            case Store():
                indices = tuple(self._expr(e) for e in stmt.indices)
                return (replace(stmt, indices=indices, value=self._expr(stmt.value)),)
        return (stmt,)

    def _loop(self, loop: For) -> For:
        """``loop`` with its body for the interior."""
        match loop:
            case For(var, Const(_, start), Const(_, stop), Const(_, step)) if step:
                turns = range(int(start), int(stop), int(step))
                if turns:
                    first, last = sorted((turns[0], turns[-1]))
                    self.loops[var] = first, last
            case For(var, start, stop, Const(_, step)) if step:
                if self._uniform(start) and self._uniform(stop):
                    begin, end = self._known(start), self._known(stop)
                    span = (begin, _plus(end, -1)) if step > 0 else (_plus(end, 1), begin)
                    self.spans[var] = span
        body = self._nested(loop.body)
        self.loops.pop(loop.var, None)
        self.spans.pop(loop.var, None)
        return replace(loop, body=body)

    def _over_turns(self, loop: For) -> For:
        """A loop over a window around the last id, ``range(max(i - 3, 0), min(i + 4, n))``, as one
        that counts the same for all of the interior, where the window is whole; others as they
        are."""
        if all(isinstance(e, Const) for e in (loop.start, loop.stop)) or loop.binds:
            return loop
        lows, highs, decided = len(self.lows), len(self.highs), len(self.decided)
        first, stop = (self._offset(self._expr(self._known(e))) for e in (loop.start, loop.stop))
        if not (
            first is not None and stop is not None
            and first.sign == stop.sign == 1 and first.distance is stop.distance is None
            and first.least == first.greatest and stop.least == stop.greatest
        ):  # fmt: skip
            del self.lows[lows:], self.highs[highs:], self.decided[decided:]
            return loop
        place = _plus(ItemQuery("global_id", self.last), first.least)

        def at(e: Expr) -> Expr:
            return Binary(INT64, "add", place, e) if e == Var(INT64, loop.var) else e

        count = Const(INT64, stop.least - first.least)
        body = rewrite_body(loop.body, at)
        return replace(loop, start=Const(INT64, 0), stop=count, body=body)

    def _expr(self, expr: Expr) -> Expr:
        match expr:
            case Select():
                bigger = self._bigger(*((Assign("", e),) for e in (expr.then, expr.orelse)))
                cond = self._decided(expr.cond, bigger)
                if isinstance(cond, Const):
                    return self._expr(expr.then if cond.value else expr.orelse)
                return self._chosen(replace(expr, cond=cond))
            case Logical() if self.eager:
                return self._computed_whole(expr)
            case Call(type, "minimum" | "pymin" | "maximum" | "pymax", args) if type == INT64:
                a, b = map(self._expr, args)  # the lesser of what is the greater
                op: CompareOp = "le" if expr.function in ("minimum", "pymin") else "ge"
                for one, other in ((a, b), (b, a)):
                    if self._offset(one) is not None and self._bounded(Compare(op, one, other)):
                        return one
                return replace(expr, args=(a, b))
            case Binary(type, "mod", lhs, rhs) if type == INT64:
                place = self._within_period(lhs, rhs)
                if place is not None:
                    return place
        return map_operands(expr, self._expr)

    def _within_period(self, place: Expr, period: Expr) -> Expr | None:
        """What ``place % period`` is where that leaves ``place`` as it is, or takes away the one
        period that was added to it, ``(id - 1 + period) % period``; None where it is neither."""
        bounds = self._bounds
        rest = _without_addend(self._known(place), self._known(period))
        if rest is not None:
            if self._offset(rest) is None or not self._uniform(period):
                return None
            # Of a longer one the sum might have wrapped around.
            self.where.append(Compare("le", self._known(period), Const(INT64, _FAR)))
            place = rest
        elif self._offset(place) is None:
            return None
        inside = Compare("ge", place, Const(INT64, 0)), Compare("lt", place, period)
        if self._all_bounded(inside):
            return place
        self._forget(bounds)
        return None

    def _forget(self, bounds: tuple[int, int, int, int]) -> None:
        """All bounds but the first ones."""
        lows, highs, where, decided = bounds
        del self.lows[lows:], self.highs[highs:], self.where[where:], self.decided[decided:]

    @property
    def _bounds(self) -> tuple[int, int, int, int]:
        """How many bounds there are."""
        return len(self.lows), len(self.highs), len(self.where), len(self.decided)

    # ------------------------------------------------------------------------ conditions
    def _computed_whole(self, cond: Logical) -> Expr:
        """``cond`` without branches before loads that are inside of their arrays in the interior:
        see ``eager_conditions``."""
        lhs, rhs = self._expr(cond.lhs), self._expr(cond.rhs)
        loads = [e for e in subexpressions(rhs) if isinstance(e, Load)]
        if (
            loads
            and self._is_of_memory(lhs)
            and may_be_speculated(rhs, self.unassigned)
            and self._are_inside(loads)
        ):
            return Binary(BOOL, cond.op, lhs, rhs)
        return replace(cond, lhs=lhs, rhs=rhs)

    def _is_of_memory(self, cond: Expr) -> bool:
        """Whether memory says what ``cond`` is, so that what is read behind it counts as read by
        all work-items: tables of constants, which analysis knows, do not."""
        match cond:
            case Logical() | Binary(op="and" | "or"):
                return self._is_of_memory(cond.lhs) and self._is_of_memory(cond.rhs)
            case Unary(op="not"):
                return self._is_of_memory(cond.operand)
        return any(map(self._is_of_array, subexpressions(rewrite(cond, self._loaded))))

    def _chosen(self, expr: Select) -> Expr:
        """``expr``, both sides of which are computed where that shows in nothing: see
        ``if_conversion``."""
        cond, then, orelse = map(self._expr, (expr.cond, expr.then, expr.orelse))
        made = Select(expr.type, cond, then, orelse)
        if self.eager and self._asks_memory(made.cond):
            chosen = as_choice(made, self.unassigned)
            if chosen is not None and self._are_inside(loads_in(chosen)):
                return chosen
        return made

    def _asks_memory(self, cond: Expr) -> bool:
        """Whether memory says, for some work-items at least, what ``cond`` is."""
        return any(map(self._is_of_array, subexpressions(rewrite(cond, self._loaded))))

    def _is_of_array(self, expr: Expr) -> bool:
        return isinstance(expr, Load) and expr.array in self.arrays

    def _loaded(self, expr: Expr) -> Expr:
        """A load instead of a variable that has but one value, of memory."""
        if isinstance(expr, Var) and expr.name in self.loaded:
            return self.loaded[expr.name]
        return expr

    def _are_inside(self, loads: Sequence[Load]) -> bool:
        """Bound the interior so that all of ``loads`` are inside of their arrays; by none of them
        unless by all."""
        before = len(self.lows), len(self.highs), len(self.where)
        decided = len(self.decided)
        found = all(map(self._is_inside, loads))
        del self.decided[decided:]  # no conditions of the kernel's
        if not found:
            del self.lows[before[0] :], self.highs[before[1] :], self.where[before[2] :]
        return found

    def _is_inside(self, load: Load) -> bool:
        if load.array not in self.arrays:
            return False
        for dim, index in enumerate(load.indices):
            inside = (
                Compare("ge", index, Const(INT64, 0)),
                Compare("lt", index, Extent(load.array, dim)),
            )
            if self._offset(index) is not None:
                if not self._all_bounded(inside):
                    return False
            elif index.type == INT64 and self._uniform(index):
                self.where += [replace(c, lhs=self._known(index)) for c in inside]
            else:
                return False
        return True

    def _bigger(self, then: Body, orelse: Body) -> bool | None:
        """Whether ``then`` is more like what most work-items do, each for its own id, than
        ``orelse``: it has the last id where that has none, or is twice as big; None where it is
        neither, nor the other way round."""
        has_ids, others = map(self._is_of_ids, (then, orelse))
        if has_ids != others:
            return has_ids
        size, of_others = map(_size, (then, orelse))
        return True if size >= 2 * of_others else False if of_others >= 2 * size else None

    def _is_of_ids(self, body: Body) -> bool:
        """Whether the last id is in ``body``, also by way of variables."""
        return any(
            self._is_last(e)
            or (
                isinstance(e, Var)
                and any(map(self._is_last, subexpressions(self.values.get(e.name, e))))
            )
            for e in expressions(body)
        )

    def _is_last(self, e: Expr) -> bool:
        return isinstance(e, ItemQuery) and (e.query != "global_id" or e.dim == self.last)

    def _decided(self, cond: Expr, bigger: bool | None) -> Expr:
        """``cond``, or what is left of it where the rest is as it is for most work-items."""
        known = self._known(cond)
        if cond in self.asked or not _has_ids(known):
            return cond  # the same for all work-items
        wanted = _likely(known, bigger)
        if wanted is None:
            return cond
        left = self._assume(known, wanted)
        return cond if left == known else left

    def _assume(self, cond: Expr, wanted: bool) -> Expr:
        """What is left of ``cond`` in the interior, which is where it is ``wanted``."""
        match cond:
            case Logical(op=op) if (op == "and") == wanted:
                lhs, rhs = self._assume(cond.lhs, wanted), self._assume(cond.rhs, wanted)
                return _combined(replace(cond, lhs=lhs, rhs=rhs))
            case Unary(op="not"):
                left = self._assume(cond.operand, not wanted)
                if isinstance(left, Const):
                    return Const(BOOL, not left.value)
                return replace(cond, operand=left)
        if self._uniform(cond):
            if self.keeps_rows:
                return cond
            self.where.append(cond if wanted else Unary(BOOL, "not", cond))
            return Const(BOOL, wanted)
        if isinstance(cond, Compare):
            asked = cond if wanted else replace(cond, op=NEGATED[cond.op])
            if self._bounded(asked):
                return Const(BOOL, wanted)
        return cond

    def _all_bounded(self, conds: Sequence[Compare]) -> bool:
        """Bound the interior so that all of ``conds`` hold; by none of them unless by all."""
        bounds = self._bounds
        if all(map(self._bounded, conds)):
            return True
        self._forget(bounds)
        return False

    def _bounded(self, cond: Compare) -> bool:
        """Bound the interior so that ``cond`` holds, if it is one on the last id."""
        op, lhs, rhs = cond.op, self._known(cond.lhs), self._known(cond.rhs)
        if self._offset(lhs) is None:
            op, lhs, rhs = MIRRORED[op], rhs, lhs
        form = self._offset(lhs)
        if form is None or not self._uniform(rhs) or rhs.type != INT64:
            return False
        sign, least, greatest, distance = form
        if op in ("eq", "ne") and (least != greatest or _spans(distance)):
            return False
        offset = greatest if op in ("lt", "le") else least
        if isinstance(rhs, Const):
            if abs(rhs.value) > _SMALL:
                return False
            end: Expr = Const(INT64, sign * (int(rhs.value) - offset))
        else:
            near = Call(INT64, "maximum", (rhs, Const(INT64, -_FAR)))
            near = Call(INT64, "minimum", (near, Const(INT64, _FAR)))
            end = _plus(near, -offset) if sign > 0 else Binary(
                INT64, "sub", Const(INT64, offset), near
            )  # fmt: skip
        if sign < 0:
            op = MIRRORED[op]
        if distance is not None:
            farthest = distance[1] if op in ("lt", "le") else distance[0]
            end = Binary(INT64, "sub", end, farthest)
        if op in ("lt", "le") and isinstance(end, Const) and _is_small(end.value):
            return False
        match op:
            case "lt":
                self.highs.append(_plus(end, -1))
            case "le":
                self.highs.append(end)
            case "gt":
                self.lows.append(_plus(end, 1))
            case "ge":
                self.lows.append(end)
            case "ne" if isinstance(end, Const) or end in self.lows:
                self.lows.append(_plus(end, 1))
            case "ne":
                self.highs.append(_plus(end, -1))
            case _:
                return False
        for each in () if distance is None else dict.fromkeys(distance):
            # With one that is farther away, sums might have wrapped around.
            if not isinstance(each, Var):
                self.where.append(Compare("ge", each, Const(INT64, -_DISTANT)))
                self.where.append(Compare("le", each, Const(INT64, _DISTANT)))
        self.decided.append(replace(cond, lhs=self._known(cond.lhs), rhs=self._known(cond.rhs)))
        return True

    def _offset(self, expr: Expr) -> _Offset | None:
        """The last id in ``expr``, and what is added to it."""
        last = ItemQuery("global_id", self.last)
        match self._known(expr):
            case ItemQuery("global_id", dim) if dim == self.last:
                return _Offset(1, 0, 0, None)
            case Binary(_, "add", lhs, Var(_, name) as distance) if (
                lhs == last and name in self.row
            ):
                return _Offset(1, 0, 0, (distance, distance))
            case Binary(type, "add" | "sub" as op, lhs, rhs) if type == INT64:
                form, added = self._offset(lhs), self._small(rhs)
                if form is not None and added is not None:
                    return form.within_small(form.sign, arithmetic(op, form.added, added))
                form, added = self._offset(rhs), self._small(lhs)
                if form is not None and added is not None:
                    sign = form.sign if op == "add" else -form.sign
                    return form.within_small(sign, arithmetic(op, added, form.added))
                return self._at_distance(op, lhs, rhs)
        return None

    def _at_distance(self, op: str, lhs: Expr, rhs: Expr) -> _Offset | None:
        """The id of which, and of what is the same for a row, ``lhs`` and ``rhs`` are the sum, or
        the difference."""
        form = self._offset(lhs)
        if form is not None:
            sign, added, same = form.sign, form.added, rhs
            subtracts = (op == "sub") == (sign > 0)
        elif (form := self._offset(rhs)) is not None:
            sign, added, same = form.sign, form.added, lhs
            if op == "sub":
                sign, added = -sign, (-added[1], -added[0])
            subtracts = sign < 0
        if form is None:
            return None
        same = self._known(same)
        if isinstance(same, Var) and same.name in self.spans:
            first, last = self.spans[same.name]
        elif self._uniform(same):
            first = last = same
        else:
            return None
        if subtracts:
            zero = Const(INT64, 0)
            first, last = (Binary(INT64, "sub", zero, e) for e in (last, first))
        if form.distance is not None:
            nearer, farther = form.distance
            first = Binary(INT64, "add", nearer, first)
            last = Binary(INT64, "add", farther, last)
        return _Offset(sign, *added, (first, last))

    def _small(self, expr: Expr) -> Interval | None:
        """The least and the greatest value of constants and variables of loops, and what is
        computed of them; None where they may be large, or depend on more."""
        found: Interval | None = None
        match expr:
            case Const(type, value) if type == INT64:
                found = int(value), int(value)
            case Var(type, name) if type == INT64:
                found = self.loops.get(name)
            case Binary(type, op, lhs, rhs) if type == INT64:
                a, b = self._small(lhs), self._small(rhs)
                if a is not None and b is not None:
                    found = arithmetic(op, a, b)
        return found if found is not None and within(found, (-_SMALL, _SMALL)) else None

    def _uniform(self, expr: Expr) -> bool:
        """Whether all work-items of a row have the same value, which is known before them."""
        return all(
            not isinstance(e, Load)
            and not (isinstance(e, Var) and e.name not in self.row)
            and not (
                isinstance(e, ItemQuery)
                and not e.query.endswith("_range")
                and (e.query != "global_id" or e.dim == self.last)
            )
            for e in subexpressions(self._known(expr))
        )


def _spans(distance: tuple[Expr, Expr] | None) -> bool:
    """Whether there are several distances."""
    return distance is not None and distance[0] != distance[1]


def _without_addend(total: Expr, addend: Expr) -> Expr | None:
    """What is left of a sum of int64 without one ``addend`` of it; None where it is none."""
    match total:
        case Binary(type, "add" | "sub" as op, lhs, rhs) if type == INT64:
            if rhs == addend and op == "add":
                return lhs
            if lhs == addend and op == "add":
                return rhs
            rest = _without_addend(lhs, addend)
            if rest is not None:
                return replace(total, lhs=rest)
            rest = _without_addend(rhs, addend) if op == "add" else None
            return None if rest is None else replace(total, rhs=rest)
        case _:
            return None


def _is_small(bound: int | float) -> bool:
    """Whether the work-items below ``bound`` are no interior."""
    return bound < CODE_LIMITS.shortest_interior


def _likely(cond: Expr, bigger: bool | None) -> bool | None:
    """What a condition is for most work-items; None if there is no telling.  ``bigger``: what holds
    where more is done, if that says anything."""
    match cond:
        case Compare(op=op, lhs=lhs, rhs=rhs) if not _has_ids(lhs) and _has_ids(rhs):
            return _likely(Compare(MIRRORED[op], rhs, lhs), bigger)
        case Compare(op="eq"):
            return False
        case Compare(op="ne"):
            return True
        case Compare(op=op, rhs=Const(type, value)) if type == INT64 and _is_small(value):
            return op in ("gt", "ge")
        case Compare(op=op, rhs=limit):
            # Arguments that ids are above are widths of edges, what is computed the last ids.
            most = op in ("lt", "le") or isinstance(limit, Param)
            return most if bigger is None else bigger
        case Unary(op="not"):
            inner = _likely(cond.operand, None if bigger is None else not bigger)
            return None if inner is None else not inner
        case Logical(op=op):
            sides = {_likely(side, op == "and") for side in (cond.lhs, cond.rhs)}
            return op == "and" if sides == {op == "and"} else None
    return None


def _has_ids(expr: Expr) -> bool:
    return any(isinstance(e, ItemQuery) for e in subexpressions(expr))


def _plus(expr: Expr, constant: int) -> Expr:
    if isinstance(expr, Const):
        return Const(INT64, int(expr.value) + constant)
    return Binary(INT64, "add", expr, Const(INT64, constant)) if constant else expr


def _size(body: Sequence[Stmt]) -> int:
    return sum(1 for _ in statements(body)) + nodes_of(body)
