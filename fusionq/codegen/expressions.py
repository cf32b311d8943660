"""Expressions as C text, with no more parentheses than C's precedences need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import frexp

from fusionq.codegen.array_access import Memory
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.eager_conditions import is_eager
from fusionq.codegen.helpers import EXTREMA, Helpers, ring_type
from fusionq.codegen.index_text import IndexText
from fusionq.codegen.intervals import DOUBLE_BITS, FLOAT_BITS, WITHIN_DOUBLE, Intervals
from fusionq.codegen.names import Names
from fusionq.codegen.near_remainders import is_near
from fusionq.codegen.precedence import (
    AND,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    CONDITIONAL,
    EQUALITY,
    OR,
    ORDER,
    PRIMARY,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
)
from fusionq.codegen.vector_steps import VectorStep
from fusionq.ir.functions import BIT_CAST, DEVICE_FUNCTIONS, FLOAT_FUNCTIONS, PREDICATES
from fusionq.ir.interval_arithmetic import of_type, within
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Load,
    Logical,
    Param,
    Select,
    Unary,
    Var,
)
from fusionq.ir.range_guard import is_same_for_all
from fusionq.ir.sums import may_be_sum
from fusionq.ir.text import Text
from fusionq.ir.types import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    ScalarType,
)
from fusionq.ir.uniformity import is_uniform

_POWERS_OF_2 = frozenset(1 << n for n in range(64))
_OPERATORS = {
    "add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "truediv": ("/", PRODUCT),
    "floordiv": ("/", PRODUCT), "mod": ("%", PRODUCT), "shl": ("<<", SHIFT), "shr": (">>", SHIFT),
    "and": ("&", BIT_AND), "or": ("|", BIT_OR), "xor": ("^", BIT_XOR),
    "lt": ("<", ORDER), "le": ("<=", ORDER), "gt": (">", ORDER), "ge": (">=", ORDER),
    "eq": ("==", EQUALITY), "ne": ("!=", EQUALITY),
}  # fmt: skip
_LOGICAL_OPERATORS = {"and": ("&&", AND), "or": ("||", OR)}
_UNFAMILIAR = frozenset({SHIFT, BIT_AND, BIT_XOR, BIT_OR})
"""Precedences that few know by heart: their operands are parenthesised."""

_COMPARISONS = frozenset({ORDER, EQUALITY})
"""A comparison of comparisons is parenthesised: compilers refuse ``a < b < c``."""

_RING_OPERATIONS = frozenset({"add", "sub", "mul"})
_SMALL_EXPONENT = 100
"""Of a power of two whose reciprocal is a normal number, too."""


class ExpressionPrinter:
    """Prints expressions.

    The text has the expression's value, and its type or, for integers below 32 bits and
    bool, a type that C promotes to int.  Signed arithmetic that may wrap is done in the
    unsigned type of the same width; ``Intervals`` tells where it cannot.
    """

    def __init__(
        self,
        dialect: Dialect,
        names: Names,
        memory: Memory,
        helpers: Helpers,
        intervals: Intervals,
        given: frozenset[str] | None = None,
        beside_barriers: bool = False,
        uniform: frozenset[str] = frozenset(),
        sums: frozenset[str] = frozenset(),
        unassigned: frozenset[str] = frozenset(),
    ) -> None:
        """``given``: where 32 bits hold the number of any element, the variables whose values come
        from memory.  ``beside_barriers``: in a kernel over a range that has barriers.
        ``uniform``: see ``ir.uniformity``.  ``sums``: see ``ir.sums.places_of_sums``.
        ``unassigned``: see ``scoping.read_unassigned``."""
        self._unassigned = unassigned
        self._uniform = uniform
        self._sums = sums
        self.hides = False
        """Whether values were printed that need ``Scalars.unknown_zero``."""
        self._beside_barriers = beside_barriers
        self._dialect = dialect
        self._names = names
        self._memory = memory
        self._helpers = helpers
        self._intervals = intervals
        self.types: set[ScalarType] = set()
        """All types printed so far."""
        self.device_functions: set[str] = set()
        """The functions of the device that were printed so far."""
        self._narrow: IndexText | None = None
        if given is not None:
            self._narrow = IndexText(dialect.scalars, intervals, given, self._text)

    def value(self, expr: Expr) -> str:
        """A whole right-hand side, condition or argument."""
        return self._untyped(expr).text

    def compared(self, expr: Expr) -> str:
        """The right operand of ``<`` or ``>``."""
        return self._untyped(expr).at(ORDER + 1)

    def to_store(self, expr: Expr) -> str:
        """A value as an element of memory."""
        text = self.value(expr)
        bits = self._dialect.scalars.half_bits
        if expr.type == FLOAT16 and bits is not None:
            return f"{bits[1]}({text})"
        if expr.type != BFLOAT16:
            return text
        return f"{self._dialect.scalars.bits_of_float}({text}) >> 16"

    def _stored(self, text: str, type: ScalarType) -> Text:
        """The value of an element or argument of a type."""
        if type.is_bool:
            return Text(f"{text} != 0", EQUALITY)
        scalars = self._dialect.scalars
        if type == FLOAT16 and scalars.half_bits is not None:
            return Text(f"{scalars.half_bits[0]}({text})", PRIMARY)
        if type != BFLOAT16:
            return Text(text, PRIMARY)
        word = self.type_name(UINT32)
        return Text(f"{scalars.float_of_bits}(({word}){text} << 16)", PRIMARY)

    def subscript(self, array: str, indices: tuple[Expr, ...]) -> str:
        """``array[…]`` as an lvalue or, but for bool and bfloat16, a value."""
        if not self._memory.is_linear(array):
            offset = self._memory.offset(array, [self._text(index) for index in indices])
        elif self._narrow is None:
            offset = self._memory.offset(array, [self._index(index) for index in indices])
        else:
            narrow = self._narrow
            terms = [narrow.of(index) for index in indices]
            offset = self._memory.offset(array, terms, narrow.as_int)
        declared = self._memory.array(array)
        if isinstance(declared, ArrayParam) and declared.alignment is not None:
            scalars = self._dialect.scalars
            element, _ = scalars.unaligned_type(declared.dtype, declared.alignment)
            pointer = scalars.pointer(element, "global")
            return f"(({pointer})({self._names.of(array)} + {offset.at(SUM + 1)}))->value"
        return f"{self._names.of(array)}[{offset.text}]"

    def type_name(self, type: ScalarType) -> str:
        """The type's name in the device language."""
        self.types.add(type)
        return self._dialect.scalars.type_name(type)

    def loop_in_order(self) -> list[str]:
        """The lines before a loop whose floating sums have to keep the order of its iterations."""
        return self._dialect.unit.loop_in_order()

    def row_load(self, kept: str, row: Load) -> str | None:
        """The statement that loads the private array ``kept`` whole, from the element ``row`` on;
        None where the language has none."""
        type = self._dialect.scalars.storage_name(row.type)
        first, define = self.subscript(row.array, row.indices), self._helpers.add
        return self._dialect.unit.row_load(self._names.of(kept), first, type, define)

    def vector_step(self, step: VectorStep) -> str | None:
        """The statement that combines as many elements in local memory as a vector has; None where
        the language has no vectors."""
        target, other = (self.subscript(a.array, a.indices) for a in (step.target, step.other))
        type, define = self.type_name(step.type), self._helpers.add
        return self._dialect.unit.vector_step(target, other, step.symbol, type, step.lanes, define)

    def streaming_loop(self, iterations: int | None, most: int) -> list[str]:
        """The lines before a short innermost loop that loads from global memory, ``most``
        iterations at once; of so many ``iterations`` if that is unrolled whole."""
        return self._dialect.unit.streaming_loop(iterations, most)

    # ------------------------------------------------------------------ dispatch
    def _text(self, expr: Expr) -> Text:
        self.types.add(expr.type)
        match expr:
            case Const():
                return self._dialect.scalars.literal(expr)
            case Var():
                return Text(self._names.of(expr.name), PRIMARY)
            case Param():
                name = self._memory.scalar(expr.name)
                return self._stored(name, expr.type)
            case Extent():
                known = self._memory.known_extent(expr.array, expr.dim)
                if known is not None:
                    return self._dialect.scalars.literal(Const(INT64, known))
                return self._memory.extent(expr.array, expr.dim)
            case ItemQuery():
                query = self._dialect.items.query(expr.query, expr.dim, self._memory.ndim)
                return Text(f"({self.type_name(expr.type)}){query}", UNARY)
            case Load(halved=True):
                return self._halved(expr)
            case Load():
                return self._stored(self.subscript(expr.array, expr.indices), expr.type)
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._binary(expr)
            case Compare():
                return self._comparison(expr)
            case Logical():
                if self._dialect.unit.eager_conditions and is_eager(expr, self._unassigned):
                    return self._binary(Binary(BOOL, expr.op, expr.lhs, expr.rhs))
                operator, precedence = _LOGICAL_OPERATORS[expr.op]
                lhs, rhs = self._text(expr.lhs), self._text(expr.rhs)
                return Text(f"{lhs.at(precedence)} {operator} {rhs.at(precedence)}", precedence)
            case Select(speculated=True) if self._dialect.unit.eager_conditions:
                name = self._helpers.choice(expr.type)
                parts = expr.cond, expr.then, expr.orelse
                return Text(f"{name}({', '.join(map(self.value, parts))})", PRIMARY)
            case Select():
                cond, then = self._text(expr.cond), self._text(expr.then)
                orelse = self._text(expr.orelse)
                text = f"{cond.at(OR)} ? {then.at(OR)} : {orelse.at(CONDITIONAL)}"
                return Text(text, CONDITIONAL)
            case Cast():
                return self._cast(expr)
            case Call():
                return self._call(expr)

    def _halved(self, expr: Load) -> Text:
        element = self.subscript(expr.array, expr.indices)
        made = self._dialect.scalars.halved(expr.type)
        if made is None:
            return self._stored(element, expr.type)
        self._helpers.add(*made)
        return Text(f"{made[0]}(&{element})", PRIMARY)

    def _comparison(self, expr: Compare) -> Text:
        """One that is always true or never is no comparison: Intel's compiler for CPUs (2026.1)
        makes vectors first, with a mask for ``max(3, x) != 0``, sees then that it is always true,
        and loses what is stored behind it."""
        decided = self._intervals.decided(expr)
        if decided is None:
            return self._infix(expr.op, expr.lhs, expr.rhs)
        return self._dialect.scalars.literal(Const(expr.type, decided))

    def _beside(self, expr: Expr, sibling: Expr) -> Text:
        """An operand: a constant beside another kind of operand takes that one's type."""
        return self._text(expr) if isinstance(sibling, Const) else self._untyped(expr)

    def _untyped(self, expr: Expr) -> Text:
        """``expr`` where its context gives the type: a small integer constant has no suffix."""
        if isinstance(expr, Const) and expr.type.is_integer:
            value = int(expr.value)
            if abs(value) < 1 << 31 and not (value < 0 and expr.type.kind == "u"):
                return Text(str(value), UNARY if value < 0 else PRIMARY)
        return self._text(expr)

    def _infix(self, op: str, lhs: Expr, rhs: Expr) -> Text:
        operator, precedence = _OPERATORS[op]
        left, right = self._beside(lhs, rhs), self._beside(rhs, lhs)
        if precedence in _UNFAMILIAR and left.precedence != precedence:
            return Text(f"{left.at(UNARY)} {operator} {right.at(UNARY)}", precedence)
        if precedence in _COMPARISONS:
            return Text(f"{left.at(SHIFT)} {operator} {right.at(SHIFT)}", precedence)
        return Text(f"{left.at(precedence)} {operator} {right.at(precedence + 1)}", precedence)

    # ---------------------------------------------------------------- operations
    def _unary(self, expr: Unary) -> Text:
        type = expr.type
        match expr.op:
            case "pos":
                return self._text(expr.operand)
            case "not":
                return Text(f"!{self._text(expr.operand).at(UNARY)}", UNARY)
            case "invert" if type.is_bool:
                return Text(f"!{self._text(expr.operand).at(UNARY)}", UNARY)
            case "neg" if type.is_integer and self._intervals.wraps(expr):
                return self._wrapped(expr)
            case "neg" if type.is_float and self._beside_barriers:
                name = self._helpers.negation(type)
                if name is not None:
                    return Text(f"{name}({self._text(expr.operand).text})", PRIMARY)
        sign = "-" if expr.op == "neg" else "~"
        operand = self._text(expr.operand).at(UNARY)
        text = Text(f"{sign}({operand})" if operand[0] == sign else f"{sign}{operand}", UNARY)
        return self._narrowed(text, type) if expr.op == "invert" else text

    def _binary(self, expr: Binary) -> Text:
        type, op = expr.type, expr.op
        if type.is_bool and op in ("add", "mul"):
            return self._infix("or" if op == "add" else "and", expr.lhs, expr.rhs)
        if op in _RING_OPERATIONS and type.is_integer:
            return self._wrapped(expr) if self._intervals.wraps(expr) else self._plain(expr)
        if op in ("floordiv", "mod"):
            return self._division(expr)
        if op in ("shl", "shr"):
            if not self._shift_is_plain(expr):
                return self._helper(op, type, expr.lhs, expr.rhs)
            return self._wrapped(expr) if op == "shl" else self._shifted_right(expr)
        if op == "pow":
            return self._power(expr)
        return self._plain(expr)

    def _plain(self, expr: Binary) -> Text:
        if expr.type in (FLOAT32, FLOAT64) and self._dialect.scalars.unknown_zero is not None:
            factors = _factors(expr)
            sums = [may_be_sum(factor, self._sums) for factor in factors]
            if any(sums) and not any(isinstance(factor, Param) for factor in factors):
                return self._product_of_sum(factors, sums)
        if self._beside_barriers and expr.type.is_float and expr.op in ("mul", "truediv"):
            return self._infix(expr.op, *map(self._no_minus_one, (expr.lhs, expr.rhs)))
        return self._infix(expr.op, expr.lhs, expr.rhs)

    def _product_of_sum(self, factors: Sequence[Expr], sums: Sequence[bool]) -> Text:
        """See ``Scalars.unknown_zero``: it is not multiplied by a constant, nor are others sums."""
        constant = any(isinstance(factor, Const) for factor in factors)
        texts = []
        for factor, is_sum in zip(factors, sums, strict=True):
            text = self._text(factor)
            if isinstance(factor, Const) if constant else is_sum:
                text = Text(self._dialect.scalars.hidden(text.text, factor.type), PRIMARY)
            texts.append(text)
        self.hides = True
        return Text(f"{texts[0].at(PRODUCT)} * {texts[1].at(PRODUCT + 1)}", PRODUCT)

    def _no_minus_one(self, expr: Expr) -> Expr:
        """``expr``, a factor or a divisor, or what its value -1 is the negation of."""
        if isinstance(expr, Const) and expr.value == -1:
            return Unary(expr.type, "neg", replace(expr, value=1))
        return expr

    def _shifted_right(self, expr: Binary) -> Text:
        """``>>``; one that leaves only the sign is by a distance with the dialect's ``zero``."""
        last = expr.type.bits - 1
        if expr.type.kind != "i" or self._intervals.of(expr.rhs) != (last, last):
            return self._plain(expr)
        distance = f"({last} + {self._dialect.scalars.zero})"
        return Text(f"{self._text(expr.lhs).at(SHIFT)} >> {distance}", SHIFT)

    def _power(self, expr: Binary) -> Text:
        if not expr.type.is_float:
            return self._helper("pow", expr.type, expr.lhs, expr.rhs)
        if isinstance(expr.rhs, Const) and expr.rhs.value == 2:
            return self._helper("square", expr.type, expr.lhs)
        return self._function("pow", expr.type, (expr.lhs, expr.rhs))

    def _division(self, expr: Binary) -> Text:
        op, type, divisor = expr.op, expr.type, expr.rhs
        shifts = isinstance(divisor, Const) and divisor.value in _POWERS_OF_2
        if type.is_integer and not shifts and not is_same_for_all(expr):
            same = is_same_for_all(divisor)
            name = self._helpers.division(op, type, self._bits_of(expr.lhs), same)
            if name is None and is_near(expr):
                name = self._helpers.near_remainder(type)
            if name is not None:
                return Text(f"{name}({self.value(expr.lhs)}, {self.value(divisor)})", PRIMARY)
        if self._division_is_plain(expr):
            return self._plain(expr)
        return self._helper(op, type, expr.lhs, divisor)

    def _bits_of(self, expr: Expr) -> int:
        """Two to which power is more than ``expr`` in magnitude, of those that make a difference;
        else as many as its type has."""
        low, high = self._intervals.of(expr)
        for bits in (FLOAT_BITS, DOUBLE_BITS):
            if bits < expr.type.bits and -1 << bits < low and high < 1 << bits:
                return bits
        return expr.type.bits

    def _is_within_double(self, expr: Expr) -> bool:
        return within(self._intervals.of(expr), WITHIN_DOUBLE)

    def _division_is_plain(self, expr: Binary) -> bool:
        """C's division is Python's where both sides are ≥ 0, and defined where rhs > 0."""
        if expr.type.is_float:
            return False
        return self._intervals.of(expr.lhs)[0] >= 0 and self._intervals.of(expr.rhs)[0] > 0

    def _shift_is_plain(self, expr: Binary) -> bool:
        low, high = self._intervals.of(expr.rhs)
        return low >= 0 and high < expr.type.bits

    # --------------------------------------------------------- wrapping arithmetic
    def _wrapped(self, expr: Binary | Unary) -> Text:
        """Integer arithmetic modulo two to the type's width."""
        text = self._ring(expr, explicit=True)
        if expr.type == ring_type(expr.type):
            return text
        return Text(f"({self.type_name(expr.type)}){text.at(UNARY)}", UNARY)

    def _narrowed(self, text: Text, type: ScalarType) -> Text:
        """Cuts what C computed in int back to a narrower unsigned type."""
        if type.kind == "u" and type.bits < 32:
            return Text(f"({self.type_name(type)}){text.at(UNARY)}", UNARY)
        return text

    def _ring(self, expr: Expr, explicit: bool) -> Text:
        """A text congruent to ``expr`` modulo the ring; of the ring's type if ``explicit``."""
        ring = ring_type(expr.type)
        match expr:
            case Unary(op="neg") | Binary(op="sub" | "mul") if (
                self._intervals.wraps(expr) and (positive := self._negated(expr)) is not None
            ):
                operand = self._ring(positive, explicit=True).at(SUM + 1)
                return Text(f"{self._dialect.scalars.zero} - {operand}", SUM)
            case Binary(op="add" | "sub" | "mul") if self._intervals.wraps(expr):
                operator, precedence = _OPERATORS[expr.op]
                cast_right = isinstance(expr.lhs, Const) and not isinstance(expr.rhs, Const)
                lhs = self._ring(expr.lhs, explicit=not cast_right)
                rhs = self._ring(expr.rhs, explicit=cast_right)
                text = f"{lhs.at(precedence)} {operator} {rhs.at(precedence + 1)}"
                return Text(text, precedence)
            case Binary(op="shl") if self._shift_is_plain(expr):
                lhs = self._ring(expr.lhs, explicit=True)
                rhs = self._beside(expr.rhs, expr.lhs)
                return Text(f"{lhs.at(SHIFT)} << {rhs.at(SHIFT + 1)}", SHIFT)
            case Const() if 0 <= expr.value < 1 << 31:
                if explicit:
                    return self._dialect.scalars.literal(Const(ring, expr.value))
                return Text(str(int(expr.value)), PRIMARY)
        if not explicit or expr.type == ring:
            return self._text(expr)
        return Text(f"({self.type_name(ring)}){self._text(expr).at(UNARY)}", UNARY)

    def _negated(self, expr: Unary | Binary) -> Expr | None:
        """The operand of -x, 0 - x, x * -1 and -1 * x; None for other operations."""
        if isinstance(expr, Unary):
            return expr.operand
        lhs, rhs = self._intervals.of(expr.lhs), self._intervals.of(expr.rhs)
        if expr.op == "sub":
            return expr.rhs if lhs == (0, 0) else None
        minus_one = (-1, -1) if expr.type.kind == "i" else (of_type(expr.type)[1],) * 2
        return expr.lhs if rhs == minus_one else expr.rhs if lhs == minus_one else None

    def _index(self, index: Expr) -> Text:
        """An index of linear memory; it is never negative, so its ring form is its value."""
        match index:
            case Const():
                return Text(str(int(index.value)), PRIMARY)
            case Binary(op="add" | "sub" | "mul") if self._intervals.wraps(index):
                return self._ring(index, explicit=True)
        return self._text(index)

    # ---------------------------------------------------------- casts and functions
    def _cast(self, expr: Cast) -> Text:
        target, source = expr.type, expr.operand.type
        operand = self._text(expr.operand)
        if target == source:
            return operand
        if target.is_bool:
            return Text(f"{operand.at(EQUALITY)} != 0", EQUALITY)
        if source == BFLOAT16:  # to float32, which its values are
            return operand
        if target == BFLOAT16:
            return Text(f"{self._helpers.rounded_to_bfloat16()}({operand.text})", PRIMARY)
        if source.is_float and not target.is_float:
            cast = self._helpers.saturating_cast(target, source)
            return Text(f"{cast}({operand.text})", PRIMARY)
        if source.is_float and (narrow := self._helpers.narrowed_float(target, source)) is not None:
            return Text(f"{narrow}({operand.text})", PRIMARY)
        if source.is_integer and source.bits == 64 and target.is_float:
            within_double = self._is_within_double(expr.operand)
            name = self._helpers.float_of_integer(target, source, within_double)
            if name is not None and not is_same_for_all(expr.operand):
                return Text(f"{name}({operand.text})", PRIMARY)
        return Text(f"({self.type_name(target)}){operand.at(UNARY)}", UNARY)

    def _call(self, expr: Call) -> Text:
        if expr.function in DEVICE_FUNCTIONS:
            self.device_functions.add(expr.function)
            arguments = [self._text(arg).text for arg in expr.args]
            return Text(self._dialect.items.device_function(expr.function, *arguments), UNARY)
        name, type = expr.function, expr.args[0].type
        if name == "nextafter" and type.name == "float16":
            return self._helper(name, type, *expr.args)
        if name == "ldexp":
            return self._ldexp(*expr.args)
        if name == BIT_CAST:
            operand = f"({self.type_name(type)}){self._text(expr.args[0]).at(UNARY)}"
            return Text(self._dialect.scalars.bit_cast(operand, expr.type), PRIMARY)
        if name in FLOAT_FUNCTIONS or name in PREDICATES:
            return self._function(name, type, expr.args)
        if name == "abs" and type.is_float:
            return self._function("fabs", type, expr.args)
        if name == "abs" and type.kind != "i":
            return self._text(expr.args[0])
        if name in EXTREMA and type.is_integer and is_uniform(expr, self._uniform):
            return self._helper(f"uniform_{EXTREMA[name]}", type, *expr.args)
        return self._helper(name, type, *expr.args)

    def _function(self, name: str, type: ScalarType, args: tuple[Expr, ...]) -> Text:
        """A math function or predicate; where the language has none of float16, it goes through
        float32 and rounds, as NumPy's does."""
        texts = [self._text(argument) for argument in args]
        scalars = self._dialect.scalars
        call = scalars.function(name, type)
        if call is None:
            wide = self.type_name(FLOAT32)
            texts = [Text(f"({wide}){t.at(UNARY)}", UNARY) for t in texts]
        if name in scalars.kept_apart:
            texts = [Text(f"{t.at(SUM)} - {scalars.zero}", SUM) for t in texts]
        arguments = ", ".join(t.text for t in texts)
        if call is not None:
            return Text(f"{call}({arguments})", PRIMARY)
        call = f"{scalars.function(name, FLOAT32)}({arguments})"
        if name in PREDICATES:
            return Text(call, PRIMARY)
        return Text(f"({self.type_name(type)}){call}", UNARY)

    def _ldexp(self, value: Expr, exponent: Expr) -> Text:
        type, scalars = value.type, self._dialect.scalars
        call, wide = scalars.function("ldexp", type), type
        text = self._text(value)
        if call is None:
            call, wide = scalars.function("ldexp", FLOAT32), FLOAT32
            text = Text(f"({self.type_name(FLOAT32)}){text.at(UNARY)}", UNARY)
        power = f"({self.type_name(INT32)}){self._text(exponent).at(UNARY)}"
        scaled = f"{call}({text.text}, {power})"
        if wide == type:
            return Text(scaled, PRIMARY)
        return Text(f"({self.type_name(type)}){scaled}", UNARY)

    def _helper(self, operation: str, type: ScalarType, *args: Expr) -> Text:
        name = self._helpers.operation(operation, type)
        return Text(f"{name}({', '.join(self.value(argument) for argument in args)})", PRIMARY)


def _factors(expr: Binary) -> tuple[Expr, ...]:
    """Those of a product, as which compilers take quotients by powers of two, too.  None of a
    square: no other product has its sum for a factor as it stands."""
    if expr.op == "mul" and expr.lhs != expr.rhs:
        return expr.lhs, expr.rhs
    if expr.op == "truediv" and isinstance(expr.rhs, Const):
        fraction, exponent = frexp(expr.rhs.value)
        if abs(fraction) == 0.5 and abs(exponent) < _SMALL_EXPONENT:
            return expr.lhs, replace(expr.rhs, value=1.0 / expr.rhs.value)
    return ()
