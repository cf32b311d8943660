"""A part of a launch in the launch's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fusionq.ir.nodes import Expr, Extent, ItemQuery, Load, Param, Stmt, Var
from fusionq.ir.walk import renamed_statement, rewrite_body


def renamed_expr(
    e: Expr,
    names: Mapping[str, str],
    scalars: Mapping[str, Expr],
    ids: Sequence[Expr],
    tile: Callable[[int], Expr],
) -> Expr:
    match e:
        case Var():
            return replace(e, name=names[e.name])
        case Param():
            return scalars[e.name]
        case Extent() | Load():
            return replace(e, array=names[e.array])
        case ItemQuery("global_id", dim):
            return ids[dim]
        case ItemQuery("group_id", dim):
            return tile(dim)
        case _:
            return e


def renamed_body(
    body: Sequence[Stmt],
    names: Mapping[str, str],
    scalars: Mapping[str, Expr],
    ids: Sequence[Expr],
    tile: Callable[[int], Expr],
) -> tuple[Stmt, ...]:
    """``body`` with ``names`` for its own, ``ids`` for those of its work-item and the numbers of
    its ``tile``."""
    return rewrite_body(
        body,
        lambda e: renamed_expr(e, names, scalars, ids, tile),
        lambda s: (renamed_statement(s, names, names),),
    )
