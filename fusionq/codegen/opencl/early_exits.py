"""Keeps a compiler's analysis of early exits away from the user's conditions.

Intel's OpenCL CPU compiler (runtime 2026.21.7, pass ``sycl-kernel-wg-loop-bound``) turns
conditions on work-item ids at the start of a kernel into bounds of its loop over work-items.  It
gets decreasing ones wrong: under ``0 <= n - 3 - id && n - 3 - id < n`` the wrong work-items run,
and some such conditions crash it.  It does not look behind a fence, and a relaxed fence for the
work-item alone orders nothing:

    if (id < range) {            if (id < range) {
        if (0 <= n - 3 - id)  →      atomic_work_item_fence(…, relaxed, work_item);
            …                        if (0 <= n - 3 - id)
                                         …

The range's own guard stays in front of it, and so do bounds of ids (``loop_bounds``): those are
right, and worth their while.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.codegen.group_conditions import FENCE
from fusionq.codegen.loop_bounds import only_condition
from fusionq.codegen.scoping import Body
from fusionq.ir.functions import SAME_TYPE_FUNCTIONS
from fusionq.ir.nodes import (
    Block,
    Call,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    Param,
    Stmt,
)
from fusionq.ir.range_guard import range_guard
from fusionq.ir.walk import expressions, statements


def shielded(body: Body) -> Body:
    """``body`` (without nested blocks) with a fence before the first condition on integers
    that is neither the range's guard nor a bound of ids."""
    found = [stmt for stmt in body if not isinstance(stmt, Block)]
    if not found:
        return body
    there = range_guard(found)
    if there is not None and all(isinstance(e, (Param, Extent)) for e in there.limits.values()):
        then = replace(there.guard, then=_fenced(there.guard.then))
        return tuple(then if stmt is there.guard else stmt for stmt in body)
    return _fenced(body)


def _fenced(body: Body) -> Body:
    bound = only_condition(body)
    if bound is not None:
        inner = replace(bound, then=_fenced(bound.then))
        return tuple(inner if stmt is bound else stmt for stmt in body)
    decides = any(map(_is_condition, expressions(body))) or any(map(_is_bound, statements(body)))
    return (FENCE, *body) if decides else body


def _is_condition(expr: Expr) -> bool:
    operands: tuple[Expr, ...] = ()
    if isinstance(expr, Compare):
        operands = (expr.lhs, expr.rhs)
    elif isinstance(expr, Call) and SAME_TYPE_FUNCTIONS.get(expr.function) == 2:
        operands = expr.args
    return any(operand.type.is_integer for operand in operands)


def _is_bound(stmt: Stmt) -> bool:
    """Whether a loop may run no iteration for some work-items only."""
    return isinstance(stmt, For) and not all(isinstance(e, Const) for e in (stmt.start, stmt.stop))
