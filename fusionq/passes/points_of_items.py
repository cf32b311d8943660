"""A kernel over the parts of points as one over points: each work-item does all parts of one.

    damp(a, f):  # over (n, 4)                   damp(a, f):  # over n
        a[i, k] = a[i, k] * f           →            for k in range(4):
                                                         a[i, k] = a[i, k] * f

The work-items of a range are in no order, so that those of a point may follow each other.  What is
the same for all parts, as conditions on where the point is, stays ahead of the loop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeGuard

from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.nodes import (
    Assign,
    Block,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import assigned_variable, statements, subexpressions
from fusionq.passes.items_of_groups import loop_variables, with_ids
from fusionq.passes.propagate_indices import propagate_indices


def points_of_items(kernel: Kernel, parts: int) -> Kernel:
    """``kernel`` over a range of one dimension less, whose work-items do so many ``parts`` each.
    It asks for global ids and ranges only, has no arrays of its own, and no work-item waits for
    others."""
    assert kernel.ndim > 1 and parts >= 1 and not kernel.arrays
    kernel = propagate_indices(kernel)
    (part,) = loop_variables(kernel, 1)
    leading = range(kernel.ndim - 1)
    ids: list[Expr] = [ItemQuery("global_id", d) for d in leading]
    ranges: list[Expr] = [ItemQuery("global_range", d) for d in leading]
    whole = Const(INT64, parts)
    body = flatten_blocks(with_ids(kernel, [*ids, Var(INT64, part)], [*ranges, whole]))
    return replace(kernel, ndim=kernel.ndim - 1, body=_Around(part, whole, body).made(body))


class _Around:
    """Puts the loop over so many parts around what is not the same for all of them."""

    def __init__(self, part: str, parts: Const, body: Body) -> None:
        self._part, self._parts = part, parts
        self._times = Counter(assigned_variable(s) for s in statements(body))
        self._same: set[str] = set()
        """Variables that have one value for all parts."""

    def made(self, body: Body, of_part: Body = ()) -> Body:
        """``body`` with the loop in it, where what is computed of a part before it is the first."""
        ahead: list[Stmt] = []
        for number, stmt in enumerate(body):
            if isinstance(stmt, Block) and not stmt.body:  # a heading
                ahead.append(stmt)
            elif self._is_set_once(stmt) and self._is_same(stmt.value):
                self._same.add(stmt.name)
                ahead.append(stmt)
            elif self._is_set_once(stmt):
                of_part = (*of_part, stmt)
            else:
                rest = body[number:]
                is_guard = isinstance(stmt, If) and not stmt.orelse and self._is_same(stmt.cond)
                if isinstance(stmt, If) and is_guard and len(rest) == 1:
                    return (*ahead, replace(stmt, then=self.made(stmt.then, of_part)))
                zero, one = Const(INT64, 0), Const(INT64, 1)
                return (*ahead, For(self._part, zero, self._parts, one, (*of_part, *rest)))
        return tuple(ahead)

    def _is_set_once(self, stmt: Stmt) -> TypeGuard[Assign]:
        """Whether ``stmt`` gives a variable the one value that it has, and not of memory."""
        if not isinstance(stmt, Assign) or self._times[stmt.name] != 1:
            return False
        return not any(isinstance(e, Load) for e in subexpressions(stmt.value))

    def _is_same(self, e: Expr) -> bool:
        """Whether ``e`` is made of ids, arguments and what is the same for all parts."""
        return not any(
            isinstance(x, Load) or (isinstance(x, Var) and x.name not in self._same)
            for x in subexpressions(e)
        )
