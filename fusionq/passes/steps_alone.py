"""Steps between barriers that few of a work-group's work-items do: the first one does them all.

    barrier()                         barrier()
    if l < d:                         if l == 0:
        s[l] = s[l] + s[l + d]    →       for place in range(min(d, 256)):
    barrier()                                 s[place] = s[place] + s[place + d]
                                      barrier()

Here ``l`` is the local id, of 256, and ``d`` the same for the work-group: a tree in local memory.
Where work-items are lanes of a vector, each step is a loop over all of a work-group's vectors, and
those that are masked access memory an element at a time: sums of 205,000 floats by such trees take
1.2 to 2.2 ms of a core, and 0.45 to 0.9 in place of that (a core, AVX2).

It is legal where between the barriers, also in loops around them, nothing is done but the step, so
that no work-item sees what others do in it; its statements access local memory alone, know of their
work-item only the place, and set variables that no other statement reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.device_info import DeviceInfo
from fusionq.ir.conjunctions import conjunction, conjuncts
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.functions import DEVICE_FUNCTIONS, FLOAT_FUNCTIONS
from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Block,
    Call,
    Compare,
    Const,
    Continue,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.types import INT64
from fusionq.ir.uniformity import is_uniform, uniform_variables
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    has_barrier,
    loaded_arrays,
    reads_memory,
    rewrite,
    rewrite_body,
    statement_expressions,
    statements,
    subexpressions,
    with_values,
)
from fusionq.passes.group_functions import linear_local_id

_LANES = 16
"""Of vectors, at most: a step by a constant number of whole vectors has no masks."""


def with_steps_alone(
    kernel: Kernel, local_range: Sequence[int] | None, device: DeviceInfo
) -> Kernel:
    """``kernel``, for work-groups of ``local_range``, where such steps are done by the first
    work-item; as it is, where its ``device`` makes no lanes of work-items, or there are none."""
    if local_range is None or device.kind != "cpu" or not has_barrier(kernel.body):
        return kernel
    return _Steps(kernel, tuple(local_range)).made()


class _Steps:
    def __init__(self, kernel: Kernel, local_range: tuple[int, ...]) -> None:
        self._kernel = kernel
        self._local_range = local_range
        self._size = prod(local_range)
        found = list(statements(kernel.body))
        self._sets = Counter(assigned_variable(s) for s in found)
        loops = {s.var for s in found if isinstance(s, For)}
        self._reads = Counter(_read(found))
        self._uniform = uniform_variables(kernel.body)
        self._local = {a.name for a in kernel.arrays if a.space == "local"}
        taken = {name for name, _ in kernel.variables} | {p.name for p in kernel.params}
        self._names = FreshNames(taken | loops | {a.name for a in kernel.arrays})
        self._known: dict[str, Expr] = {}

    def made(self) -> Kernel:
        body = self._body(self._kernel.body, False)
        return self._kernel if body == self._kernel.body else replace(self._kernel, body=body)

    def _body(self, body: Sequence[Stmt], is_behind: bool) -> tuple[Stmt, ...]:
        """``body`` with other steps; ``is_behind``: it begins right behind a barrier each time."""
        made: list[Stmt] = []
        for place, stmt in enumerate(body):
            if isinstance(stmt, Assign) and self._sets[stmt.name] == 1:
                self._know(stmt)
            follows = place + 1 < len(body) and _is_behind_barrier(body[place + 1], False)
            if isinstance(stmt, If) and follows and is_behind:
                stmt = self._step(stmt) or stmt
            elif isinstance(stmt, For | While | Block) and has_barrier((stmt,)):
                inner = is_behind and (isinstance(stmt, Block) or _ends_behind_barrier(stmt))
                stmt = replace(stmt, body=self._body(stmt.body, inner))
            made.append(stmt)
            is_behind = _is_behind_barrier(stmt, is_behind)
        return tuple(made)

    def _know(self, stmt: Assign) -> None:
        value = self._in_terms_of_ids(stmt.value)
        if not any(isinstance(e, Load | Var) for e in subexpressions(value)):
            self._known[stmt.name] = value

    def _in_terms_of_ids(self, e: Expr) -> Expr:
        return with_values(e, self._known)

    # -------------------------------------------------------------------------- a step
    def _step(self, stmt: If) -> Stmt | None:
        """A step of the first work-items, as the first of them does it; None where it may not."""
        limit: Expr | None = None
        others: list[Expr] = []
        for cond in conjuncts(stmt.cond):
            found = self._limit(self._in_terms_of_ids(cond)) if limit is None else None
            if found is None:
                others.append(cond)
            limit = limit or found
        if limit is None or stmt.orelse:
            return None
        step = (If(conjunction(others), stmt.then),) if others else stmt.then
        if not self._is_short(step):
            return None
        own = {name for s in statements(stmt.then) if (name := assigned_variable(s)) is not None}
        inside = Counter(_read(statements(step)))
        if any(self._reads[name] != inside[name] for name in own) or _uses(limit, own):
            return None
        item = Var(INT64, self._names.fresh("place"))
        known = {name: value for name, value in self._known.items() if name not in own}

        def expr(e: Expr) -> Expr:
            if isinstance(e, Var):
                return rewrite(known.get(e.name, e), lambda e: self._of_item(e, item))
            return self._of_item(e, item)

        body = rewrite_body(step, expr)
        same = self._uniform | own | {item.name}
        parts = (e for e in expressions(body) if isinstance(e, Var | ItemQuery))
        if not all(is_uniform(e, same) for e in parts):
            return None
        most = Call(INT64, "minimum", (limit, Const(INT64, self._size)))
        loop = For(item.name, Const(INT64, 0), most, Const(INT64, 1), body, stmt.span)
        first = Compare("eq", linear_local_id(self._local_range), Const(INT64, 0))
        return If(first, (loop,), (), stmt.span)

    def _limit(self, cond: Expr) -> Expr | None:
        """What the place of a work-item in its group is below by ``cond``, if that is one for all,
        and may be less than a vector has lanes, or no multiple of that."""
        match cond:
            case Compare(op="lt", lhs=place, rhs=limit) | Compare(op="gt", lhs=limit, rhs=place):
                if not self._is_place(place) or limit.type != INT64:
                    return None
                if isinstance(limit, Const) and int(limit.value) % _LANES == 0:
                    return None
                return limit if is_uniform(limit, self._uniform) else None
        return None

    def _is_place(self, e: Expr) -> bool:
        if not isinstance(e, ItemQuery):
            return False
        alone = len(self._local_range) == 1
        return e.query == "local_linear_id" or (e.query == "local_id" and alone)

    def _of_item(self, e: Expr, item: Var) -> Expr:
        """``e`` of the work-item ``item`` of the group."""
        if self._is_place(e):
            return item
        if isinstance(e, ItemQuery) and e.query == "global_id" and len(self._local_range) == 1:
            first = Binary(INT64, "mul", ItemQuery("group_id", 0), Const(INT64, self._size))
            return Binary(INT64, "add", first, item)
        return e

    def _is_short(self, body: Sequence[Stmt]) -> bool:
        """Whether ``body`` accesses local memory, and that alone, rather than computes."""
        accesses = computed = 0
        for s in statements(body):
            match s:
                case Store(array=array) if array in self._local:
                    accesses += 1
                case Assign() | If():
                    pass
                case _:
                    return False
        for e in expressions(body):
            if isinstance(e, Call) and e.function in (*FLOAT_FUNCTIONS, *DEVICE_FUNCTIONS):
                return False
            accesses += isinstance(e, Load)
            computed += isinstance(e, Binary) and e.type.is_float
        few = computed <= CODE_LIMITS.scalar_operations * accesses
        return bool(accesses) and few and loaded_arrays(body) <= self._local


def _read(body: Iterable[Stmt]) -> Iterable[str]:
    """The variables that statements read, as often as they do."""
    for stmt in body:
        for e in statement_expressions(stmt):
            yield from (part.name for part in subexpressions(e) if isinstance(part, Var))


def _uses(e: Expr, names: set[str]) -> bool:
    return any(isinstance(part, Var) and part.name in names for part in subexpressions(e))


def _is_behind_barrier(stmt: Stmt, is_behind: bool) -> bool:
    """Whether nothing was done since a barrier when ``stmt`` has been, and before it
    ``is_behind``."""
    match stmt:
        case Barrier():
            return stmt.local_memory
        case Assign():
            return is_behind and not reads_memory(stmt.value)
        case Block(body=()):
            return is_behind
        case Block(body=body):
            for inner in body:
                is_behind = _is_behind_barrier(inner, is_behind)
            return is_behind
    return False


def _ends_behind_barrier(loop: For | While) -> bool:
    """Whether nothing is done in ``loop`` between its last barrier and the next iteration."""
    control = (loop.cond,) if isinstance(loop, While) else (loop.start, loop.stop, loop.step)
    if any(map(reads_memory, control)) or not any(isinstance(s, Barrier) for s in loop.body):
        return False
    is_behind = False
    for stmt in loop.body:
        is_behind = _is_behind_barrier(stmt, is_behind)
    return is_behind and not any(isinstance(s, Continue) for s in statements(loop.body))
