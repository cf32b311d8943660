"""Barriers, fences, atomic operations and group functions as C text.

Group functions that the dialect has no call for are made of broadcasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.base.frozen import dataclass
from fusionq.codegen.array_access import Memory
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.expressions import ExpressionPrinter
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.names import Names
from fusionq.codegen.ordered_groups import OrderedValues
from fusionq.ir.nodes import (
    ArrayDecl,
    Atomic,
    Barrier,
    Cast,
    Const,
    Expr,
    Fence,
    GroupCall,
    GroupFunction,
    GroupOp,
    Kernel,
    Load,
    Param,
    Space,
    Var,
)
from fusionq.ir.types import FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, ScalarType
from fusionq.language.combine import identity

_OPERATORS: dict[GroupOp, str] = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_PLACES: dict[GroupFunction, tuple[str, str]] = {
    "broadcast": ("{source} < {size}", "(int){source}"),
    "select": ("{source} < {size}", "(int){source}"),
    "shift_left": ("{source} < {size} - {lane}", "{lane} + (int){source}"),
    "shift_right": ("{source} <= {lane}", "{lane} - (int){source}"),
    "permute_xor": ("{source} < {size}", "{lane} ^ (int){source}"),
}
"""Whether there is the place in its sub-group from which a work-item reads, and which that is."""
_AS_REDUCTION: dict[GroupFunction, GroupOp] = {"any": "or", "all": "and"}


@dataclass(frozen=True)
class GroupLanes:
    """The lanes that do the ``count`` work-items of a work-group, and how they meet."""

    lanes: int
    count: int
    barrier: str


class GroupStatementPrinter:
    """Prints the statements in which work-items take part together."""

    def __init__(
        self,
        dialect: Dialect,
        expressions: ExpressionPrinter,
        names: Names,
        helpers: Helpers,
        memory: Memory,
        kernel: Kernel,
        lanes: GroupLanes | None = None,
    ) -> None:
        """``lanes``: of a work-group function."""
        self._lanes = lanes
        self._sub_group = kernel.sub_group_size
        self._dialect = dialect
        self._groups = dialect.groups
        self._expressions = expressions
        self._names = names
        self._helpers = helpers
        self._memory = memory
        self._ndim = kernel.ndim

    def print(self, stmt: Barrier | Fence | Atomic | GroupCall, prefix: str) -> list[str]:
        """The lines; ``prefix`` declares the result's variable, if that is its place."""
        match stmt:
            case Barrier() if self._lanes is not None:
                return [f"{self._lanes.barrier};"]
            case Barrier():
                return [f"{self._groups.barrier(stmt.global_memory, stmt.local_memory)};"]
            case Fence():
                return [f"{self._groups.fence(stmt.order, stmt.scope)};"]
            case Atomic():
                target = "" if stmt.result is None else f"{prefix}{self._names.of(stmt.result)} = "
                return [f"{target}{self._atomic(stmt)};"]
            case GroupCall(sub_group=int() as size):
                return self._sub_group_call(stmt, size, prefix)
            case GroupCall(values=str() as values):
                return self._ordered_call(stmt, values, prefix)
            case GroupCall():
                return self._group_call(stmt, prefix)

    def read_ahead(self, element: str) -> str | None:
        """The statement that gets ``element`` into the caches, where the language has one."""
        return self._groups.read_ahead(element, self._helpers.add)

    # ------------------------------------------------------------------------- atomics
    def _atomic(self, stmt: Atomic) -> str:
        array = self._memory.array(stmt.array)
        space: Space = array.space if isinstance(array, ArrayDecl) else "global"
        element = self._expressions.subscript(stmt.array, stmt.indices)
        type = array.dtype
        value = None if stmt.value is None else self._typed(stmt.value, type)
        expected = None if stmt.expected is None else self._typed(stmt.expected, type)
        self._expressions.types.add(type)
        return self._groups.atomic(
            stmt.op, type, space, element, value, stmt.order, stmt.scope, self._helpers.add,
            expected,
        )  # fmt: skip

    # ----------------------------------------------------------------- group functions
    def _group_call(self, stmt: GroupCall, prefix: str) -> list[str]:
        type = stmt.value.type
        target = f"{prefix}{self._names.of(stmt.result)}"
        if stmt.source is not None:
            wide = self._groups.broadcast_type(type)
            source = self._expressions.value(stmt.source)
            call = self._broadcast(self._typed(stmt.value, wide), wide, source)
        elif self._groups.has_collective(stmt.function, stmt.op):
            wide = self._groups.collective_type(type)
            value = self._typed(stmt.value, wide)
            call = self._groups.collective(stmt.function, stmt.op, value, wide, self._helpers.add)
            if stmt.function == "exclusive_scan" and stmt.op in ("min", "max") and wide != type:
                return self._narrow_scan(stmt, call, wide, target)
        else:
            return self._made_of_broadcasts(stmt, target)
        return [f"{target} = {self._narrowed(call, wide, type)};"]

    def most_together(self, type: ScalarType) -> int:
        """For how many values of ``type`` ``reductions`` are profitable; 1: none."""
        return 1 if self._lanes is not None else self._groups.most_together(type)

    def reductions(self, calls: Sequence[GroupCall]) -> list[str]:
        """Reductions by one operation, of values of one type, into variables that are declared."""
        op, type = calls[0].op, calls[0].value.type
        assert op is not None
        results = [self._names.of(call.result) for call in calls]
        lines = [
            f"{result} = {self._typed(call.value, type)};"
            for result, call in zip(results, calls, strict=True)
        ]
        return [*lines, f"{self._groups.joint_reduction(op, results, type, self._helpers.add)};"]

    def _ordered_call(self, stmt: GroupCall, values: str, prefix: str) -> list[str]:
        """A function of a work-group whose values lie in local memory, by sub-groups."""
        type, array = stmt.value.type, self._memory.array(values)
        assert isinstance(array, ArrayDecl)
        op = stmt.op or _AS_REDUCTION[stmt.function]
        combine = self._helpers.combination(op, type)
        lane, lanes, count = self._names.fresh("lane"), self._sub_group, prod(array.shape)
        if self._lanes is not None:
            lanes, count = self._lanes.lanes, self._lanes.count
        assert lanes is not None
        name, own = self._names.of(values), self._expressions.value(stmt.value)
        ordered = OrderedValues(
            name,
            count,
            self._expressions.type_name(type),
            lane,
            lanes,
            lambda a, b: f"{combine}({a}, {b})",
            lambda variable, place: self._shuffled(variable, type, place),
            lambda part: self._names.fresh(f"{stmt.result}_{part}"),
        )
        number = "fq_lane" if self._lanes is not None else self._groups.sub_group_local_id
        lines = [f"const int {lane} = (int){number};"]
        if stmt.function in ("reduce", "any", "all"):
            return [*lines, *ordered.reduction(f"{prefix}{self._names.of(stmt.result)}")]
        scan = ordered.scan()
        start = self._expressions.value(_identity(op, type, type))
        exclusive = stmt.function == "exclusive_scan"
        if self._lanes is not None:
            shift = ordered.shifted(f"({ordered.type})({start})") if exclusive else []
            return [*lines, *scan, *shift]
        first = self._dialect.items.device_function("first_sub_group")
        barrier = self._groups.barrier(False, True)
        target = f"{prefix}{self._names.of(stmt.result)}"
        place = self._groups.linear_local_id
        result = own
        if exclusive:
            result = f"{place} == 0 ? ({ordered.type})({start}) : {name}[{place} - 1]"
        inside = [*lines, f"if ({first}) {{", *(f"    {line}" for line in scan), "}"]
        return [*inside, f"{barrier};", f"{target} = {result};"]

    def _sub_group_call(self, stmt: GroupCall, size: int, prefix: str) -> list[str]:
        """A function of a sub-group, made of shuffles in the order of ``language.combine``."""
        type = stmt.value.type
        target = f"{prefix}{self._names.of(stmt.result)}"
        name = self._expressions.type_name(type)
        total, lane, step, other = (
            self._names.fresh(f"{stmt.result}_{part}")
            for part in ("total", "lane", "step", "other")
        )
        linear = self._groups.linear_local_id if self._lanes is None else "fq_lane"
        lines = [
            f"const int {lane} = (int)({linear} % {size});",
            f"{name} {total} = {self._typed(stmt.value, type)};",
        ]
        if stmt.source is not None:
            source = self._expressions.value(stmt.source)
            long = self._expressions.type_name(INT64)
            inside, place = _PLACES[stmt.function]
            words = {"lane": lane, "source": other, "size": size}
            condition = f"{other} >= 0 && {inside.format(**words)}"
            read = f"{condition} ? {place.format(**words)} : {lane}"
            return [
                *lines,
                f"const {long} {other} = {source};",
                f"{target} = {self._shuffled(total, type, read)};",
            ]
        op = stmt.op or _AS_REDUCTION[stmt.function]
        combine = self._helpers.combination(op, type)
        if stmt.function in ("reduce", "any", "all"):
            value = self._shuffled(total, type, f"({lane} + {step}) % {size}")
            return [
                *lines,
                f"for (int {step} = {size // 2}; {step} > 0; {step} /= 2) {{",
                f"    {total} = {combine}({total}, {value});",
                "}",
                f"{target} = {self._shuffled(total, type, '0')};",
            ]
        before = self._shuffled(total, type, f"({lane} - {step}) & {size - 1}")
        lines += [
            f"for (int {step} = 1; {step} < {size}; {step} *= 2) {{",
            f"    const {name} {other} = {before};",
            f"    if ({lane} >= {step}) {total} = {combine}({other}, {total});",
            "}",
        ]
        if stmt.function == "inclusive_scan":
            return [*lines, f"{target} = {total};"]
        start = self._expressions.value(_identity(op, type, type))
        last = self._shuffled(total, type, f"({lane} - 1) & {size - 1}")
        return [
            *lines,
            f"const {name} {other} = {last};",
            f"{target} = {lane} == 0 ? ({name})({start}) : {other};",
        ]

    def _shuffled(self, variable: str, type: ScalarType, place: str) -> str:
        """The variable's value, of ``type``, at another place of the sub-group."""
        wide = self._groups.shuffle_type(type)
        value = variable
        if wide != type:
            value = f"({self._expressions.type_name(wide)}){variable}"
        return self._narrowed(self._groups.shuffle(value, wide, place), wide, type)

    def _broadcast(self, value: str, type: ScalarType, source: str) -> str:
        return self._groups.broadcast(value, type, source, self._ndim, self._helpers.add)

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
        assert stmt.op is not None
        first = self._expressions.value(_identity(stmt.op, type, type))
        other = self._narrowed(scanned, wide, type)
        return [
            f"const {self._expressions.type_name(wide)} {scanned} = {call};",
            f"{target} = {self._groups.linear_local_id} == 0 ? {first} : {other};",
        ]

    def _made_of_broadcasts(self, stmt: GroupCall, target: str) -> list[str]:
        """Every work-item's value in turn, in the order of linear local ids."""
        op = stmt.op or _AS_REDUCTION[stmt.function]
        type = stmt.value.type
        passed = self._groups.broadcast_type(type)
        combined = type if type.is_float else passed
        if op in ("add", "mul") and combined.kind == "i":  # unsigned sums and products wrap
            combined = UINT32 if combined == INT32 else UINT64
        own, total, turn, mine, count, shared = (
            self._names.fresh(f"{stmt.result}_{what}")
            for what in ("own", "total", "turn", "mine", "range", "shared")
        )
        passed_name, combined_name = map(self._expressions.type_name, (passed, combined))
        start = self._expressions.value(_identity(op, type, combined))
        other = self._narrowed(self._broadcast(own, passed, turn), passed, combined)
        condition = {
            "inclusive_scan": f"if ({turn} <= {mine}) ",
            "exclusive_scan": f"if ({turn} < {mine}) ",
        }.get(stmt.function, "")
        combination = _combination(op, total, shared)
        if type.is_float and op in ("add", "min", "max"):
            # Zero and infinity are not neutral beside -0.0 and NaN.
            combination = f"{turn} == 0 ? {shared} : {combination}"
        size = self._dialect.scalars.size_type
        return [
            f"const {passed_name} {own} = {self._typed(stmt.value, passed)};",
            f"{combined_name} {total} = {start};",
            f"const {size} {mine} = {self._groups.linear_local_id};",
            f"const {size} {count} = {self._groups.linear_local_range};",
            f"for ({size} {turn} = 0; {turn} < {count}; {turn}++) {{",
            f"    const {combined_name} {shared} = {other};",
            f"    {condition}{total} = {combination};",
            "}",
            f"{target} = {self._narrowed(total, combined, type)};",
        ]


def _identity(op: GroupOp, type: ScalarType, wide: ScalarType) -> Const:
    """What a reduction of values of ``type`` starts from, as a ``wide``."""
    limited = type if op in ("min", "max") else wide
    return Const(wide, wide.dtype.type(identity(op, limited.dtype)).item())


def _combination(op: GroupOp, total: str, value: str) -> str:
    if op in ("min", "max"):
        return f"{value} {'<' if op == 'min' else '>'} {total} ? {value} : {total}"
    return f"{total} {_OPERATORS[op]} {value}"
