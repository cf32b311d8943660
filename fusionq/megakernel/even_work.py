"""Whether equal parts of a persistent kernel's stages are about the same work, by their texts:

    for k in range(n):          the same for all work-items
    for k in range(id):         more for those with greater ids
    if id > step:               less to do in one part of the range with each step

Memory and ids, but for guards of edges, have no say in how often loops go round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.nodes import (
    Compare,
    Expr,
    For,
    If,
    ItemQuery,
    Load,
    Param,
    Persistent,
    StageCode,
    Stmt,
    Var,
    While,
)
from fusionq.ir.single_values import single_values
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    nested_bodies,
    statements,
    subexpressions,
    with_values,
)

_PLACES = frozenset({"global_id", "group_id"})
"""What differs between parts of a range."""

_SIDES = frozenset({"lt", "le", "gt", "ge"})


@cached_by_identity
def is_even(body: Persistent) -> bool:
    """Whether all parts of each stage go through their loops equally often, as memory and ids have
    no say in that, and no condition on ids moves from stage to stage."""
    for number, code in enumerate(body.codes):
        values = single_values(code.kernel.body)
        arguments = [stage.arguments for stage in body.stages if stage.code == number]
        if not _Loops(code.kernel.body, values).are_even or _moving(code, values, arguments):
            return False
    return True


class _Loops:
    """The loops of ``body``, whose variables have ``values`` where these are known."""

    def __init__(self, body: Sequence[Stmt], values: Mapping[str, Expr]) -> None:
        self._values = values
        self._uneven: set[str] = set()
        """Variables whose values may depend on memory, or where in the range a work-item is."""
        known = -1
        while known < len(self._uneven):
            known = len(self._uneven)
            self.are_even = True
            self._visit(body, False)

    def _visit(self, body: Sequence[Stmt], is_uneven: bool) -> None:
        """``is_uneven``: whether ``body`` may run for some parts of the range only."""
        for stmt in body:
            inside = is_uneven
            match stmt:
                case While():
                    self.are_even = False
                case For(var, start, stop, step):
                    if is_uneven or any(map(self._is_uneven, (start, stop, step))):
                        self.are_even = False
                        self._uneven.add(var)
                case If(cond):
                    inside |= self._is_for_some(with_values(cond, self._values))
                case _:
                    name = assigned_variable(stmt)
                    if name is not None and (
                        is_uneven or any(map(self._is_uneven, expressions((stmt,))))
                    ):
                        self._uneven.add(name)
            for each in nested_bodies(stmt):
                self._visit(each, inside)

    def _is_for_some(self, cond: Expr) -> bool:
        """Whether memory says if ``cond`` holds, or how ids of several dimensions compare: guards
        of edges hold for most of each part."""
        parts = list(subexpressions(cond))
        memory = any(isinstance(e, (Load, Var)) for e in parts)
        return memory or any(
            isinstance(e, Compare) and _is_place(e.lhs) and _is_place(e.rhs) for e in parts
        )

    def _is_uneven(self, expr: Expr) -> bool:
        return _is_place(expr) or any(
            isinstance(e, Load) or (isinstance(e, Var) and e.name in self._uneven)
            for e in subexpressions(expr)
        )


def _is_place(expr: Expr) -> bool:
    return any(isinstance(e, ItemQuery) and e.query in _PLACES for e in subexpressions(expr))


def _moving(
    code: StageCode, values: Mapping[str, Expr], arguments: Sequence[Sequence[str]]
) -> bool:
    """Whether on which side of something ids are depends on a scalar that differs between the
    stages of ``code``, which have ``arguments``."""
    kernel = code.kernel
    names = [param.name for param in kernel.params]
    sizes = {param.name for extent in code.extents for param in _params(extent)}
    asked = {p.name for cond in _on_ids(kernel.body, values) for p in _params(cond)} - sizes
    return any(len({given[names.index(name)] for given in arguments}) > 1 for name in asked)


def _on_ids(body: Sequence[Stmt], values: Mapping[str, Expr]) -> Iterable[Compare]:
    """The comparisons that say on which side of something ids are."""
    for stmt in statements(body):
        if isinstance(stmt, If):
            for e in subexpressions(with_values(stmt.cond, values)):
                if isinstance(e, Compare) and e.op in _SIDES and _is_place(e):
                    yield e


def _params(expr: Expr) -> Iterable[Param]:
    return (e for e in subexpressions(expr) if isinstance(e, Param))
