"""Turn functions of work-groups into local memory and barriers.

    total = reduce_over_group(x, "add")   →   values[own] = x
                                              barrier()
                                              if own < 16:
                                                  values[own] += values[own + 16 * …]
                                              barrier()
                                              if own == 0:
                                                  values[0] += values[8] + …
                                              barrier()
                                              total = values[0]

Where work-items are lanes of a vector, the first one combines all (``alone``): the others' lanes
would be masked, and access memory an element at a time (sums of 200,000 floats by groups of 256
take 1.3 ms of a core so, and 0.4 in place of that).  The order of operations is that of
``language.combine.over_group``, whatever runs the kernel.  Where a work-group is whole sub-groups,
these combine what is in local memory by shuffles:

    total = reduce_over_group(x, "add")   →   values[own] = x
                                              barrier()
                                              total = reduce_over_group(values, "add")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayDecl,
    Assign,
    Barrier,
    Binary,
    BinaryOp,
    Compare,
    Const,
    Expr,
    For,
    GroupCall,
    GroupOp,
    If,
    ItemQuery,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import rewrite_body, statements
from fusionq.language.combine import halves, identity

MOST_PARTS = 64
"""Values that each work-item of a sub-group combines at most before shuffles."""

_BARRIER = Barrier(global_memory=False)
_AS_REDUCTION: dict[str, GroupOp] = {"any": "or", "all": "and"}
_OPERATIONS: dict[GroupOp, BinaryOp] = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip


def lower_group_functions(
    kernel: Kernel,
    local_range: Sequence[int],
    chosen: Callable[[GroupCall], bool],
    sub_group: int | None = None,
    alone: bool = False,
) -> Kernel:
    """``kernel``, for work-groups of ``local_range``, with the ``chosen`` functions of work-groups
    in local memory; by shuffles of sub-groups of ``sub_group`` work-items, if given; else, where
    ``alone``, reduced by the first work-item."""
    if not any(isinstance(s, GroupCall) and chosen(s) for s in statements(kernel.body)):
        return kernel
    if sub_group is not None and prod(local_range) > MOST_PARTS * sub_group:
        sub_group = None
    return _Lowering(kernel, tuple(local_range), chosen, sub_group, alone).run()


def sub_group_of(kernel: Kernel, sizes: Sequence[int]) -> int | None:
    """The size of the sub-groups that combine what work-items of ``kernel`` have, on a device that
    has those of ``sizes``."""
    if kernel.sub_group_size is not None:
        return kernel.sub_group_size
    fitting = [size for size in sizes if 1 < size <= CODE_LIMITS.combined_together]
    return max(fitting, default=max(sizes, default=1)) if sizes else None


def linear_local_id(local_range: Sequence[int]) -> Expr:
    """The place of a work-item in its group, the last dimension fastest."""
    place: Expr = ItemQuery("local_id", 0)
    for d in range(1, len(local_range)):
        row = Binary(INT64, "mul", place, _int(local_range[d]))
        place = Binary(INT64, "add", row, ItemQuery("local_id", d))
    return place


@dataclass
class _Lowering:
    kernel: Kernel
    local_range: tuple[int, ...]
    chosen: Callable[[GroupCall], bool]
    sub_group: int | None
    alone: bool
    arrays: list[ArrayDecl] = field(default_factory=list)
    variables: list[tuple[str, ScalarType]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kernel = self.kernel
        around = [s for s in statements(kernel.body) if isinstance(s, For | While)]
        self.again = any(isinstance(s, GroupCall) for s in statements(around))
        """Whether a place may be written again, so that all have to have read it before."""
        loops = (s.var for s in statements(kernel.body) if isinstance(s, For))
        self.names = FreshNames([
            *(p.name for p in kernel.params), *(a.name for a in kernel.arrays),
            *(name for name, _ in kernel.variables), *loops,
        ])  # fmt: skip
        self.size = prod(self.local_range)
        self.own = linear_local_id(self.local_range)

    def run(self) -> Kernel:
        body = rewrite_body(self.kernel.body, stmt=self._stmt)
        by_shuffles = any(isinstance(s, GroupCall) and s.values for s in statements(body))
        return replace(
            self.kernel,
            body=body,
            variables=(*self.kernel.variables, *self.variables),
            arrays=(*self.kernel.arrays, *self.arrays),
            sub_group_size=self.sub_group if by_shuffles else self.kernel.sub_group_size,
        )

    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        known = isinstance(stmt, GroupCall) and stmt.values and self.sub_group
        if not isinstance(stmt, GroupCall) or known or not self.chosen(stmt):
            return (stmt,)
        type = stmt.value.type
        values = self._array(stmt, type)
        before: tuple[Stmt, ...] = (Store(values, (self.own,), stmt.value, stmt.span), _BARRIER)
        if self.again:
            before = (_BARRIER, *before)
        op = stmt.op or _AS_REDUCTION.get(stmt.function)
        if op is not None and self.sub_group is not None:
            own = Load(type, values, (self.own,), stmt.span)
            return (*before, replace(stmt, value=own, values=values))
        if op is None:
            assert stmt.source is not None
            combined: tuple[Stmt, ...] = ()
            result: Expr = Load(type, values, (stmt.source,), stmt.span)
        elif stmt.function in ("inclusive_scan", "exclusive_scan"):
            values, combined = self._scan(stmt, op, values)
            result = Load(type, values, (self.own,), stmt.span)
            if stmt.function == "exclusive_scan":
                earlier = Binary(INT64, "sub", self.own, _int(1))
                start = Const(type, identity(op, type.dtype).item())
                first = Compare("eq", self.own, _int(0))
                result = Select(type, first, start, Load(type, values, (earlier,), stmt.span))
        else:
            combined, result = self._reduction(stmt, op, values)
        return (*before, *combined, Assign(stmt.result, result, stmt.span))

    def _array(self, call: GroupCall, type: ScalarType) -> str:
        name = self.names.fresh(f"{call.result}_values")
        lanes = self.sub_group or 1
        places = -(-self.size // lanes) * lanes
        self.arrays.append(ArrayDecl(name, type, (places,), "local"))
        return name

    # -------------------------------------------------------------------------- reduction
    def _reduction(
        self, call: GroupCall, op: GroupOp, values: str
    ) -> tuple[tuple[Stmt, ...], Expr]:
        """Each value with the one half the group further on, then a quarter, and so on: the steps,
        and what comes out."""
        type, span = call.value.type, call.span
        steps: list[Stmt] = []
        is_small = self.size <= CODE_LIMITS.combined_alone
        together = self.size if is_small else CODE_LIMITS.combined_together
        apart = [d for d in halves(self.size) if d >= together]
        loops = tuple(self._combined(call, op, values, d) for d in apart)
        if apart and not self.alone:
            some = Compare("lt", self.own, _int(CODE_LIMITS.combined_together))
            steps += [If(some, loops, span=span), _BARRIER]
        if self.size > 1:
            last: list[Stmt] = [*loops] if self.alone else []
            parts: list[Expr] = []
            for place in range(together):
                parts.append(self._part(last, call, Load(type, values, (_int(place),), span)))
            for distance in halves(len(parts)):
                for place in range(min(distance, len(parts) - distance)):
                    both = combination(type, op, parts[place], parts[place + distance])
                    parts[place] = self._part(last, call, both)
                del parts[distance:]
            last.append(Store(values, (_int(0),), parts[0], span))
            first = Compare("eq", self.own, _int(0))
            steps += [If(first, tuple(last), span=span), _BARRIER]
        return tuple(steps), Load(type, values, (_int(0),), span)

    def _part(self, steps: list[Stmt], call: GroupCall, value: Expr) -> Expr:
        """A variable with ``value``."""
        name = self.names.fresh(f"{call.result}_part")
        self.variables.append((name, value.type))
        steps.append(Assign(name, value, call.span))
        return Var(value.type, name)

    def _combined(self, call: GroupCall, op: GroupOp, values: str, distance: int) -> Stmt:
        """The places of a work-item, or all of them, that have another at the ``distance``,
        combined with it."""
        place = self.names.fresh("place")
        here = Var(INT64, place)
        there = Binary(INT64, "add", here, _int(distance))
        type = call.value.type
        both = Load(type, values, (here,), call.span), Load(type, values, (there,), call.span)
        store = Store(values, (here,), combination(type, op, *both), call.span)
        stop = _int(min(distance, self.size - distance))
        start, step = (
            (_int(0), 1) if self.alone else (self.own, CODE_LIMITS.combined_together)
        )
        return For(place, start, stop, _int(step), (store,), call.span)

    # ------------------------------------------------------------------------------ scans
    def _scan(self, call: GroupCall, op: GroupOp, values: str) -> tuple[str, tuple[Stmt, ...]]:
        """Each value behind the one before, then behind those two before, four before, and so on:
        from one array to another in turn; and the last one."""
        type = call.value.type
        target = self._array(call, type) if self.size > 1 else values
        steps: list[Stmt] = []
        distance = 1
        while distance < self.size:
            own = Load(type, values, (self.own,), call.span)
            place = Binary(INT64, "sub", self.own, _int(distance))
            earlier = Load(type, values, (place,), call.span)
            there = Compare("ge", self.own, _int(distance))
            combined = Select(type, there, combination(type, op, earlier, own), own)
            steps += [Store(target, (self.own,), combined, call.span), _BARRIER]
            values, target = target, values
            distance *= 2
        return values, tuple(steps)


def combination(type: ScalarType, op: GroupOp, a: Expr, b: Expr) -> Expr:
    """As ``language.combine.COMBINE``."""
    if op in ("min", "max"):
        return Select(type, Compare("lt" if op == "min" else "gt", b, a), b, a)
    return Binary(type, _OPERATIONS[op], a, b)


def _int(value: int) -> Const:
    return Const(INT64, value)
