"""Work-groups that are no whole number of vectors are launched with more work-items, which do
nothing but take part in barriers.

    s[l] = a[i]                   i = group * 250 + l
    barrier()                     if l < 250:                    launched with 256
    b[i] = s[249 - l]      →          s[l] = a[i]
                                  barrier()
                                  if l < 250:
                                      b[i] = s[249 - l]

Intel's compiler for CPUs does all work-items of such a group one by one where they wait for each
other: its loops over work-items, between two barriers each, have no remainder.  Sums of groups of
200 floats take 2.6 ns a work-item so, and 0.5 in groups of 208.

It is legal where barriers stand in conditions and loops only that are the same for the work-group,
by what all of its work-items can find out: the statements that set what these read are done by
those that are added, too.  To functions of work-groups these give the operation's identity; floats
are combined in local memory.  Sub-groups would see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Block,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Expr,
    For,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    Persistent,
    Record,
    Select,
    Stmt,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.types import BOOL, INT64
from fusionq.ir.uniformity import is_uniform, uniform_variables
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    has_barrier,
    rewrite_body,
    statement_expressions,
    statements,
    subexpressions,
)
from fusionq.language.combine import identity

_KNOWN = (
    "global_id", "global_range", "local_id", "local_range", "group_id", "group_range",
    "local_linear_id",
)  # fmt: skip

_ANYWHERE = frozenset({
    "clock", "cycle_counter", "first_sub_group", "first_sub_group_here", "last_sub_group",
    "leads_sub_group",
})  # fmt: skip
"""Of the functions by which profiles find out who records: the padding is a part of a vector, and
so of a sub-group that has work-items."""


def with_padding_if_legal(kernel: Kernel) -> Kernel:
    """``kernel``, which may have changed since it was marked, without the mark where padding is no
    longer legal."""
    if kernel.padded_row is None or padded_rows(kernel, kernel.padded_row[0]) is not None:
        return kernel
    return replace(kernel, padded_row=None)


def with_padded_rows(kernel: Kernel) -> Kernel:
    """``kernel`` for the work-groups with which it is launched, where these have padding."""
    if kernel.padded_row is None:
        return kernel
    padded = padded_rows(kernel, kernel.padded_row[0])
    assert padded is not None, "only kernels whose work-groups may have padding are marked"
    return padded


def padded_rows(kernel: Kernel, items: int) -> Kernel | None:
    """``kernel``, whose work-groups have so many ``items`` in the last dimension, for those with
    more; None where that is not legal."""
    if kernel.sub_group_size is not None:
        return None
    body = flatten_blocks(kernel.body)
    if any(isinstance(s, Persistent | Record | WorkItemLoop) for s in statements(body)):
        return None
    if not all(_keeps_meaning(e, kernel.ndim) for e in expressions(body)):
        return None
    guarded = _Guarded(body, kernel.ndim - 1, items).of(body)
    if guarded is None:
        return None
    last, own = kernel.ndim - 1, Const(INT64, items)

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("global_id", dim) if dim == last:
                first = Binary(INT64, "mul", ItemQuery("group_id", last), own)
                return Binary(INT64, "add", first, ItemQuery("local_id", last))
            case ItemQuery("global_range", dim) if dim == last:
                return Binary(INT64, "mul", ItemQuery("group_range", last), own)
            case ItemQuery("local_range", dim) if dim == last:
                return own
            case ItemQuery("local_linear_id"):
                return _linear_local_id(kernel.ndim, own)
        return e

    return replace(kernel, body=rewrite_body(guarded, expr), padded_row=None)


def _keeps_meaning(e: Expr, ndim: int) -> bool:
    """Whether what ``e`` asks of a work-item's place is told in a group with padding."""
    if isinstance(e, ItemQuery):
        return e.query in _KNOWN
    if not isinstance(e, Call) or e.function not in DEVICE_FUNCTIONS:
        return True
    # In several dimensions the device's linear ids are others.
    return e.function in _ANYWHERE or (ndim == 1 and e.function == "sub_group_has_here")


def _linear_local_id(ndim: int, row: Const) -> Expr:
    place: Expr = ItemQuery("local_id", 0)
    for d in range(1, ndim):
        length = row if d == ndim - 1 else ItemQuery("local_range", d)
        before = Binary(INT64, "mul", place, length)
        place = Binary(INT64, "add", before, ItemQuery("local_id", d))
    return place


class _Guarded:
    """Puts what is not done by padding under a condition on the local id."""

    def __init__(self, body: Body, last: int, items: int) -> None:
        self._last = last
        self._inside = Compare("lt", ItemQuery("local_id", last), Const(INT64, items))
        self._uniform = uniform_variables(body)
        self._asked = self._asked_by_barriers(body)

    def _asked_by_barriers(self, body: Body) -> frozenset[str]:
        """The variables by which it is decided whether barriers are reached, with those that these
        are made of."""
        found = list(statements(body))
        around = [s for s in found if isinstance(s, For | If | While) and has_barrier((s,))]
        sources = [s.source for s in found if isinstance(s, GroupCall) and s.source is not None]
        asked = frozenset(_read(around)) | {
            e.name for source in sources for e in subexpressions(source) if isinstance(e, Var)
        }
        while True:
            more = asked | frozenset(
                name
                for s in found
                if any(_sets(inner, asked) for inner in statements((s,)))
                for name in _read((s,))
            )
            if more == asked:
                return asked
            asked = more

    def of(self, body: Sequence[Stmt]) -> Body | None:
        """``body`` with barriers outside of the condition; None where they cannot stand there."""
        made: list[Stmt] = []
        plain: list[Stmt] = []

        def flush() -> None:
            if plain:
                made.append(If(self._inside, tuple(plain)))
                plain.clear()

        for stmt in body:
            if not has_barrier((stmt,)):
                if isinstance(stmt, Block):
                    flush()
                    made.append(stmt)
                elif any(_sets(s, self._asked) for s in statements((stmt,))):
                    if not self._is_same_for_all(stmt):
                        return None
                    flush()
                    made.append(stmt)
                else:
                    plain.append(stmt)
                continue
            flush()
            around = self._around_barrier(stmt)
            if around is None:
                return None
            made.append(around)
        flush()
        return tuple(made)

    def _around_barrier(self, stmt: Stmt) -> Stmt | None:
        """``stmt``, which is a barrier or holds one."""
        if isinstance(stmt, Barrier):
            return stmt
        if isinstance(stmt, GroupCall):
            return self._call(stmt)
        if not all(is_uniform(e, self._uniform) for e in statement_expressions(stmt)):
            return None
        match stmt:
            case If():
                then, orelse = self.of(stmt.then), self.of(stmt.orelse)
                if then is None or orelse is None:
                    return None
                return replace(stmt, then=then, orelse=orelse)
            case For() | While():
                body = None if _ends_early(stmt.body) else self.of(stmt.body)
                return None if body is None else replace(stmt, body=body)
        return None

    def _call(self, call: GroupCall) -> GroupCall | None:
        """``call``, to which padding gives what changes nothing; None where it would show."""
        type = call.value.type
        if call.sub_group is not None or call.values is not None:
            return None
        match call.function:
            case "any" | "all":
                neutral = Const(BOOL, call.function == "all")
            case "broadcast":
                # Of several dimensions the place in a group with padding is another one.
                source = call.source
                is_one = source is not None and is_uniform(source, self._uniform)
                return call if self._last == 0 and is_one else None
            case "reduce" | "inclusive_scan" | "exclusive_scan" if not type.is_float:
                assert call.op is not None
                neutral = Const(type, identity(call.op, type.dtype).item())
            case _:
                return None
        return replace(call, value=Select(type, self._inside, call.value, neutral))

    def _is_same_for_all(self, stmt: Stmt) -> bool:
        """Whether ``stmt`` does nothing but give variables values that are the same for all of a
        work-group."""
        inside = list(statements((stmt,)))
        if not all(isinstance(s, Assign | If | For | While | Break | Continue) for s in inside):
            return False
        sets = (assigned_variable(s) for s in inside)
        if not all(name is None or name in self._uniform for name in sets):
            return False
        return all(is_uniform(e, self._uniform) for e in expressions((stmt,)))


def _sets(stmt: Stmt, names: frozenset[str]) -> bool:
    return assigned_variable(stmt) in names


def _read(body: Iterable[Stmt]) -> Iterable[str]:
    """The variables that statements read themselves."""
    for stmt in body:
        for e in statement_expressions(stmt):
            yield from (part.name for part in subexpressions(e) if isinstance(part, Var))


def _ends_early(body: Iterable[Stmt]) -> bool:
    """Whether an iteration of a loop with ``body`` may end before its last statement."""
    for stmt in body:
        match stmt:
            case Break() | Continue():
                return True
            case If(_, then, orelse):
                if _ends_early((*then, *orelse)):
                    return True
    return False
