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
from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace
from functools import cached_property

from fusionq.base.frozen import dataclass
from fusionq.codegen.eager_conditions import may_be_speculated
from fusionq.codegen.if_conversion import as_choice, as_choices, loads_in
from fusionq.codegen.interior_bounds import InteriorBounds
from fusionq.codegen.likely_conditions import has_ids, likely
from fusionq.codegen.row_forms import RowForms, plus
from fusionq.codegen.row_limits import RowLimits, row_limits
from fusionq.codegen.scoping import Body, flatten_blocks, read_unassigned
from fusionq.ir.comparisons import NEGATED
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Call,
    Compare,
    CompareOp,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
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

Exprs = tuple[Expr, ...]

MOST_NODES = 400
"""Expressions of the largest kernel whose code is worth having twice."""


@dataclass(frozen=True)
class Interior:
    """``body`` serves a row's work-items whose last id is at least all ``lows`` and at most all
    ``highs`` (int64), if all of ``where`` hold (bool), which are the same for the row.
    ``decided``: the conditions that this bounds.  ``limits``: those of all work-items of a row that
    do anything, inside or not."""

    lows: tuple[Expr, ...]
    highs: tuple[Expr, ...]
    where: tuple[Expr, ...]
    body: Body
    decided: tuple[Compare, ...] = ()
    limits: RowLimits = RowLimits()

    def bounds(self, value: Callable[[Expr], Expr]) -> tuple[Exprs, Exprs, Exprs]:
        """Each ``value`` of ``lows``, ``highs`` and ``where``."""
        lows, highs, where = (tuple(map(value, e)) for e in (self.lows, self.highs, self.where))
        return lows, highs, where


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
    limits = row_limits(kernel.body, found.forms)
    inner = found.body(kernel.body)
    of = found.bounds
    lows, highs, where = (tuple(dict.fromkeys(x)) for x in (of.lows, of.highs, of.where))
    decided = tuple(dict.fromkeys(of.decided))
    return Interior(lows, highs, where, inner, decided, limits) if lows or highs else None


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


@dataclass
class _Decider:
    """Decides conditions, and collects what that takes."""

    kernel: Kernel
    row: frozenset[str]
    asked: frozenset[Expr]
    keeps_rows: bool
    eager: bool
    assigned: set[str] = field(default_factory=set)
    """The variables that certainly have a value before the statement that is looked at."""

    def __post_init__(self) -> None:
        """``row``, ``asked``, ``keeps_rows``, ``eager``: see ``interior_of``."""
        self.arrays = {p.name for p in self.kernel.params if isinstance(p, ArrayParam)}
        self.forms = RowForms(self.kernel, self.row)
        self.bounds = InteriorBounds(self.forms)
        every = list(statements(self.kernel.body))
        times = Counter(assigned_variable(s) for s in every)
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
                cond = self._expr(cond)
                then, orelse = self._nested(stmt.then), self._nested(stmt.orelse)
                return self._without_branch(replace(stmt, cond=cond, then=then, orelse=orelse))
            case For():
                return (self._loop(self._over_turns(stmt)),)
            case While():
                cond = self._expr(stmt.cond)
                return (replace(stmt, cond=cond, body=self._nested(stmt.body)),)
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
                    self.forms.loops[var] = first, last
            case For(var, start, stop, Const(_, step)) if step:
                if self.forms.uniform(start) and self.forms.uniform(stop):
                    begin, end = self.forms.known(start), self.forms.known(stop)
                    span = (begin, plus(end, -1)) if step > 0 else (plus(end, 1), begin)
                    self.forms.spans[var] = span
        body = self._nested(loop.body)
        self.forms.loops.pop(loop.var, None)
        self.forms.spans.pop(loop.var, None)
        return replace(loop, body=body)

    def _over_turns(self, loop: For) -> For:
        """A loop over a window around the last id, ``range(max(i - 3, 0), min(i + 4, n))``, as one
        that counts the same for all of the interior, where the window is whole; others as they
        are."""
        if all(isinstance(e, Const) for e in (loop.start, loop.stop)) or loop.binds:
            return loop
        before, forms = self.bounds.counts, self.forms
        ends = loop.start, loop.stop
        first, stop = (forms.offset(self._expr(forms.known(e))) for e in ends)
        if not (
            first is not None and stop is not None
            and first.sign == stop.sign == 1 and first.distance is stop.distance is None
            and first.factor == stop.factor
            and first.least == first.greatest and stop.least == stop.greatest
        ):  # fmt: skip
            self.bounds.forget(before)
            return loop
        id: Expr = ItemQuery("global_id", self.forms.last)
        if first.factor != 1:
            id = Binary(INT64, "mul", Const(INT64, first.factor), id)
        place = plus(id, first.least)

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
                    asked = Compare(op, one, other)
                    if self.forms.offset(one) is not None and self.bounds.bound(asked):
                        return one
                return replace(expr, args=(a, b))
            case Binary(type, "mod", lhs, rhs) if type == INT64:
                place = self.bounds.within_period(lhs, rhs)
                if place is not None:
                    return place
        return map_operands(expr, self._expr)

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
        return all(map(self._is_of_array, loads)) and self.bounds.are_inside(loads)

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
                and any(map(self._is_last, subexpressions(self.forms.values.get(e.name, e))))
            )
            for e in expressions(body)
        )

    def _is_last(self, e: Expr) -> bool:
        return isinstance(e, ItemQuery) and (e.query != "global_id" or e.dim == self.forms.last)

    def _decided(self, cond: Expr, bigger: bool | None) -> Expr:
        """``cond``, or what is left of it where the rest is as it is for most work-items."""
        known = self.forms.known(cond)
        if cond in self.asked or not has_ids(known):
            return cond  # the same for all work-items
        wanted = likely(known, bigger)
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
        if self.forms.uniform(cond):
            if self.keeps_rows:
                return cond
            self.bounds.where.append(cond if wanted else Unary(BOOL, "not", cond))
            return Const(BOOL, wanted)
        if isinstance(cond, Compare):
            asked = cond if wanted else replace(cond, op=NEGATED[cond.op])
            if self.bounds.bound(asked):
                return Const(BOOL, wanted)
        return cond


def _size(body: Sequence[Stmt]) -> int:
    return sum(1 for _ in statements(body)) + nodes_of(body)
