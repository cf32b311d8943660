"""Access relations of one kernel: which element each work-item reads and writes, and when.

A kernel is executed symbolically over *instances*: a work-item's global ids followed by one
dimension for each loop.  Everything that decides whether an access happens counts: guards,
loop bounds, conditions, ``break`` and ``continue``.  What is not affine makes an access
inexact (it may happen, so it counts as happening) or unknown (it may touch any element).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from typing import Literal, TypeVar

import islpy as isl

from fusionq.analysis.affine import Affine, AffineReader, Truth, Value, is_short, isl_val
from fusionq.analysis.isl_operations import OuterTooHard, TooManyOperations, answered
from fusionq.analysis.kernel_accesses import (
    Access,
    BindingLoop,
    KernelAccesses,
    KernelShape,
    Meeting,
    item_dims,
)
from fusionq.analysis.symbols import Symbols
from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.ir.loop_exits import can_break, leaves_iteration
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Continue,
    Expr,
    For,
    GroupCall,
    If,
    ItemQuery,
    Kernel,
    Load,
    Logical,
    Record,
    Select,
    Stmt,
    Store,
    Unary,
    While,
)
from fusionq.ir.walk import assigned_variable, operands, statement_expressions, statements

T = TypeVar("T")


def read_accesses(
    kernel: Kernel,
    shape: KernelShape,
    symbols: Symbols,
    own_arrays: bool = False,
    pins: bool = True,
) -> KernelAccesses:
    """The accesses of ``kernel`` over ``shape`` to its parameters; with ``own_arrays`` also those
    to its private and local arrays.  ``pins``: they may hold for some symbols' present values."""
    loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
    space = symbols.space(item_dims(kernel.ndim) + [f"k{n}" for n in range(len(loops))])
    walker = _Walker(kernel, shape, symbols, space, own_arrays, pins)
    walker.run()
    return KernelAccesses(
        kernel.ndim,
        tuple(walker.found),
        tuple(walker.meetings),
        tuple(walker.binding_loops),
        frozenset(walker.reader.pinned),
    )


@dataclass
class _Live:
    """Instances that reach a point of the program; ``exact`` if all of them do."""

    instances: isl.Set
    exact: bool


@dataclass
class _Walker:
    kernel: Kernel
    shape: KernelShape
    symbols: Symbols
    space: isl.Space
    own_arrays: bool
    pins: bool
    found: list[Access] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)
    binding_loops: list[BindingLoop] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reader = AffineReader(
            self.symbols, self.space, self._query, self.shape.extents, self.shape.params, set(),
            {a.name: a for a in self.kernel.arrays if a.space == "constant"}, self.pins,
        )  # fmt: skip
        self.env: dict[str, Value] = {}
        self.left_out = () if self.own_arrays else {a.name for a in self.kernel.arrays}
        self.known: dict[int, Value] | None = None
        """Values of parts of the expression that is evaluated now, by id: of a long condition each
        part is asked for again and again."""
        self.clock = 0
        self.prefix: tuple[int | str, ...] = ()
        self.next_loop = self.kernel.ndim

    def run(self) -> None:
        start = self.reader.everywhere().intersect_params(self.symbols.context)
        for d, name in enumerate(self.shape.global_range):
            i, n = self._dimension(d, self.symbols.bound(name)), self._size(name)
            start = start.intersect(i.value.ge_set(self._zero())).intersect(i.value.lt_set(n.value))
        self.start = start
        self.body(self.kernel.body, _Live(start, True))

    # ------------------------------------------------------------------------- values
    def _dimension(self, position: int, bound: int) -> Affine:
        value = self.reader.dimension(position, bound)
        assert value is not None
        return value

    def _size(self, name: str) -> Affine:
        value = self.reader.symbol(name)
        assert value is not None, f"size {name} is beyond int64"
        return value

    def _zero(self) -> isl.PwAff:
        zero = self.reader.constant(0)
        assert zero is not None
        return zero.value

    def _query(self, query: ItemQuery) -> Value:
        d = query.dim
        whole = self.shape.global_range[d]
        i = self._dimension(d, self.symbols.bound(whole))
        if query.query == "global_id":
            return i
        if query.query == "global_range":
            return self._size(whole)
        if self.shape.local_range is None:
            return None
        size = self.reader.constant(self.shape.local_range[d])
        assert size is not None
        match query.query:
            case "local_range":
                return size
            case "local_id":
                return self.reader.arithmetic("mod", i, size)
            case "group_id":
                return self.reader.arithmetic("floordiv", i, size)
            case _:
                return self.reader.arithmetic("floordiv", self._size(whole), size)

    # --------------------------------------------------------------------- expressions
    def evaluate(self, expr: Expr, live: _Live) -> Value:
        """Record the loads of ``expr`` and return its value."""
        outer = self.known
        if outer is None:
            self.known = {}
        try:
            self._record(expr, live)
            return self._read(expr)
        finally:
            self.known = outer

    def _read(self, expr: Expr) -> Value:
        """The value of ``expr``; None, too, where it takes too long to find out."""
        if expr.type.is_float:
            return None
        known = self.known
        if known is None:
            return _in_time(lambda: self.reader.read(expr, self.env), None)
        if id(expr) not in known:
            known[id(expr)] = _in_time(lambda: self.reader.read(expr, self.env), None)
        return known[id(expr)]

    def _record(self, expr: Expr, live: _Live) -> None:
        """Record the loads of ``expr`` in evaluation order, each where it is evaluated."""
        match expr:
            case Select(_, cond, then, orelse):
                yes, no = self._split(live, cond, self.evaluate(cond, live))
                self._record(then, yes)
                self._record(orelse, no)
            case Logical(op, lhs, rhs):
                yes, no = self._split(live, lhs, self.evaluate(lhs, live))
                self._record(rhs, yes if op == "and" else no)
            case _:
                for operand in operands(expr):
                    self._record(operand, live)
                if isinstance(expr, Load):
                    self._access(expr, "read", live)

    def _split(self, live: _Live, cond: Expr, value: Value) -> tuple[_Live, _Live]:
        """What of ``live`` goes on where ``cond``, which is ``value``, holds, and where not; of a
        condition that is known in part, what that part lets through."""
        if not isinstance(value, Truth):
            yes = no = _Live(live.instances, False)
            match cond:
                case Unary(_, "not", operand):
                    no, yes = self._split(yes, operand, self._read(operand))
                case Logical("and", lhs, rhs):
                    yes, _ = self._split(yes, lhs, self._read(lhs))
                    yes, _ = self._split(yes, rhs, self._read(rhs))
                case Logical("or", lhs, rhs):
                    _, no = self._split(no, lhs, self._read(lhs))
                    _, no = self._split(no, rhs, self._read(rhs))
            return yes, no
        before, true = live.instances, value.true
        yes = self._live(lambda: before.intersect(true), live.exact)
        no = self._live(lambda: before.subtract(true), live.exact)
        return yes, no

    def _live(self, instances: Callable[[], isl.Set], exact: bool) -> _Live:
        """What ``instances`` finds; any work-item, perhaps, where that takes too long or is too
        long to go on with."""
        found = _in_time(instances, None)
        if found is None or not is_short(found):
            return _Live(self.start, False)
        return _Live(found, exact)

    def _tick(self) -> int:
        self.clock += 1
        return self.clock

    def _access(
        self, node: Load | Store | Atomic, kind: Literal["read", "write"], live: _Live
    ) -> None:
        if node.array in self.left_out:
            return
        values = [self._read(index) for index in node.indices]
        known = tuple(v.value for v in values if isinstance(v, Affine))
        self.found.append(
            Access(
                array=node.array,
                kind=kind,
                instances=live.instances,
                happens=live.exact,
                exact=live.exact and not isinstance(node, Atomic),
                indices=known if len(known) == len(values) else None,
                moment=(*self.prefix, self._tick()),
                span=node.span,
                node=node,
            )
        )

    def _meeting(self, span: Span, live: _Live, sub_group: int | None = None) -> None:
        self.meetings.append(Meeting(live.instances, live.exact, span, sub_group))

    # ---------------------------------------------------------------------- statements
    def body(self, stmts: Iterable[Stmt], live: _Live) -> _Live:
        """Run ``stmts``; the result is what reaches their end."""
        for stmt in stmts:
            live = self._statement(stmt, live)
        return live

    def _statement(self, stmt: Stmt, live: _Live) -> _Live:
        match stmt:
            case Assign(name, value):
                self.env[name] = self.evaluate(value, live)
            case Store(_, indices, value):
                for expr in (*indices, value):
                    self._record(expr, live)
                self._access(stmt, "write", live)
            case Atomic(op):
                for expr in statement_expressions(stmt):
                    self._record(expr, live)
                if op != "store":
                    self._access(stmt, "read", live)
                if op != "load":
                    self._access(stmt, "write", live)
                if stmt.result is not None:
                    self.env[stmt.result] = None
            case GroupCall():
                for expr in statement_expressions(stmt):
                    self._record(expr, live)
                self.env[stmt.result] = None
                self._meeting(stmt.span, live, stmt.sub_group)
            case Barrier():
                self._meeting(stmt.span, live)
            case Record():
                for expr in statement_expressions(stmt):
                    self._record(expr, live)
            case If():
                return self._if(stmt, live)
            case For():
                self._for(stmt, live)
            case While():
                self._while(stmt, live)
            case Break() | Continue():
                return _Live(self.reader.nowhere(), live.exact)
            case Block(_, body):
                return self.body(body, live)
        return live

    def _if(self, stmt: If, live: _Live) -> _Live:
        cond = self.evaluate(stmt.cond, live)
        yes, no = self._split(live, stmt.cond, cond)
        before = dict(self.env)
        after_yes = self.body(stmt.then, yes)
        env_yes, self.env = self.env, dict(before)
        after_no = self.body(stmt.orelse, no)
        for name in env_yes.keys() | self.env.keys():
            # A variable that only one side assigns is read only where that side ran.
            a = env_yes[name] if name in env_yes else self.env[name]
            b = self.env.get(name, a)
            self.env[name] = a if a is b else self._joined(cond, a, b)
        if not leaves_iteration(stmt.then) and not leaves_iteration(stmt.orelse):
            return live
        return self._live(
            lambda: after_yes.instances.union(after_no.instances).coalesce(),
            after_yes.exact and after_no.exact,
        )

    def _joined(self, cond: Value, then: Value, orelse: Value) -> Value:
        """The value of a variable behind an ``if``."""
        if not isinstance(cond, Truth):
            return None
        where = cond.true
        return _in_time(lambda: self.reader.choose(where, then, orelse), None)

    def _for(self, stmt: For, live: _Live) -> None:
        start, stop, step = (self.evaluate(e, live) for e in (stmt.start, stmt.stop, stmt.step))
        position = self.next_loop
        self.next_loop += 1
        stride = None
        if isinstance(step, Affine):
            stride = self.reader.as_constant(step)
        if stmt.binds is not None:
            idle = self._idle(start, stop, stride, live.instances)
            self.binding_loops.append(BindingLoop(stmt.binds, idle, stmt.span))
        if isinstance(start, Affine) and isinstance(stop, Affine) and stride:
            var = self.reader.dimension(position, max(start.bound, stop.bound))
            assert var is not None
            inside = partial(self._iterations, var.value, start.value, stop.value, stride)
            each = self._live(lambda: live.instances.intersect(inside()), live.exact)
            self._loop(stmt.body, each, position, {stmt.var: var}, backwards=stride < 0)
        else:
            self._loop(stmt.body, _Live(live.instances, False), position, {stmt.var: None})

    def _idle(
        self, start: Value, stop: Value, stride: int | None, instances: isl.Set
    ) -> isl.Set | None:
        """Those of the ``instances`` for which a loop has no iteration."""
        if not (isinstance(start, Affine) and isinstance(stop, Affine) and stride):
            return None
        low, high = (start.value, stop.value) if stride > 0 else (stop.value, start.value)
        return _in_time(lambda: instances.intersect(low.ge_set(high)), None)

    def _iterations(
        self, var: isl.PwAff, start: isl.PwAff, stop: isl.PwAff, stride: int
    ) -> isl.Set:
        """The instances in which a loop's variable has one of its values."""
        offset, zero = var.sub(start), self._zero()
        inside = (
            offset.ge_set(zero).intersect(var.lt_set(stop))
            if stride > 0
            else offset.le_set(zero).intersect(var.gt_set(stop))
        )
        if abs(stride) > 1:
            inside = inside.intersect(offset.mod_val(isl_val(abs(stride))).eq_set(zero))
        return inside

    def _while(self, stmt: While, live: _Live) -> None:
        """The trip count is unknown: every access of the loop may happen, at any value of what
        the loop assigns."""
        body = (If(stmt.cond, stmt.body, (), stmt.span),)
        self._loop(body, _Live(live.instances, False), None, {})

    def _loop(
        self,
        body: tuple[Stmt, ...],
        live: _Live,
        position: int | None,
        variables: dict[str, Value],
        backwards: bool = False,
    ) -> None:
        assigned = {name for s in statements(body) if (name := assigned_variable(s)) is not None}
        if can_break(body):
            live = _Live(live.instances, False)
        prefix = self.prefix
        if position is not None:
            iteration = f"{'-' if backwards else ''}k{position - self.kernel.ndim}"
            self.prefix = (*prefix, self._tick(), iteration)
        self.env.update(dict.fromkeys(assigned))
        self.env.update(variables)
        self.body(body, live)
        self.prefix = prefix
        for name in variables:
            self.env.pop(name, None)
        self.env.update(dict.fromkeys(assigned))


def _in_time(read: Callable[[], T], unknown: T) -> T:
    """What ``read`` finds out; ``unknown`` where that takes too long."""
    try:
        return answered(read)
    except OuterTooHard:
        raise
    except TooManyOperations:
        return unknown
