"""Barriers, fences, atomic operations and group functions as C text."""

from __future__ import annotations

from fusionq.codegen import opencl_groups as groups
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.memory import Memory
from fusionq.codegen.names import Names
from fusionq.ir.nodes import (
    ArrayDecl,
    Atomic,
    Barrier,
    Cast,
    Const,
    Expr,
    Fence,
    GroupCall,
    GroupOp,
    Load,
    Param,
    Space,
    Var,
)
from fusionq.ir.types import FLOAT32, FLOAT64, INT32, UINT32, UINT64, ScalarType

_OPERATORS: dict[GroupOp, str] = {"mul": "*", "and": "&", "or": "|", "xor": "^"}


class GroupStatementPrinter:
    """Prints the statements in which work-items take part together."""

    def __init__(
        self,
        expressions: ExpressionPrinter,
        names: Names,
        helpers: Helpers,
        memory: Memory,
        ndim: int,
    ) -> None:
        self._expressions = expressions
        self._names = names
        self._helpers = helpers
        self._memory = memory
        self._ndim = ndim

    def print(self, stmt: Barrier | Fence | Atomic | GroupCall, prefix: str) -> list[str]:
        """The lines; ``prefix`` declares the result's variable, if that is its place."""
        match stmt:
            case Barrier():
                return [f"{groups.barrier(stmt.global_memory, stmt.local_memory)};"]
            case Fence():
                return [f"{groups.fence(stmt.order, stmt.scope)};"]
            case Atomic():
                target = "" if stmt.result is None else f"{prefix}{self._names.of(stmt.result)} = "
                return [f"{target}{self._atomic(stmt)};"]
            case GroupCall():
                return self._group_call(stmt, prefix)

    # ------------------------------------------------------------------------- atomics
    def _atomic(self, stmt: Atomic) -> str:
        array = self._memory.array(stmt.array)
        space: Space = array.space if isinstance(array, ArrayDecl) else "global"
        pointer = f"&{self._expressions.subscript(stmt.array, stmt.indices)}"
        type = array.dtype
        value = None if stmt.value is None else self._typed(stmt.value, type)
        if not groups.needs_retry_loop(stmt.op, type):
            return groups.atomic(stmt.op, type, space, pointer, value, stmt.order, stmt.scope)
        name, text = groups.retry_loop(
            stmt.op, type, self._expressions.type_name(type), space, stmt.order, stmt.scope
        )
        self._helpers.add(name, text)
        return f"{name}({pointer}, {value})"

    # ----------------------------------------------------------------- group functions
    def _group_call(self, stmt: GroupCall, prefix: str) -> list[str]:
        type = stmt.value.type
        target = f"{prefix}{self._names.of(stmt.result)}"
        if stmt.source is not None:
            wide = groups.broadcast_type(type)
            source = self._expressions.value(stmt.source)
            call = groups.broadcast(self._typed(stmt.value, wide), source, self._ndim)
        elif groups.is_collective(stmt.function, stmt.op):
            wide = groups.collective_type(type)
            call = groups.collective(stmt.function, stmt.op, self._typed(stmt.value, wide))
            if stmt.function == "exclusive_scan" and stmt.op in ("min", "max") and wide != type:
                return self._narrow_scan(stmt, call, wide, target)
        else:
            return self._by_turns(stmt, target)
        return [f"{target} = {self._narrowed(call, wide, type)};"]

    def _typed(self, expr: Expr, type: ScalarType) -> str:
        """``expr`` as a ``type`` to C's overloading too, for which a literal is an int."""
        text = self._expressions.value(expr)
        known = isinstance(expr, (Var, Param, Load, Cast)) or type in (INT32, FLOAT32, FLOAT64)
        if expr.type == type and known:
            return text
        return f"({self._expressions.type_name(type)})({text})"

    def _narrowed(self, text: str, wide: ScalarType, type: ScalarType) -> str:
        """``text``, a ``wide``, as a ``type`` again."""
        if wide == type:
            return text
        if type.is_bool:
            return f"{text} != 0"
        return f"({self._expressions.type_name(type)}){text}"

    def _narrow_scan(self, stmt: GroupCall, call: str, wide: ScalarType, target: str) -> list[str]:
        """An exclusive scan in a wider type starts from that type's identity, which the first
        work-item's own type cannot hold."""
        type = stmt.value.type
        scanned = self._names.fresh(f"{stmt.result}_scanned")
        first = self._expressions.value(Const(type, _identity(stmt.op, type)))
        other = self._narrowed(scanned, wide, type)
        return [
            f"const {self._expressions.type_name(wide)} {scanned} = {call};",
            f"{target} = {groups.LINEAR_LOCAL_ID} == 0 ? {first} : {other};",
        ]

    def _by_turns(self, stmt: GroupCall, target: str) -> list[str]:
        """Where there is no collective function: every work-item's value in turn, in the order
        of linear local ids."""
        assert stmt.op is not None
        type = stmt.value.type
        passed = groups.broadcast_type(type)
        combined = type if type.is_float else passed
        if stmt.op == "mul" and combined.kind == "i":  # unsigned products wrap
            combined = UINT32 if combined == INT32 else UINT64
        own, total, turn, mine, count, shared = (
            self._names.fresh(f"{stmt.result}_{what}")
            for what in ("own", "total", "turn", "mine", "range", "shared")
        )
        passed_name, combined_name = map(self._expressions.type_name, (passed, combined))
        other = self._narrowed(groups.broadcast(own, turn, self._ndim), passed, combined)
        counted = {
            "reduce": "",
            "inclusive_scan": f"if ({turn} <= {mine}) ",
            "exclusive_scan": f"if ({turn} < {mine}) ",
        }[stmt.function]
        return [
            f"const {passed_name} {own} = {self._typed(stmt.value, passed)};",
            f"{combined_name} {total} = {_start(self._expressions, combined, stmt.op)};",
            f"const size_t {mine} = {groups.LINEAR_LOCAL_ID};",
            f"const size_t {count} = {groups.LINEAR_LOCAL_RANGE};",
            f"for (size_t {turn} = 0; {turn} < {count}; {turn}++) {{",
            f"    const {combined_name} {shared} = {other};",
            f"    {counted}{total} = {total} {_OPERATORS[stmt.op]} {shared};",
            "}",
            f"{target} = {self._narrowed(total, combined, type)};",
        ]


def _identity(op: GroupOp | None, type: ScalarType) -> bool | int | float:
    """The value that ``min`` or ``max`` of ``type`` never prefers."""
    if type.is_bool:
        return op == "min"
    low = 0 if type.kind == "u" else -(1 << type.bits - 1)
    return low + (1 << type.bits) - 1 if op == "min" else low


def _start(expressions: ExpressionPrinter, wide: ScalarType, op: GroupOp) -> str:
    """What a turn-by-turn combination starts from."""
    value: int | float = {"mul": 1, "and": -1, "or": 0, "xor": 0}[op]
    if op == "and" and wide.kind == "u":
        value = (1 << wide.bits) - 1
    return expressions.value(Const(wide, float(value) if wide.is_float else value))
