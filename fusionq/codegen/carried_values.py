"""Scalar replacement of elements that a loop's next iteration reads, in launches of few work-items:

    for j in range(1, n):                 if 1 < n: before = p[i, 0]
        p[i, j] = c / (a * p[i, j - 1])   for j in range(1, n):
                                      →       value = c / (a * before)
                                              p[i, j] = value
                                              before = value

A GPU's store goes to the level 2 cache, and a load of the same element waits for that: some
hundred cycles an iteration of a recurrence, where registers take none.  What an iteration stores
stays in memory as well, and has the same bits.  Loads of other arrays in such a loop can be made
ahead then (``loads_together``); indices by way of variables that the loop sets are written out for
that.

Legal for arrays that share memory with no other one, and that the loop stores to at one place of
its body, to an element that each iteration reads where the iteration before has stored, or where
this one has.

Source: Callahan, Carr and Kennedy, Improving register allocation for subscripted variables, PLDI
1990.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from fusionq.codegen.scoping import Body
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.index_sums import index_sum
from fusionq.ir.int64_operations import int64
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Param,
    Stmt,
    Store,
    Unary,
    Var,
)
from fusionq.ir.types import FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, ScalarType
from fusionq.ir.walk import (
    always_evaluated,
    assigned_variable,
    operands,
    rewrite,
    rewrite_body,
    statement_expressions,
    statements,
    subexpressions,
)

_TYPES = (FLOAT32, FLOAT64, INT32, UINT32, INT64, UINT64)
"""Those of which a register holds what memory does."""

Indices = tuple[Expr, ...]


def with_carried_values(kernel: Kernel, body: Body) -> Kernel | None:
    """``kernel``, whose body without nested blocks is ``body``, with what its loops carry from one
    iteration to the next in variables; None where there is nothing."""
    rewriting = _Carrying(kernel)
    body = rewrite_body(body, stmt=rewriting.stmt)
    if not rewriting.variables:
        return None
    variables = (*kernel.variables, *rewriting.variables)
    return replace(kernel, variables=variables, body=body)


@dataclass(frozen=True)
class _Carried:
    """What iterations store to ``array`` at ``indices`` by the statement ``place`` of a loop's
    body; the one before has stored at ``before``."""

    array: str
    place: int
    indices: Indices
    before: Indices


@dataclass
class _Carrying:
    kernel: Kernel
    variables: list[tuple[str, ScalarType]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        kernel = self.kernel
        loops = (s.var for s in statements(kernel.body) if isinstance(s, For))
        declared = (p.name for p in (*kernel.params, *kernel.arrays))
        self._names = FreshNames([*loops, *declared, *(name for name, _ in kernel.variables)])

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, For) or not _is_plain(stmt):
            return (stmt,)
        written_out = replace(stmt, body=_with_indices_written_out(stmt))
        found = self._found(written_out)
        return self._rewritten(written_out, found) if found else (stmt,)

    def _found(self, loop: For) -> list[_Carried]:
        alone = {
            p.name
            for p in self.kernel.params
            if isinstance(p, ArrayParam) and p.restrict and p.dtype in _TYPES
        }
        stores = Counter(s.array for s in loop.body if isinstance(s, Store))
        found = (
            self._carried(loop, place, s)
            for place, s in enumerate(loop.body)
            if isinstance(s, Store) and s.array in alone and stores[s.array] == 1
        )
        return [carried for carried in found if carried is not None]

    def _carried(self, loop: For, place: int, store: Store) -> _Carried | None:
        """What ``store``, the only one of ``loop`` to its array, leaves for the next iteration."""
        indices = _form(store.indices)
        backwards = int64("sub", Var(INT64, loop.var), loop.step)
        before = _form(_at(store.indices, loop.var, backwards))
        assigned = {assigned_variable(s) for s in loop.body}
        if not _is_known(indices, assigned):
            return None
        is_read = False
        for number, stmt in enumerate(loop.body):
            for whole in statement_expressions(stmt):
                always = list(always_evaluated(whole))
                for e in subexpressions(whole):
                    if not isinstance(e, Load) or e.array != store.array:
                        continue
                    form = _form(e.indices)
                    if form == indices and number > place:
                        continue
                    if form != before:
                        return None
                    is_read = is_read or e in always
        return _Carried(store.array, place, indices, before) if is_read else None

    def _rewritten(self, loop: For, found: Sequence[_Carried]) -> tuple[Stmt, ...]:
        """``loop`` with what is ``found`` in variables, behind what sets these for its first
        iteration."""
        variables: dict[str, tuple[_Carried, Var, Var]] = {}
        begun: list[Stmt] = []
        ended: list[Stmt] = []
        for carried in found:
            last, value = (self._variable(carried.array, what) for what in ("before", "value"))
            variables[carried.array] = carried, last, value
            first = _at(carried.before, loop.var, loop.start)
            begun.append(Assign(last.name, Load(last.type, carried.array, first)))
            ended.append(Assign(last.name, value))
        body: list[Stmt] = []
        for number, stmt in enumerate(loop.body):

            def expr(e: Expr, number: int = number) -> Expr:
                if not isinstance(e, Load) or e.array not in variables:
                    return e
                carried, last, value = variables[e.array]
                is_own = number > carried.place and _form(e.indices) == carried.indices
                return value if is_own else last

            (stmt,) = rewrite_body((stmt,), expr)
            if isinstance(stmt, Store) and stmt.array in variables:
                value = variables[stmt.array][2]
                body.append(Assign(value.name, stmt.value, stmt.span))
                stmt = replace(stmt, value=value)
            body.append(stmt)
        some = Compare("lt" if _step(loop) > 0 else "gt", loop.start, loop.stop)
        return (If(some, tuple(begun), ()), replace(loop, body=(*body, *ended)))

    def _variable(self, array: str, what: str) -> Var:
        param = self.kernel.param(array)
        assert isinstance(param, ArrayParam)
        made = Var(param.dtype, self._names.fresh(f"{array}_{what}"))
        self.variables.append((made.name, made.type))
        return made


def _is_plain(loop: For) -> bool:
    """Whether a loop does assignments and stores only, in steps of a constant, between bounds that
    are the same behind what stands before it."""
    return (
        isinstance(loop.step, Const)
        and loop.step.value != 0
        and all(isinstance(s, Assign | Store) for s in loop.body)
        and not any(isinstance(e, Load) for b in (loop.start, loop.stop) for e in subexpressions(b))
    )


def _step(loop: For) -> int:
    assert isinstance(loop.step, Const)
    return int(loop.step.value)


def _with_indices_written_out(loop: For) -> Body:
    """The body of ``loop`` with sums in indices where these are variables that it sets once, ahead
    of what they are used in, to such."""
    times = Counter(assigned_variable(s) for s in loop.body)
    sums: dict[str, Expr] = {}

    def written(e: Expr) -> Expr:
        return sums.get(e.name, e) if isinstance(e, Var) else e

    def index(e: Expr) -> Expr:
        if isinstance(e, Load):
            return replace(e, indices=tuple(rewrite(i, written) for i in e.indices))
        return e

    body: list[Stmt] = []
    for stmt in loop.body:
        (stmt,) = rewrite_body((stmt,), index)
        if isinstance(stmt, Store):
            stmt = replace(stmt, indices=tuple(rewrite(i, written) for i in stmt.indices))
        elif isinstance(stmt, Assign) and stmt.value.type == INT64 and times[stmt.name] == 1:
            value = rewrite(stmt.value, written)
            varying = times.keys() - sums.keys()
            if _is_sum(value) and not _names_in(value) & varying:
                sums[stmt.name] = value
        body.append(stmt)
    return tuple(body)


def _is_sum(expr: Expr) -> bool:
    match expr:
        case Const() | Param() | Extent() | ItemQuery() | Var():
            return True
        case Binary(_, "add" | "sub" | "mul") | Unary(_, "neg" | "pos"):
            return all(map(_is_sum, operands(expr)))
    return False


def _names_in(expr: Expr) -> set[str]:
    return {e.name for e in subexpressions(expr) if isinstance(e, Var)}


def _is_known(indices: Indices, assigned: Collection[str | None]) -> bool:
    """Whether ``indices`` need no memory and no variable that the loop sets."""
    inside = [e for index in indices for e in subexpressions(index)]
    return not any(
        isinstance(e, Load) or (isinstance(e, Var) and e.name in assigned) for e in inside
    )


def _form(indices: Indices) -> Indices:
    """Equal for equal indices, as far as sums are."""
    return tuple(index_sum(index) for index in indices)


def _at(indices: Indices, var: str, value: Expr) -> Indices:
    """``indices`` with ``value`` for the loop's variable."""

    def expr(e: Expr) -> Expr:
        return value if isinstance(e, Var) and e.name == var else e

    return tuple(rewrite(index, expr) for index in indices)
