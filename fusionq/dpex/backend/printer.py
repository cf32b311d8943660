"""The IR as Python text that numba types exactly as the IR does.

numba computes integers below 64 bits in 64, and a literal is an int64 or a float64 to it.  So
each constant stands in its type's constructor, and each result below 64 bits is cut back.
"""

from __future__ import annotations

from math import prod

from fusionq.base.errors import DeviceError
from fusionq.codegen.array_access import Memory
from fusionq.codegen.intervals import Intervals
from fusionq.codegen.names import Names
from fusionq.dpex.backend.helpers import PythonHelpers, stored_name
from fusionq.ir.functions import BIT_CAST, FLOAT_FUNCTIONS, INTEGER_FUNCTIONS
from fusionq.ir.nodes import (
    ArrayDecl,
    Assign,
    Atomic,
    Barrier,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Extent,
    For,
    GroupCall,
    Kernel,
    Load,
    Param,
    Persistent,
    Unary,
)
from fusionq.ir.python_text import (
    BIT_OR,
    COMPARE,
    INDENT,
    NOT,
    OPERATORS,
    PythonPrinter,
    constructor,
    literal,
    member,
    uses_groups,
)
from fusionq.ir.text import PRIMARY, UNARY, Text
from fusionq.ir.types import INT64, ScalarType

_SMALLEST = -(2**63)
"""numba takes this literal for a uint64."""


class NumbaPrinter(PythonPrinter):
    """Prints a kernel's statements; the text has the IR's values and, to numba, its types."""

    def __init__(
        self, kernel: Kernel, names: Names, memory: Memory, helpers: PythonHelpers
    ) -> None:
        super().__init__(uses_groups(kernel))
        self._names = names
        self._memory = memory
        self._helpers = helpers
        self._intervals = Intervals(kernel)
        self._spaces = {a.name: a.space for a in kernel.arrays}

    def declaration(self, array: ArrayDecl) -> list[str]:
        """The lines that make an array in local or private memory; a constant one is private and
        filled."""
        name, dtype = self.name(array.name), stored_name(array.dtype)
        size = max(prod(array.shape), 1)
        if array.space != "constant":
            return [f"{name} = {array.space}_array({size}, np.{dtype})"]
        elements = enumerate(array.elements.ravel())
        return [
            f"{name} = private_array({size}, np.{dtype})",
            *(f"{name}[{k}] = {self.stored(Const(array.dtype, e.item()))}" for k, e in elements),
        ]

    # -------------------------------------------------------- names, memory, statements
    def name(self, name: str) -> str:
        return self._names.of(name)

    def parameter(self, param: Param) -> Text:
        name = self._memory.scalar(param.name)
        return Text(f"{name} != 0", COMPARE) if param.type.is_bool else Text(name, PRIMARY)

    def extent(self, extent: Extent) -> Text:
        return self._memory.extent(extent.array, extent.dim)

    def _index(self, array: str, indices: tuple[Expr, ...]) -> str:
        """Unsigned, so that numba does not count from the end."""
        offset = self._memory.offset(array, [self.text(index) for index in indices])
        return f"np.uint64({offset.text})"

    def element(self, array: str, indices: tuple[Expr, ...]) -> str:
        return f"{self.name(array)}[{self._index(array, indices)}]"

    def load(self, load: Load) -> Text:
        element = super().load(load)
        return Text(f"{element.text} != 0", COMPARE) if load.type.is_bool else element

    def stored(self, value: Expr) -> str:
        """Bools lie in memory as bytes."""
        return f"np.uint8({self.value(value)})" if value.type.is_bool else self.value(value)

    def assignment(self, stmt: Assign) -> str:
        line = super().assignment(stmt)
        self._intervals.assigned(stmt)
        return line

    def range(self, loop: For) -> str:
        return f"{self.value(loop.start)}, {self.value(loop.stop)}, {self.value(loop.step)}"

    def loop(self, loop: For) -> list[str]:
        if isinstance(loop.step, Const) and loop.step.value != 0:
            head = [f"for {self.name(loop.var)} in range({self.range(loop)}):"]
        else:
            head = self._count(loop)
        self._intervals.entered(loop)
        return [*head, *self.body(loop.body, 1)]

    def _count(self, loop: For) -> list[str]:
        """The head of a loop over a count of iterations: any step, also 0."""
        var = self.name(loop.var)
        start, step, turn = (self._names.fresh(f"{var}_{n}") for n in ("start", "step", "turn"))
        return [
            f"{start} = {self.value(loop.start)}",
            f"{step} = {self.value(loop.step)}",
            f"for {turn} in range({self._helpers.range_length()}({start}, "
            f"{self.value(loop.stop)}, {step})):",
            f"{INDENT}{var} = {start} + {turn} * {step}",
        ]

    def barrier(self, barrier: Barrier) -> str:
        return "group_barrier(item.get_group(), MemoryScope.WORK_GROUP)"

    def reference(self, atomic: Atomic) -> str:
        space = self._spaces.get(atomic.array, "global")
        if space == "private":
            raise DeviceError("it has an atomic operation on private memory")
        if atomic.op == "compare_exchange":
            raise DeviceError("it has a compare_exchange, which numba-dpex knows with arrays only")
        index = self._index(atomic.array, atomic.indices)
        order, scope = member("MemoryOrder", atomic.order), member("MemoryScope", atomic.scope)
        return (
            f"AtomicRef({self.name(atomic.array)}, {index}, {order}, {scope}, "
            f"{member('AddressSpace', space)})"
        )

    def group_call(self, call: GroupCall) -> str:
        raise DeviceError(
            f"it calls a group function ({call.function}), which numba-dpex does not have"
        )

    def persistent(self, persistent: Persistent) -> list[str]:
        raise DeviceError("it is a persistent kernel, which numba-dpex cannot compile")

    # ------------------------------------------------------------------------ operations
    def constant(self, const: Const) -> Text:
        """int64, float64 and bool are Python's."""
        if const.type == INT64 and const.value == _SMALLEST:
            return Text(f"np.int64(np.uint64({-_SMALLEST}))", PRIMARY)
        text = literal(const)
        if const.type.name in ("bool", "int64", "float64"):
            return text
        return Text(f"{constructor(const.type)}({text.text})", PRIMARY)

    def unary(self, expr: Unary) -> Text:
        if expr.op == "pos":
            return self.text(expr.operand)
        if expr.op == "not" or expr.type.is_bool:
            return Text(f"not {self.text(expr.operand).at(NOT)}", NOT)
        if expr.op == "neg" and self._overflows(expr):
            return self._wrapped(expr)
        sign = "-" if expr.op == "neg" else "~"
        return _cut(Text(f"{sign}{self.text(expr.operand).at(PRIMARY)}", UNARY), expr.type)

    def binary(self, expr: Binary) -> Text:
        type, op = expr.type, expr.op
        if type.is_bool and op in ("add", "mul"):
            return super().binary(Binary(type, "or" if op == "add" else "and", expr.lhs, expr.rhs))
        if op == "pow":
            return self._power(expr)
        if op in ("floordiv", "mod") and not _divides_plainly(expr):
            return self._helper(op, type, expr.lhs, expr.rhs)
        if op in ("shl", "shr") and not _shifts_plainly(expr):
            return self._helper(op, type, expr.lhs, expr.rhs)
        if self._overflows(expr):
            return self._wrapped(expr)
        return _cut(super().binary(expr), type)

    # numba takes it that int64 arithmetic does not overflow; that of uint64 wraps.
    def _overflows(self, expr: Binary | Unary) -> bool:
        if expr.type != INT64 or expr.op not in ("add", "sub", "mul", "neg"):
            return False
        return self._intervals.wraps(expr)

    def _wrapped(self, expr: Binary | Unary) -> Text:
        """int64 arithmetic modulo two to the 64."""
        return Text(f"np.int64({self._unsigned(expr).text})", PRIMARY)

    def _unsigned(self, expr: Expr) -> Text:
        """A uint64 that is congruent to an int64."""
        match expr:
            case Unary(op="neg") if self._overflows(expr):
                return Text(f"-{self._unsigned(expr.operand).at(PRIMARY)}", UNARY)
            case Binary() if self._overflows(expr):
                symbol, own = OPERATORS[expr.op]
                lhs, rhs = self._unsigned(expr.lhs).at(own), self._unsigned(expr.rhs).at(own + 1)
                return Text(f"{lhs} {symbol} {rhs}", own)
            case Const():
                return Text(f"np.uint64({int(expr.value) % 2**64})", PRIMARY)
        return Text(f"np.uint64({self.value(expr)})", PRIMARY)

    def _power(self, expr: Binary) -> Text:
        if not expr.type.is_float:
            return self._helper("pow", expr.type, expr.lhs, expr.rhs)
        if isinstance(expr.rhs, Const) and expr.rhs.value == 2:
            return self._helper("square", expr.type, expr.lhs)
        return self._called(self._helpers.function("pow"), (expr.lhs, expr.rhs))

    # --------------------------------------------------------------- casts and functions
    def cast(self, cast: Cast) -> Text:
        target, source = cast.type, cast.operand.type
        if target == source:
            return self.text(cast.operand)
        if target.is_bool:
            operand = self.text(cast.operand).at(BIT_OR)
            return Text(f"{operand} != {constructor(source)}(0)", COMPARE)
        if source.is_float and target.is_integer:
            return self._called(self._helpers.saturating_cast(target, source), (cast.operand,))
        return self._called(constructor(target), (cast.operand,))

    def call(self, call: Call) -> Text:
        if not call.args:
            raise DeviceError(f"it asks for {call.function!r}, which numba-dpex cannot")
        name, type = call.function, call.args[0].type
        if name in ("ldexp", BIT_CAST) or name in INTEGER_FUNCTIONS:
            raise DeviceError(f"it calls {name!r}, which numba-dpex does not have")
        if name == "isnan":
            value = self.text(call.args[0]).at(BIT_OR)
            return Text(f"{value} != {value}", COMPARE)
        if name in FLOAT_FUNCTIONS or (name == "abs" and type.is_float):
            return self._called(self._helpers.function(name), call.args)
        if name == "abs" and type.kind != "i":
            return self.text(call.args[0])
        return self._helper(name, type, *call.args)

    def _helper(self, operation: str, type: ScalarType, *args: Expr) -> Text:
        return self._called(self._helpers.operation(operation, type), args)

    def _called(self, function: str, args: tuple[Expr, ...]) -> Text:
        return Text(f"{function}({', '.join(map(self.value, args))})", PRIMARY)


def _divides_plainly(expr: Binary) -> bool:
    """numba's integer division is the IR's, but for overflow."""
    constant = isinstance(expr.rhs, Const) and expr.rhs.value not in (0, -1)
    return expr.type.is_integer and constant


def _shifts_plainly(expr: Binary) -> bool:
    return isinstance(expr.rhs, Const) and 0 <= expr.rhs.value < expr.type.bits


def _cut(text: Text, type: ScalarType) -> Text:
    """A result that numba computed in 64 bits, in its own type."""
    if type.is_integer and type.bits < 64:
        return Text(f"{constructor(type)}({text.text})", PRIMARY)
    return text
