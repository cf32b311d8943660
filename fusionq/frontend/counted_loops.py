"""While loops that count as for loops (induction variable analysis).

    j = l                                for j in range(l, n, 64):
    while j < n:              →              s += a[j]
        s += a[j]
        j += 64

Analysis knows which elements a for loop touches, and code generation how often it runs.  A while
loop compares its limit anew before each iteration, so that has to be nothing that the loop changes;
where the counter is read later, the loop stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from fusionq.ir.comparisons import MIRRORED
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Load,
    Stmt,
    Var,
    While,
)
from fusionq.ir.types import BOOL, INT64
from fusionq.ir.walk import (
    assigned_variable,
    nested_bodies,
    rewrite_body,
    statement_expressions,
    statements,
    subexpressions,
)

Body = tuple[Stmt, ...]


def with_counted_loops(body: Body, fresh: Callable[[str], str]) -> Body:
    """``body`` with for loops in place of while loops that count; ``fresh`` makes names for their
    variables of those wanted."""
    if not any(isinstance(s, While) for s in statements(body)):
        return body
    return _counted(body, (), fresh, _sizes(body))


Sizes = Mapping[str, Expr]
"""The values of variables that are set once, to a size of the range or of a work-group."""


def _counted(body: Body, later: Sequence[Stmt], fresh: Callable[[str], str], sizes: Sizes) -> Body:
    """``body`` with its loops counted; ``later``: what may run behind it."""
    made: list[Stmt] = []
    for place, stmt in enumerate(body):
        after = [*body[place + 1 :], *later]
        match stmt:
            case If():
                branches = stmt.then, stmt.orelse
                then, orelse = (_counted(p, after, fresh, sizes) for p in branches)
                stmt = replace(stmt, then=then, orelse=orelse)
            case For() | While():
                # Behind an iteration comes the next one, or what follows the loop.
                again = If(Const(BOOL, True), (stmt,))
                stmt = replace(stmt, body=_counted(stmt.body, [again, *after], fresh, sizes))
        counter = _counter(stmt, sizes) if isinstance(stmt, While) else None
        if counter is None or _use(counter.name, after) == "read":
            made.append(stmt)
            continue
        assert isinstance(stmt, While)
        name = fresh(counter.name)
        start = _start(made, counter.name)
        inside = _renamed(stmt.body[:-1], counter.name, name)
        made.append(For(name, start, counter.stop, counter.step, inside, stmt.span))
    return tuple(made)


class _Counter(NamedTuple):
    """A loop's counter, which goes on in steps of ``step``, up or down to ``stop``."""

    name: str
    stop: Expr
    step: Expr


def _counter(loop: While, sizes: Sizes) -> _Counter | None:
    """What a loop counts, if it goes on for each iteration, at its end, and ends by that."""
    cond, last = loop.cond, loop.body[-1] if loop.body else None
    if not isinstance(cond, Compare) or not isinstance(last, Assign):
        return None
    op, stop = cond.op, cond.rhs
    if cond.lhs != Var(INT64, last.name):
        op, stop = MIRRORED[cond.op], cond.lhs
        if cond.rhs != Var(INT64, last.name):
            return None
    step = _step(last, sizes)
    sets = [assigned_variable(s) for s in statements(loop.body)]
    if step is None or sets.count(last.name) != 1 or any(map(_goes_on, loop.body)):
        return None
    if not _is_constant(stop, sets):
        return None
    up = not isinstance(step, Const) or int(step.value) > 0
    if op == ("le" if up else "ge") and isinstance(stop, Const | Extent):
        # No counter of such a size overflows.
        end = Const(INT64, 1 if up else -1)
        return _Counter(last.name, Binary(INT64, "add", stop, end), step)
    return _Counter(last.name, stop, step) if op == ("lt" if up else "gt") else None


def _step(last: Assign, sizes: Sizes) -> Expr | None:
    """What a loop's last statement adds to a variable, if that is never 0 and of one sign."""
    match last.value:
        case Binary(op="add", lhs=Var(name=name), rhs=step) if name == last.name:
            pass
        case Binary(op="add", lhs=step, rhs=Var(name=name)) if name == last.name:
            pass
        case Binary(op="sub", lhs=Var(name=name), rhs=Const(value=value)) if name == last.name:
            step = Const(INT64, -int(value))
        case _:
            return None
    match step:
        case Const(type, value) if type == INT64 and int(value) != 0:
            return step
        case Var(name=name):
            return sizes.get(name)
    return _size(step)


def _sizes(body: Body) -> Sizes:
    times = Counter(assigned_variable(s) for s in statements(body))
    found = (s for s in statements(body) if isinstance(s, Assign) and times[s.name] == 1)
    return {s.name: size for s in found if (size := _size(s.value)) is not None}


def _size(e: Expr) -> Expr | None:
    """The size of the range or of a work-group that ``e`` is; None where it is none."""
    match e:
        case ItemQuery("local_range" | "global_range"):
            return e
        case Binary(_, "mul", ItemQuery(one, dim), ItemQuery(other, same)) if dim == same:
            if {one, other} == {"group_range", "local_range"}:
                return ItemQuery("global_range", dim)
    return None


def _is_constant(expr: Expr, sets: Iterable[str | None]) -> bool:
    """Whether ``expr`` has one value throughout a loop that ``sets`` these variables."""
    assigned = set(sets)
    return not any(
        isinstance(e, Load | Call) or (isinstance(e, Var) and e.name in assigned)
        for e in subexpressions(expr)
    )


def _goes_on(stmt: Stmt) -> bool:
    """Whether a statement of a loop begins its next iteration."""
    if isinstance(stmt, For | While):
        return False
    return isinstance(stmt, Continue) or any(any(map(_goes_on, b)) for b in nested_bodies(stmt))


def _use(name: str, body: Sequence[Stmt]) -> Literal["read", "set"] | None:
    """What ``body`` does first with the value of a variable that it begins with: it may read it, or
    surely sets it anew; None if it does neither."""
    leaves = False
    for stmt in body:
        if any(_reads(name, e) for e in statement_expressions(stmt)):
            return "read"
        if any(_use(name, nested) == "read" for nested in nested_bodies(stmt)):
            return "read"
        leaves |= any(isinstance(s, Break | Continue) for s in statements((stmt,)))
        if assigned_variable(stmt) == name and not leaves:
            return "set"
    return None


def _reads(name: str, expr: Expr) -> bool:
    return any(isinstance(e, Var) and e.name == name for e in subexpressions(expr))


def _start(made: list[Stmt], name: str) -> Expr:
    """The value that ``made`` ends with in a variable, as it was computed if nothing has changed
    since; what set it is taken away then."""
    changed: list[str | None] = []
    for place in reversed(range(len(made))):
        stmt = made[place]
        if isinstance(stmt, Assign) and stmt.name == name:
            if _is_constant(stmt.value, changed):
                del made[place]
                return stmt.value
            break
        every = list(statements((stmt,)))
        changed += [assigned_variable(s) for s in every]
        if name in changed or any(_reads(name, e) for s in every for e in statement_expressions(s)):
            break
    return Var(INT64, name)


def _renamed(body: Body, name: str, to: str) -> Body:
    def expr(e: Expr) -> Expr:
        return replace(e, name=to) if isinstance(e, Var) and e.name == name else e

    return rewrite_body(body, expr)
