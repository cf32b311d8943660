"""A kernel whose work-items go through a range in turns, as one over that range.

    for i in range(item.get_id(0), n, item.get_range(0)):        i = item.get_id(0)
        out[i] = a[i] * 2                                   →    out[i] = a[i] * 2

    for k in range(16):                                          i = item.get_id(0)
        i = item.get_id(0) * 16 + k                         →    out[i] = a[i] * 2
        if i < n:
            out[i] = a[i] * 2

    for i in range(item.get_id(0) * per, min(item.get_id(0) * per + per, n)):  …

The first are grid-stride loops, the others have a chunk of the range for each work-item.  Nothing
goes from one turn to the next in variables; that nothing does in memory is for ``analysis`` to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.codegen.scoping import Body, assigned_before_read, flatten_blocks
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Cast,
    Compare,
    Const,
    Continue,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Stmt,
    Var,
    While,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    OWN_STATEMENTS,
    assigned_variable,
    expressions,
    nested_bodies,
    rewrite_body,
    statements,
    subexpressions,
    with_values,
)

_ID: Expr = ItemQuery("global_id", 0)
_ZERO, _ONE = Const(INT64, 0), Const(INT64, 1)


@dataclass(frozen=True)
class ItemsOfTurns:
    """``kernel``, whose range is ``count`` (a parameter or an extent).  ``each``: how many ids one
    after the other a work-item had, where it had such; their ranges together were ``count`` or
    more.  None: its ids were as far apart as the range is long."""

    kernel: Kernel
    count: Param | Extent
    each: Param | Extent | Const | None


def items_of_turns(kernel: Kernel) -> ItemsOfTurns | None:
    """``kernel``, of one dimension, over what its work-items go through; None where they do not, or
    variables go from one turn to the next."""
    body = flatten_blocks(kernel.body)
    labels = tuple(s for s in body if isinstance(s, Block))
    before = [s for s in body if not isinstance(s, Block)]
    loop = before.pop() if before else None
    if not isinstance(loop, For) or loop.binds is not None:
        return None
    if kernel.ndim != 1 or kernel.arrays or kernel.sub_group_size is not None:
        return None
    if not all(isinstance(s, OWN_STATEMENTS) for s in statements(kernel.body)):
        return None
    values = _values(before, kernel)
    if values is None:
        return None
    turn = _strided(loop, values) or _in_chunks(loop, values) or _chunk(loop, values)
    if turn is None or any(_ends(turn.body)):
        return None
    own = {name for s in statements(turn.body) if (name := assigned_variable(s)) is not None}
    if not own.isdisjoint(values):
        return None
    if not all(assigned_before_read(turn.body, name, False)[0] for name in own):
        return None
    used = {e.name for e in expressions(turn.body) if isinstance(e, Var)}
    given = [s for s in before if isinstance(s, Assign)]
    needed = _needed(given, used)
    kept = tuple(s for s in given if s.name in needed)
    if any(isinstance(e, ItemQuery) for e in expressions((*kept, *turn.body))):
        return None

    def expr(e: Expr) -> Expr:
        return _ID if isinstance(e, Var) and e.name == turn.variable else e

    made = (*labels, *kept, *rewrite_body(turn.body, expr))
    return ItemsOfTurns(replace(kernel, body=made), turn.count, turn.each)


@dataclass(frozen=True)
class _Turn:
    """What is done for each value of ``variable``, which is below ``count``; ``each``: as above."""

    variable: str
    body: Body
    count: Param | Extent
    each: Param | Extent | Const | None


def _values(before: Sequence[Stmt], kernel: Kernel) -> dict[str, Expr] | None:
    """The values of the variables ahead of the loop, each of which is set once, to what is made of
    ids and arguments; None where one is not."""
    times = Counter(assigned_variable(s) for s in statements(kernel.body))
    found: dict[str, Expr] = {}
    for s in before:
        if not isinstance(s, Assign) or times[s.name] != 1:
            return None
        value = with_values(s.value, found)
        if any(isinstance(e, Load | Var) for e in subexpressions(value)):
            return None
        found[s.name] = value
    return found


def _needed(given: list[Assign], used: set[str]) -> set[str]:
    """The variables that are ``used``, by way of others, too."""
    needed = set(used)
    for s in reversed(given):
        if s.name in needed:
            needed |= {e.name for e in subexpressions(s.value) if isinstance(e, Var)}
    return needed


def _strided(loop: For, values: dict[str, Expr]) -> _Turn | None:
    """``for i in range(id, n, range)``."""
    start, step = with_values(loop.start, values), with_values(loop.step, values)
    count = _number(with_values(loop.stop, values))
    if not _is_id(start) or not _is_range(step) or not isinstance(count, Param | Extent):
        return None
    return _Turn(loop.var, loop.body, count, None)


def _is_id(e: Expr) -> bool:
    """Whether ``e`` is the global id, also as the place in a work-group behind those before."""
    match e:
        case Binary(_, "add", lhs, rhs):
            local = ItemQuery("local_id", 0)
            return any(a == local and _is_of(b, "group_id") for a, b in ((lhs, rhs), (rhs, lhs)))
    return e == _ID


def _is_range(e: Expr) -> bool:
    """Whether ``e`` is how many work-items there are."""
    return e == ItemQuery("global_range", 0) or _is_of(e, "group_range")


def _is_of(e: Expr, query: str) -> bool:
    """Whether ``e`` is that of the work-groups times their size."""
    match e:
        case Binary(_, "mul", ItemQuery(one, 0), ItemQuery(other, 0)):
            return {one, other} == {query, "local_range"}
    return False


def _in_chunks(loop: For, values: dict[str, Expr]) -> _Turn | None:
    """``for i in range(id * each, min(id * each + each, n))``."""
    start, stop = with_values(loop.start, values), with_values(loop.stop, values)
    each = _of_id(start)
    if each is None or loop.step != _ONE or not isinstance(stop, Call):
        return None
    if stop.function not in ("minimum", "pymin") or stop.type != INT64:
        return None
    for end, limit in (stop.args, stop.args[::-1]):
        count = _number(limit)
        if isinstance(count, Param | Extent) and _is_behind(end, each):
            return _Turn(loop.var, loop.body, count, each)
    return None


def _chunk(loop: For, values: dict[str, Expr]) -> _Turn | None:
    """``for k in range(each)``: ``i = id * each + k``, and the rest below ``n``."""
    each = _number(with_values(loop.stop, values))
    if each is None or loop.start != _ZERO or loop.step != _ONE:
        return None
    match [s for s in loop.body if not isinstance(s, Block)]:
        case [Assign(name, value), If(Compare("lt", lhs, limit), then, ())]:
            place, count = with_values(value, values), _number(with_values(limit, values))
        case _:
            return None
    variable = Var(INT64, loop.var)
    if lhs != Var(INT64, name) or not isinstance(count, Param | Extent):
        return None
    if not isinstance(place, Binary) or place.op != "add" or place.type != INT64:
        return None
    sides = place.lhs, place.rhs
    if not any(_of_id(a) == each and b == variable for a, b in (sides, sides[::-1])):
        return None
    inside = [e.name for e in expressions(then) if isinstance(e, Var)]
    if loop.var in inside or any(assigned_variable(s) == name for s in statements(then)):
        return None
    return _Turn(name, then, count, each)


def _number(e: Expr) -> Param | Extent | Const | None:
    """An argument, an extent or a constant, of int64 or extended to that."""
    if isinstance(e, Cast) and e.type == INT64 and isinstance(e.operand, Param):
        e = e.operand if e.operand.type.is_integer and e.operand.type.bits < INT64.bits else e
    elif e.type != INT64:
        return None
    return e if isinstance(e, Param | Extent | Const) else None


def _of_id(e: Expr) -> Param | Extent | Const | None:
    """By what the id is multiplied in ``e``, which is nothing else."""
    if not isinstance(e, Binary) or e.op != "mul" or e.type != INT64:
        return None
    if _is_id(e.lhs):
        return _number(e.rhs)
    return _number(e.lhs) if _is_id(e.rhs) else None


def _is_behind(e: Expr, each: Expr) -> bool:
    """Whether ``e`` is ``id * each + each``, or ``(id + 1) * each``."""
    match e:
        case Binary(type, "add", lhs, rhs) if type == INT64:
            return any(_of_id(a) == each == _number(b) for a, b in ((lhs, rhs), (rhs, lhs)))
        case Binary(type, "mul", lhs, rhs) if type == INT64:
            return any(_is_next(a) and _number(b) == each for a, b in ((lhs, rhs), (rhs, lhs)))
    return False


def _is_next(e: Expr) -> bool:
    """Whether ``e`` is the id and one."""
    match e:
        case Binary(type, "add", lhs, rhs) if type == INT64:
            return any(_is_id(a) and b == _ONE for a, b in ((lhs, rhs), (rhs, lhs)))
    return False


def _ends(body: Body) -> Iterator[bool]:
    """Whether each statement, or one inside it, ends a turn, or the loop."""
    for stmt in body:
        if not isinstance(stmt, For | While):
            yield isinstance(stmt, Break | Continue)
            for nested in nested_bodies(stmt):
                yield from _ends(nested)
