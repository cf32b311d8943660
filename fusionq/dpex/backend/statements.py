"""Statements as Python text, one a line."""

from __future__ import annotations

from collections.abc import Iterable

from fusionq.base.errors import DeviceError
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.names import Names
from fusionq.dpex.backend.expressions import ExpressionPrinter
from fusionq.dpex.backend.helpers import Helpers, stored_name
from fusionq.ir.nodes import (
    ArrayDecl,
    Assign,
    Atomic,
    Barrier,
    Block,
    Break,
    Const,
    Continue,
    Fence,
    For,
    GroupCall,
    If,
    Kernel,
    Persistent,
    Record,
    Stmt,
    Store,
    While,
)

INDENT = "    "
_ATOMICS = {"load": "load", "store": "store", "exchange": "exchange"}
"""Methods of AtomicRef that are not named ``fetch_…``."""


class StatementPrinter:
    """Prints statement lists."""

    def __init__(
        self,
        kernel: Kernel,
        expressions: ExpressionPrinter,
        names: Names,
        helpers: Helpers,
        intervals: Intervals,
    ) -> None:
        self._intervals = intervals
        self._expressions = expressions
        self._names = names
        self._helpers = helpers
        self._local = {a.name for a in kernel.arrays if a.space == "local"}
        self._private = {a.name for a in kernel.arrays if a.space == "private"}

    def declaration(self, array: ArrayDecl) -> str:
        """The line that makes an array in local or private memory."""
        length = 1
        for extent in array.shape:
            length *= extent
        name, dtype = self._names.of(array.name), stored_name(array.dtype)
        return f"{name} = {array.space}_array({max(length, 1)}, np.{dtype})"

    def body(self, body: Iterable[Stmt], depth: int) -> list[str]:
        """The lines of a nested statement list."""
        lines = [line for stmt in body for line in self._stmt(stmt)]
        if all(line.lstrip().startswith("#") for line in lines):
            lines.append("pass")
        return [INDENT * depth + line for line in lines]

    def _stmt(self, stmt: Stmt) -> list[str]:
        value = self._expressions.value
        match stmt:
            case Assign():
                line = f"{self._names.of(stmt.name)} = {value(stmt.value)}"
                self._intervals.assigned(stmt)
                return [line]
            case Store():
                target = self._expressions.element(stmt.array, stmt.indices)
                return [f"{target} = {self._expressions.stored(stmt.value)}"]
            case If():
                lines = [f"if {value(stmt.cond)}:", *self.body(stmt.then, 1)]
                return [*lines, "else:", *self.body(stmt.orelse, 1)] if stmt.orelse else lines
            case For():
                return self._for(stmt)
            case While():
                return [f"while {value(stmt.cond)}:", *self.body(stmt.body, 1)]
            case Break():
                return ["break"]
            case Continue():
                return ["continue"]
            case Block():
                heading = [f"# {line}".rstrip() for line in stmt.label.splitlines()]
                return heading + [line for inner in stmt.body for line in self._stmt(inner)]
            case Barrier():
                return ["group_barrier(item.get_group(), MemoryScope.WORK_GROUP)"]
            case Fence():
                order, scope = stmt.order.upper(), stmt.scope.upper()
                return [f"atomic_fence(MemoryOrder.{order}, MemoryScope.{scope})"]
            case Atomic():
                return [self._atomic(stmt)]
            case Record():
                return []
            case GroupCall():
                raise DeviceError(
                    f"it calls a group function ({stmt.function}), which numba-dpex does not have"
                )
            case Persistent():
                raise DeviceError("it is a persistent kernel, which numba-dpex cannot compile")
            case Record():
                return []

    def _for(self, loop: For) -> list[str]:
        var, value = self._names.of(loop.var), self._expressions.value
        if isinstance(loop.step, Const) and loop.step.value != 0:
            bounds = f"{value(loop.start)}, {value(loop.stop)}, {loop.step.value}"
            self._intervals.entered(loop)
            return [f"for {var} in range({bounds}):", *self.body(loop.body, 1)]
        start, step, turn = (self._names.fresh(f"{var}_{n}") for n in ("start", "step", "turn"))
        before = [f"{start} = {value(loop.start)}", f"{step} = {value(loop.step)}"]
        length = f"{self._helpers.range_length()}({start}, {value(loop.stop)}, {step})"
        self._intervals.entered(loop)
        return [
            *before,
            f"for {turn} in range({length}):",
            f"{INDENT}{var} = {start} + {turn} * {step}",
            *self.body(loop.body, 1),
        ]

    def _atomic(self, stmt: Atomic) -> str:
        if stmt.array in self._private:
            raise DeviceError("it has an atomic operation on private memory")
        space = "LOCAL" if stmt.array in self._local else "GLOBAL"
        array, _, index = self._expressions.element(stmt.array, stmt.indices).partition("[")
        reference = (
            f"AtomicRef({array}, {index.removesuffix(']')}, MemoryOrder.{stmt.order.upper()}, "
            f"MemoryScope.{stmt.scope.upper()}, AddressSpace.{space})"
        )
        method = _ATOMICS.get(stmt.op, f"fetch_{stmt.op}")
        argument = "" if stmt.value is None else self._expressions.value(stmt.value)
        call = f"{reference}.{method}({argument})"
        return call if stmt.result is None else f"{self._names.of(stmt.result)} = {call}"
