"""Index-set splitting of overlapped tiles: those that are inside of all bounds have code without
conditions.

    for i in range(max(64 * g - 1, 0),           if 64 * g - 1 > 0 and 64 * g + 64 < n - 1:
                   min(64 * g + 65, n)):             for k in range(0, 64, 32):
        if 0 < i < n - 1: a                 →            i = 64 * g - 1 + k + lane; a
        else: b                                      if lane < 2: i = 64 * g + 63 + lane; a
                                                 else:
                                                     …  as before

For work-items that are threads: where they are lanes of a vector, rows are divided
(``codegen.row_loops``).  The loops of an inside tile have constant bounds, so that a compiler
unrolls them whole, with all loads of memory ahead of what is computed of them, and knows the place
of each element in local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.codegen.interior import MOST_NODES, Interior, nodes_of
from fusionq.ir.comparisons import MIRRORED, NEGATED
from fusionq.ir.nodes import (
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
    Logical,
    Stmt,
    Unary,
    Var,
)
from fusionq.ir.offsets import split_offset
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite, subexpressions

_SMALL = 1 << 32
"""What is added to an id up to here does not wrap."""


@dataclass(frozen=True)
class Box:
    """The work-items that a tile has in one dimension: ``length`` of them from ``start`` on, by
    ``lanes`` threads side by side, of which each is number ``lane`` (None: there is one)."""

    start: Expr
    length: int
    lanes: int
    lane: Expr | None

    @property
    def end(self) -> Expr:
        """The last of them."""
        return _plus(self.start, self.length - 1)


def is_inside(interior: Interior, boxes: Sequence[Box]) -> list[Expr] | None:
    """Conditions on a tile, which together mean that all work-items of its ``boxes`` are in the
    ``interior``; None where there is no telling."""
    row = boxes[-1]
    found: list[Expr] = [
        *(Compare("ge", row.start, low) for low in interior.lows),
        *(Compare("le", row.end, high) for high in interior.highs),
    ]
    if any(_dimensions(e) for e in found):
        return None
    for cond in interior.where:
        for_all = _for_all(cond, boxes)
        if for_all is None:
            return None
        found.append(for_all)
    return found


def whole_loops(
    boxes: Sequence[Box],
    body: Callable[[Sequence[Var]], Sequence[Stmt]],
    loop: Callable[[str], str],
    variable: Callable[[str], str],
    ids: tuple[Var, ...] = (),
) -> tuple[Stmt, ...]:
    """The ``body`` of ids for all work-items of a tile's ``boxes``; ``loop`` gives names of loops,
    ``variable`` those of ids, as close to a wanted one as can be.  ``ids``: those of dimensions in
    front of that of ``boxes``."""
    if not boxes:
        return tuple(body(ids))
    box, *others = boxes
    made: list[Stmt] = []
    full = box.length // box.lanes * box.lanes

    def of_lane(first: Expr) -> tuple[Stmt, ...]:
        own = first if box.lane is None else Binary(INT64, "add", first, box.lane)
        id = Var(INT64, variable(f"item_{len(ids)}"))
        chosen = Assign(id.name, Binary(INT64, "add", box.start, own))
        return (chosen, *whole_loops(others, body, loop, variable, (*ids, id)))

    if full:
        step = Var(INT64, loop("step"))
        bounds = Const(INT64, 0), Const(INT64, full), Const(INT64, box.lanes)
        made.append(For(step.name, *bounds, of_lane(step)))
    if full < box.length:
        assert box.lane is not None
        rest = Compare("lt", box.lane, Const(INT64, box.length - full))
        made.append(If(rest, of_lane(Const(INT64, full))))
    return tuple(made)


def copies(boxes: Sequence[Box]) -> int:
    """How often the body is there."""
    found = 1
    for box in boxes:
        found *= (box.length >= box.lanes) + (box.length % box.lanes > 0)
    return found


def _for_all(cond: Expr, boxes: Sequence[Box]) -> Expr | None:
    """That ``cond`` holds for all work-items of ``boxes``; None where there is no telling."""
    if not _dimensions(cond):
        return cond
    if isinstance(cond, Unary) and cond.op == "not" and isinstance(cond.operand, Compare):
        inner = cond.operand
        if not inner.lhs.type.is_integer:
            return None
        cond = replace(inner, op=NEGATED[inner.op])
    if not isinstance(cond, Compare) or cond.lhs.type != INT64 or cond.rhs.type != INT64:
        return None
    op, id, limit = cond.op, cond.lhs, cond.rhs
    if _dimensions(limit):
        op, id, limit = MIRRORED[op], limit, id
    if _dimensions(limit) or not _is_id(id):
        return None
    (dim,) = _dimensions(id)

    def at(op: CompareOp, place: Expr) -> Expr:
        there = rewrite(id, lambda e: place if e == ItemQuery("global_id", dim) else e)
        return Compare(op, there, limit)

    start, end = boxes[dim].start, boxes[dim].end
    match op:
        case "lt" | "le":
            return at(op, end)
        case "gt" | "ge":
            return at(op, start)
        case "ne":
            return Logical("or", at("lt", end), at("gt", start))
    return None


def may_be_whole(interior: Interior, kernel: Kernel) -> bool:
    """Whether tiles of ``kernel`` that are in the ``interior`` have code of their own, however
    large they are."""
    boxes = [Box(Var(INT64, "start"), 1, 1, None)] * kernel.ndim
    is_small = nodes_of(kernel.body) << kernel.ndim <= MOST_NODES
    return is_small and is_inside(interior, boxes) is not None


def strongest(conditions: Sequence[Expr]) -> list[Expr]:
    """``conditions`` without those that others imply: of ``a + 1 < n`` and ``a + 3 < n`` the
    second.  What is added to the places of tiles, on the left, does not wrap."""
    found: dict[tuple[CompareOp, Expr, Expr], int] = {}
    others: dict[Expr, None] = {}
    for cond in conditions:
        match cond:
            case Compare("lt" | "le" | "gt" | "ge" as op, lhs, rhs) if lhs.type == INT64:
                (a, more), (b, less) = split_offset(lhs), _constant(rhs)
                margin = more - less
                if op == "lt":
                    op, margin = "le", margin + 1
                elif op == "gt":
                    op, margin = "ge", margin - 1
                strongest = max if op == "le" else min
                kept = found.get((op, a, b), margin)
                found[op, a, b] = strongest(kept, margin)
            case _:
                others[cond] = None
    kept_ones = [Compare(op, _plus(a, margin), b) for (op, a, b), margin in found.items()]
    return [*kept_ones, *others]


def _constant(expr: Expr) -> tuple[Expr, int]:
    """A constant as 0 and itself, others as they are and 0."""
    return (Const(INT64, 0), int(expr.value)) if isinstance(expr, Const) else (expr, 0)


def unclamped(bound: Expr, is_size: Callable[[Expr], bool]) -> Expr:
    """``bound`` of an interior without limits around what ``is_size``: it is far from them."""

    def bare(e: Expr) -> Expr:
        match e:
            case Call(_, "minimum" | "maximum", (value, Const(_, limit))):
                return value if abs(int(limit)) > _SMALL and is_size(value) else e
        return e

    return rewrite(bound, bare)


def _is_id(expr: Expr) -> bool:
    """Whether it is a global id, or that and a constant."""
    match expr:
        case ItemQuery("global_id"):
            return True
        case Binary(type, "add" | "sub", ItemQuery("global_id"), Const(_, value)) if type == INT64:
            return abs(int(value)) < _SMALL
        case Binary(type, "add", Const(_, value), ItemQuery("global_id")) if type == INT64:
            return abs(int(value)) < _SMALL
    return False


def _dimensions(expr: Expr) -> set[int]:
    """Those of the global ids in it."""
    return {
        e.dim
        for e in subexpressions(expr)
        if isinstance(e, ItemQuery) and e.query == "global_id"
    }


def _plus(expr: Expr, constant: int) -> Expr:
    return Binary(INT64, "add", expr, Const(INT64, constant)) if constant else expr
