"""Turn a kernel over work-items into a work-group function: regions between barriers become loops
over the group's work-items.

    x = a[i]                      for item in group.items(4):
    tile[own] = x                     x = a[i]; tile[own] = x; x_of_items[own] = x
    barrier()              →      for item in group.items(4):
    out[i] = x + tile[0]              x = x_of_items[own]; out[i] = x + tile[0]

Conditions and loops around barriers, and what they depend on, are the same for a whole group and
stay outside.  What a work-item keeps from one region to another lies in local memory, one place for
each.  Functions of sub-groups stay in their regions: the lanes that do one turn of the loop are
neighbouring work-items, whole sub-groups of them.

Source: Jääskeläinen et al., "pocl: A Performance-Portable OpenCL Implementation", International
Journal of Parallel Programming 43, 2015: parallel regions and work-item loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import prod

from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.functions import DEVICE_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayDecl,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Call,
    Compare,
    Const,
    Continue,
    Expr,
    Fence,
    For,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    WorkItemLoop,
)
from fusionq.ir.types import BOOL, INT64, ScalarType
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    nested_bodies,
    reads_memory,
    rewrite,
    rewrite_body,
    statements,
    subexpressions,
)
from fusionq.passes.context_arrays import OWN, with_context_arrays
from fusionq.passes.group_functions import linear_local_id

MOST_REPEATED = 12
"""Expressions of an integer that is computed anew in each region rather than kept."""

_OF_WORK_ITEMS = ("global_id", "local_id", "local_linear_id")


def work_group_function(kernel: Kernel, local_range: Sequence[int]) -> Kernel:
    """The work-group function of ``kernel``, whose group functions are on values in local memory,
    for work-groups of ``local_range``."""
    return _Former(kernel, tuple(local_range)).run()


@dataclass
class _Former:
    kernel: Kernel
    local_range: tuple[int, ...]
    arrays: list[ArrayDecl] = field(default_factory=list)
    region: list[Stmt] = field(default_factory=list)
    """The statements since the last barrier."""
    out: list[Stmt] = field(default_factory=list)
    unordered: bool = False
    """Whether all lanes have read, since the last barrier, what a region may overwrite."""

    def __post_init__(self) -> None:
        kernel = self.kernel
        linear = linear_local_id(self.local_range)
        # Each statement an object of its own, by which it is known.
        body = self.body = rewrite_body(
            flatten_blocks(kernel.body), lambda e: OWN if e == linear else e, lambda s: (copy(s),)
        )
        loops = [s.var for s in statements(body) if isinstance(s, For)]
        self.variables: dict[str, ScalarType] = dict(kernel.variables)
        self.names = FreshNames([
            *(p.name for p in kernel.params), *(a.name for a in kernel.arrays),
            *self.variables, *loops,
        ])  # fmt: skip
        self.size = prod(self.local_range)
        self.private = {a.name for a in kernel.arrays if a.space == "private"}
        self.local = {a.name for a in kernel.arrays if a.space == "local"}
        self.split = _split_statements(self.body)
        self.uniform = self._uniform_variables()

    def run(self) -> Kernel:
        body = self._formed(self.body)
        repeated = self._repeated()
        body, context = with_context_arrays(
            body,
            self._kept_variables(repeated),
            self.kernel.arrays,
            repeated,
            self.names,
            self.size,
        )
        self.arrays += context
        return replace(
            self.kernel,
            body=body,
            variables=tuple(self.variables.items()),
            arrays=(*(a for a in self.kernel.arrays if a.name in self._declared(body)),
                    *self.arrays),
        )  # fmt: skip

    def _kept_variables(self, repeated: Mapping[str, Assign]) -> dict[str, ScalarType]:
        """Those of which each work-item has a value of its own, which is not computed anew."""
        elsewhere = self.uniform | repeated.keys()
        return {n: type for n, type in self.variables.items() if n not in elsewhere}

    def _declared(self, body: Sequence[Stmt]) -> set[str]:
        """The arrays that ``body`` still uses."""
        found = {s.array for s in statements(body) if isinstance(s, (Store, Atomic))}
        return found | {e.array for e in expressions(body) if isinstance(e, Load)}

    # ------------------------------------------------------------------ uniform values
    def _uniform_variables(self) -> set[str]:
        """The variables that have one value for all of a group."""
        inside = {id(s) for top in self._places(self.body, inside=True) for s in statements((top,))}
        every = list(statements(self.body))
        loops = {s.var for s in every if isinstance(s, For) and id(s) in self.split}
        found = {name for s in every if (name := assigned_variable(s)) is not None}
        found -= {name for s in every if id(s) in inside and (name := assigned_variable(s))}
        found -= {s.result for s in every if isinstance(s, GroupCall) and _scans(s)}
        assignments = [s for s in self._places(self.body) if isinstance(s, Assign)]
        while True:
            self.uniform = found | loops
            varying = {
                s.name for s in assignments if s.name in found and not self._is_uniform(s.value)
            }
            if not varying:
                return self.uniform
            found = found - varying

    def _places(self, body: Sequence[Stmt], inside: bool = False) -> Iterator[Stmt]:
        """The statements that all of a group reach together, but those that are split; or,
        ``inside``, all that are not Assigns of that kind."""
        for stmt in body:
            if id(stmt) in self.split:
                for nested in nested_bodies(stmt):
                    yield from self._places(nested, inside)
            elif isinstance(stmt, Assign) != inside:
                yield stmt

    def _is_uniform(self, expr: Expr) -> bool:
        """Whether ``expr`` has one value for all of a group where they all reach it together."""
        for e in subexpressions(expr):
            match e:
                case Var() if e.name not in self.uniform:
                    return False
                case ItemQuery() if e.query in _OF_WORK_ITEMS:
                    return False
                case Load() if e.array in self.private:
                    return False
                case Call() if e.function in DEVICE_FUNCTIONS:
                    return False
        return True

    def _value(self, expr: Expr) -> Expr:
        """``expr``, the same for all of a group by the rules of barriers, outside of regions: its
        own value, or that of the first work-item."""
        if self._is_uniform(expr) and not reads_memory(expr):
            return expr
        name = self.names.fresh("uniform")
        self.variables[name] = expr.type
        if self._is_uniform(expr):
            self._flush()
            self.out.append(Assign(name, expr))
        else:
            kept = self.names.fresh(f"{name}_of_items")
            self.arrays.append(ArrayDecl(kept, expr.type, (self.size,), "local"))
            self.region.append(Store(kept, (OWN,), expr))
            self._flush()
            self.out.append(Assign(name, Load(expr.type, kept, (_int(0),))))
        self.unordered = True
        return Var(expr.type, name)

    # --------------------------------------------------------------------------- regions
    def _flush(self) -> None:
        """End the region."""
        if all(isinstance(s, Block) for s in self.region):
            self.out += self.region
        else:
            if self.unordered:
                self.out.append(Barrier())
            self.unordered = False
            self.out.append(_loop(self.size, tuple(self.region)))
        self.region = []

    def _formed(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """``body``, which all of a group reach together, in regions."""
        outer, self.out = self.out, []
        for stmt in body:
            if id(stmt) in self.split:
                self._split_statement(stmt)
            elif isinstance(stmt, Assign) and stmt.name in self.uniform:
                self._uniform_assignment(stmt)
            else:
                self.region.append(stmt)
        self._flush()
        formed, self.out = tuple(self.out), outer
        return formed

    def _uniform_assignment(self, stmt: Assign) -> None:
        """Before the region, if that makes no difference."""
        written = [s for s in statements(self.region) if isinstance(s, Store | Atomic | Fence)]
        used = {e.name for e in expressions(self.region) if isinstance(e, Var)}
        if stmt.name in used or (written and reads_memory(stmt.value)):
            self._flush()
        self.unordered = self.unordered or reads_memory(stmt.value)
        self.out.append(stmt)

    def _split_statement(self, stmt: Stmt) -> None:
        match stmt:
            case Barrier():
                self._flush()
                if self.unordered:
                    self.out.append(Barrier())
                    self.unordered = False
            case GroupCall():
                self._group_call(stmt)
            case If():
                cond = self._value(stmt.cond)
                self._flush()
                then, orelse = self._branch(stmt.then), self._branch(stmt.orelse)
                self.out.append(If(cond, then, orelse, stmt.span))
                self.unordered = True
            case For():
                start, stop, step = (self._value(e) for e in (stmt.start, stmt.stop, stmt.step))
                self._flush()
                body = self._branch(stmt.body)
                self.out.append(For(stmt.var, start, stop, step, body, stmt.span))
                self.unordered = True
            case While():
                self._flush()
                outer, self.out, self.unordered = self.out, [], True
                leaves = Unary(BOOL, "not", self._value(stmt.cond))
                self._flush()
                self.out.append(If(leaves, (Break(),), span=stmt.span))
                body = (*self.out, *self._branch(stmt.body))
                self.out = outer
                self.out.append(While(Const(BOOL, True), body, stmt.span))
                self.unordered = True
            case Break() | Continue():
                self._flush()
                self.out.append(stmt)
            case _:
                raise AssertionError(f"no region ends at {stmt!r}")

    def _group_call(self, stmt: GroupCall) -> None:
        """A group function between regions; what varies in a group is then each work-item's."""
        self._flush()
        type, values = stmt.value.type, stmt.values
        assert values is not None
        call = replace(stmt, value=Load(type, values, (_int(0),), stmt.span))
        if stmt.result not in self.uniform:
            call = replace(call, result=self.names.fresh(stmt.result))
            self.variables[call.result] = type
            own = Load(type, values, (OWN,), stmt.span) if _scans(stmt) else Var(type, call.result)
            self.region.append(Assign(stmt.result, own, stmt.span))
        self.out.append(call)
        self.unordered = True

    def _branch(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        self.unordered = True
        return self._formed(body)

    # -------------------------------------------------------------------- computed anew
    def _repeated(self) -> dict[str, Assign]:
        """Assignments that each region can make itself: the only ones to their variables, of few
        operations on ids and arguments."""
        every = list(statements(self.body))
        times = Counter(assigned_variable(s) for s in every)
        found: dict[str, Assign] = {}
        for s in every:
            if not isinstance(s, Assign) or times[s.name] > 1 or s.name in self.uniform:
                continue
            value = rewrite(
                s.value,
                lambda e: found[e.name].value if isinstance(e, Var) and e.name in found else e,
            )
            inside = list(subexpressions(value))
            plain = not any(isinstance(e, Var | Load | Call) for e in inside)
            if plain and len(inside) <= MOST_REPEATED and not s.value.type.is_float:
                found[s.name] = replace(s, value=value)
        return found


def _split_statements(body: Sequence[Stmt]) -> set[int]:
    """The statements that end a region: barriers, what is around them, and what leaves a loop
    around one."""
    found: set[int] = set()

    def walk(stmts: Sequence[Stmt], loop: Stmt | None, waits: bool) -> bool:
        """``loop``: the innermost one; ``waits``: whether that has a barrier."""
        split = False
        for stmt in stmts:
            inside = isinstance(stmt, Barrier) or _is_of_work_group(stmt)
            if isinstance(stmt, For | While):
                inside = any(isinstance(s, Barrier) for s in statements(stmt.body))
                walk(stmt.body, stmt, inside)
            elif isinstance(stmt, Break | Continue):
                inside = waits
            else:
                for nested in nested_bodies(stmt):
                    inside = walk(nested, loop, waits) or inside
            if inside:
                found.add(id(stmt))
            split = split or inside
        return split

    walk(body, None, False)
    return found


def _is_of_work_group(stmt: Stmt) -> bool:
    return isinstance(stmt, GroupCall) and stmt.sub_group is None


def _scans(call: GroupCall) -> bool:
    return call.function in ("inclusive_scan", "exclusive_scan")


def _loop(items: int, body: tuple[Stmt, ...]) -> WorkItemLoop:
    """``body`` for the work-items of a group, without those that it does nothing for."""
    *headings, last = body
    meets = any(isinstance(s, GroupCall) for s in statements(body))
    alone = not meets and all(isinstance(s, Block) for s in headings)
    if isinstance(last, If) and not last.orelse and alone:
        match last.cond:
            case Compare("lt", ItemQuery("local_linear_id"), Const(_, int() as below)):
                if below >= 1:
                    return WorkItemLoop(min(items, below), (*headings, *last.then))
            case Compare("eq", ItemQuery("local_linear_id"), Const(_, 0)):
                return WorkItemLoop(1, (*headings, *last.then))
    return WorkItemLoop(items, body)


def _int(value: int) -> Const:
    return Const(INT64, value)
