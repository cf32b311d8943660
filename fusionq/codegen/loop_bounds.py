"""Users' conditions on ids as bounds of the loop over work-items that a compiler for CPUs makes.

    n = a.shape[0]                            if i >= 1 and i < a.shape[0] - 1:
    if 0 < i and m[i] and i + 1 < n:    →         n = a.shape[0]
        inner                                     if m[i]:
                                                      inner

The interior of a range is then a loop of whole vectors, without masks, and what is outside runs
nothing.  Where vectors have no registers for masks, a guarded stencil takes a fifth to an eighth of
the time that its condition takes as a mask (0.35 and 2.8 ms, 1,000 x 1,000 floats, AVX2).

Such a compiler (``codegen.opencl``) does this where conditions hold all of a kernel.  Only those
of an id alone are left to it, below or from a limit on that is made of arguments.  What is added to
an id goes to the limit where neither can wrap: limits of constants and extents.  Limits are cut to
what ids reach, since it subtracts them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from fusionq.codegen.scoping import Body, assignments, flatten_blocks
from fusionq.ir.comparisons import MIRRORED
from fusionq.ir.conjunctions import conjunction, conjuncts
from fusionq.ir.nodes import (
    Assign,
    Binary,
    BinaryOp,
    Block,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    If,
    Load,
    Logical,
    Param,
    Stmt,
    Var,
)
from fusionq.ir.range_guard import is_global_id
from fusionq.ir.types import INT64
from fusionq.ir.walk import (
    expressions,
    has_barrier,
    subexpressions,
    with_values,
)

_SMALL = 1 << 32
"""Constants below it, and sums of them and extents, do not wrap."""

_LEAST, _MOST = Const(INT64, -2 * _SMALL), Const(INT64, 1 << 61)
"""Below and above all ids, whatever small constants are added."""

_SUMS: Collection[BinaryOp] = ("add", "sub", "mul", "floordiv")


def with_loop_bounds(body: Body) -> Body:
    """``body`` of a kernel, or all of its range's guard, with conditions that are bounds of ids
    around all the rest."""
    if has_barrier(body) or any(map(_asks_for_sub_group, expressions(body))):
        return body
    return _bounded(body)


def loop_bounds(body: Body) -> tuple[Compare, ...]:
    """The bounds of ids around all of a kernel's ``body``."""
    inner = with_loop_bounds(flatten_blocks(body))
    found: list[Compare] = []
    while (bound := only_condition(inner)) is not None:
        found += (cond for cond in conjuncts(bound.cond) if isinstance(cond, Compare))
        inner = bound.then
    return tuple(found)


def is_loop_bound(stmt: Stmt) -> bool:
    """Whether the condition of ``stmt`` is one that ``with_loop_bounds`` makes."""
    return (
        isinstance(stmt, If)
        and not stmt.orelse
        and all(_bound(cond) == cond for cond in conjuncts(stmt.cond))
    )


def only_condition(body: Body) -> If | None:
    """The statement that ``body`` consists of, labels apart, if it is a condition on bounds."""
    found = [stmt for stmt in body if not isinstance(stmt, Block)]
    if len(found) == 1 and isinstance(found[0], If) and is_loop_bound(found[0]):
        return found[0]
    return None


def _bounded(body: Body) -> Body:
    body = _merged(body)
    if not body:
        return body
    *before, last = body
    if not isinstance(last, If) or last.orelse:
        return body
    if not all(isinstance(stmt, (Assign, Block)) for stmt in before):
        return body
    values: dict[str, Expr] = {}
    for stmt in before:
        if isinstance(stmt, Assign) and assignments(body, stmt.name) == 1:
            value = with_values(stmt.value, values)
            if not any(isinstance(e, (Load, Var)) for e in subexpressions(value)):
                values[stmt.name] = value
    bounds: list[Expr] = []
    rest: list[Expr] = []
    for cond in conjuncts(last.cond):
        bound = _bound(with_values(cond, values))
        if bound is None:
            rest.append(cond)
        elif bound not in bounds:
            bounds.append(bound)
    if not bounds:
        return body
    inner = (replace(last, cond=conjunction(rest)),) if rest else last.then
    labels = [stmt for stmt in before if isinstance(stmt, Block)]
    own = [stmt for stmt in before if isinstance(stmt, Assign)]
    return (*labels, replace(last, cond=conjunction(bounds), then=_bounded((*own, *inner))))


def _asks_for_sub_group(expr: Expr) -> bool:
    """Whether it matters which work-items are in a sub-group: bounds begin another one."""
    return isinstance(expr, Call) and expr.function == "leads_sub_group"


def _merged(body: Sequence[Stmt]) -> Body:
    """``body``, in which neighbours under the same bounds are one."""
    made: list[Stmt] = []
    labels: list[Stmt] = []
    for stmt in body:
        last = made[-1] if made else None
        if isinstance(stmt, Block) and not stmt.body:
            labels.append(stmt)
        elif (
            isinstance(stmt, If)
            and isinstance(last, If)
            and stmt.cond == last.cond
            and not (stmt.orelse or last.orelse)
            and all(_bound(cond) is not None for cond in conjuncts(stmt.cond))
        ):
            made[-1] = replace(last, then=(*last.then, *labels, *stmt.then))
            labels = []
        else:
            made += [*labels, stmt]
            labels = []
    return (*made, *labels)


def _bound(cond: Expr) -> Expr | None:
    """``cond`` as bounds of one id, which is on the left and nothing added to it; None if it is no
    such condition."""
    if not isinstance(cond, Compare) or cond.rhs.type != INT64:
        return None
    op, lhs, limit = cond.op, cond.lhs, cond.rhs
    id, added = _id_of(lhs)
    if id is None:
        op, limit = MIRRORED[op], lhs
        id, added = _id_of(cond.rhs)
    if id is None or limit.type != INT64 or not _is_limit(limit):
        return None
    limit = limit if _is_near(limit) else _cut(limit)
    match op:
        case "lt" | "ge":
            return Compare(op, id, _plus(limit, -added))
        case "le":
            return Compare("lt", id, _plus(limit, 1 - added))
        case "gt":
            return Compare("ge", id, _plus(limit, 1 - added))
        case "ne" if _plus(limit, -added) == Const(INT64, 0):
            return Compare("ge", id, Const(INT64, 1))
        case "eq":
            at = _plus(limit, -added)
            return Logical("and", Compare("ge", id, at), Compare("lt", id, _plus(at, 1)))
    return None


def _id_of(expr: Expr) -> tuple[Expr | None, int]:
    """The global id that ``expr`` is, and the constant added to it."""
    match expr:
        case Binary(_, "add", lhs, Const(_, value)) | Binary(_, "add", Const(_, value), lhs):
            added = int(value)
        case Binary(_, "sub", lhs, Const(_, value)):
            added = -int(value)
        case _:
            lhs, added = expr, 0
    is_id = is_global_id(lhs) and expr.type == INT64 and abs(added) < _SMALL
    return (lhs, added) if is_id else (None, 0)


def _is_limit(expr: Expr) -> bool:
    """Whether ``expr`` is made of arguments, and so the same for all work-items."""
    if _is_near(expr):
        return True
    return all(
        e.type.is_integer
        and (
            isinstance(e, (Param, Extent, Const))
            or (isinstance(e, Binary) and e.op in _SUMS)
            or isinstance(e, Cast)
        )
        for e in subexpressions(expr)
    )


def _is_near(limit: Expr) -> bool:
    """Whether constants can be added to ``limit``, and limits be subtracted, without wrapping."""
    match limit:
        case Extent():
            return True
        case Const(_, value):
            return abs(int(value)) < _SMALL
        case Call(_, "minimum", (Call(_, "maximum", (_, least)), most)):
            return (least, most) == (_LEAST, _MOST)
        case Binary(_, "add" | "sub", lhs, Const(_, value)):
            return _is_near(lhs) and not isinstance(lhs, Binary) and abs(int(value)) < _SMALL
    return False


def _cut(limit: Expr) -> Expr:
    """``limit``, or what says the same of all ids to which small constants are added."""
    return Call(INT64, "minimum", (Call(INT64, "maximum", (limit, _LEAST)), _MOST))


def _plus(limit: Expr, added: int) -> Expr:
    match limit:
        case Const(_, value):
            return Const(INT64, int(value) + added)
        case Binary(_, op, lhs, Const(_, value)):
            total = (int(value) if op == "add" else -int(value)) + added
        case _:
            lhs, total = limit, added
    if not total:
        return lhs
    sign: BinaryOp = "add" if total > 0 else "sub"
    return Binary(INT64, sign, lhs, Const(INT64, abs(total)))
