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
    Const,
    Fence,
    GroupCall,
    GroupOp,
    Space,
)
from fusionq.ir.types import ScalarType

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
        value = None if stmt.value is None else self._expressions.value(stmt.value)
        type = array.dtype
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
        wide = groups.collective_type(type)
        value = self._expressions.value(stmt.value)
        wide_name, own_name = (self._expressions.type_name(t) for t in (wide, type))
        if wide != type:
            value = f"({wide_name})({value})"
        result = self._names.of(stmt.result)
        if stmt.source is not None:
            source = self._expressions.value(stmt.source)
            call = groups.broadcast(value, source, self._ndim)
        elif groups.is_collective(stmt.function, stmt.op):
            call = groups.collective(stmt.function, stmt.op, value)
        else:
            return self._by_turns(stmt, value, wide, f"{prefix}{result}")
        if type.is_bool:
            call = f"{call} != 0"
        elif wide != type:
            call = f"({own_name}){call}"
        return self._with_identity(stmt, f"{prefix}{result}", result, call)

    def _with_identity(self, stmt: GroupCall, target: str, result: str, call: str) -> list[str]:
        """The assignment.  An exclusive scan in a wider type starts from that type's identity,
        which the first work-item's own type cannot hold."""
        type = stmt.value.type
        narrow = groups.collective_type(type) != type
        if stmt.function != "exclusive_scan" or stmt.op not in ("min", "max") or not narrow:
            return [f"{target} = {call};"]
        first = self._expressions.value(Const(type, _identity(stmt.op, type)))
        return [f"{target} = {groups.LINEAR_LOCAL_ID} == 0 ? {first} : {call};"]

    def _by_turns(self, stmt: GroupCall, value: str, wide: ScalarType, target: str) -> list[str]:
        """Where there is no collective function: every work-item's value in turn, in the order
        of linear local ids."""
        assert stmt.op is not None
        type = stmt.value.type
        own, total, turn, mine, all_ = (
            self._names.fresh(f"{stmt.result}_{what}")
            for what in ("own", "total", "turn", "mine", "range")
        )
        wide_name = self._expressions.type_name(wide)
        start = _start(self._expressions, wide, stmt.op)
        operator = _OPERATORS[stmt.op]
        counted = {
            "reduce": "",
            "inclusive_scan": f"if ({turn} <= {mine}) ",
            "exclusive_scan": f"if ({turn} < {mine}) ",
        }[stmt.function]
        other = groups.broadcast(own, turn, self._ndim)
        shared = self._names.fresh(f"{stmt.result}_shared")
        cast = self._expressions.type_name(type)
        converted = f"{total} != 0" if type.is_bool else f"({cast}){total}"
        return [
            f"const {wide_name} {own} = {value};",
            f"{wide_name} {total} = {start};",
            f"const size_t {mine} = {groups.LINEAR_LOCAL_ID};",
            f"const size_t {all_} = {groups.LINEAR_LOCAL_RANGE};",
            f"for (size_t {turn} = 0; {turn} < {all_}; {turn}++) {{",
            f"    const {wide_name} {shared} = {other};",
            f"    {counted}{total} = {total} {operator} {shared};",
            "}",
            f"{target} = {converted};",
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
