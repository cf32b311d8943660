"""Kernels side by side in one launch: the work-groups of its first dimension are those of one after
those of another.

    first_1 = groups_0
    first_2 = first_1 + groups_1
    if group_id(0) < first_1:
        …global_id(0)…
    else:
        if group_id(0) < first_2:
            …(global_id(0) - first_1 * size)…(group_id(0) - first_1)…
        else:
            …(global_id(0) - first_2 * size)…

Which one a work-item runs is the same for all of its work-group.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Assign, Binary, Compare, Expr, If, ItemQuery, Stmt, Var
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, rewrite_body

GROUP = ItemQuery("group_id", 0)
"""The work-group's number, by which its kernel is found."""
_ITEM = ItemQuery("global_id", 0)
_OWN = {query: ItemQuery(query.query, -1) for query in (GROUP, _ITEM)}
"""Ids of one of the kernels, while they are told from those of the launch."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The ``bodies`` of the kernels, with ids of their own.  ``before``: assignments that give all
    but the first of them the number of their first work-group, in the variables ``first``."""

    before: tuple[Assign, ...]
    first: tuple[Var, ...]
    bodies: tuple[tuple[Stmt, ...], ...]


def put_side_by_side(
    bodies: Sequence[Sequence[Stmt]],
    groups: Sequence[Expr],
    size: Expr,
    first: Sequence[Var],
) -> tuple[Stmt, ...]:
    """The body of a launch of kernels with ``bodies``, two at least, which have so many ``groups``,
    each of ``size`` work-items, in the first dimension; in variables ``first`` of those behind the
    first it keeps their first work-groups."""
    before = [Assign(first[0].name, groups[0])]
    for k, count in enumerate(groups[1:-1]):
        before.append(Assign(first[k + 1].name, Binary(INT64, "add", first[k], count)))
    rest = _moved(bodies[-1], first[-1], size)
    for k in reversed(range(len(bodies) - 1)):
        own = tuple(bodies[0]) if k == 0 else _moved(bodies[k], first[k - 1], size)
        rest = (If(Compare("lt", GROUP, first[k]), own, rest),)
    return (*before, *rest)


def _moved(body: Sequence[Stmt], first: Var, size: Expr) -> tuple[Stmt, ...]:
    """``body`` for work-groups from ``first`` on."""
    moved: dict[Expr, Expr] = {
        GROUP: Binary(INT64, "sub", GROUP, first),
        _ITEM: Binary(INT64, "sub", _ITEM, Binary(INT64, "mul", first, size)),
    }
    return rewrite_body(body, lambda e: moved.get(e, e))


def side_by_side(body: Sequence[Stmt]) -> SideBySide | None:
    """The kernels that ``body`` runs side by side; None if it is no such body."""
    *before, rest = body or (None,)
    assigned = [stmt for stmt in before if isinstance(stmt, Assign)]
    first = [Var(INT64, stmt.name) for stmt in assigned]
    if not first or len(assigned) < len(before):
        return None
    bodies: list[tuple[Stmt, ...]] = []
    for k, variable in enumerate(first):
        if not isinstance(rest, If) or rest.cond != Compare("lt", GROUP, variable):
            return None
        bodies.append(rest.then)
        if k + 1 < len(first):
            (rest,) = rest.orelse if len(rest.orelse) == 1 else (None,)
        else:
            bodies.append(rest.orelse)
    own = [bodies[0], *(_own(b, v) for b, v in zip(bodies[1:], first, strict=True))]
    kept = set(first)
    found = [b for b in own if b is not None and kept.isdisjoint(expressions(b))]
    if len(found) < len(bodies):
        return None
    return SideBySide(tuple(assigned), tuple(first), tuple(found))


def _own(body: Sequence[Stmt], first: Var) -> tuple[Stmt, ...] | None:
    """``body``, for work-groups from ``first`` on, with ids of its own; None where it has others,
    too."""

    def expr(e: Expr) -> Expr:
        match e:
            case Binary(_, "sub", lhs, rhs) if lhs == GROUP and rhs == first:
                return _OWN[GROUP]
            case Binary(_, "sub", lhs, Binary(_, "mul", by, _)) if lhs == _ITEM and by == first:
                return _OWN[_ITEM]
        return e

    own = rewrite_body(body, expr)
    if any(e in _OWN for e in expressions(own)):
        return None
    back: dict[Expr, Expr] = {own: query for query, own in _OWN.items()}
    return rewrite_body(own, lambda e: back.get(e, e))
