"""Device functions for what C's operators do differently from NumPy's.

Sources: numpy/_core/src/npymath/npy_math_internal.h.src (npy_divmod) and
numpy/_core/src/umath/loops.c.src, NumPy 2.

In the bodies ``$T`` is the operands' type, ``$R`` the result's, ``$U`` the unsigned one of its
wrapping arithmetic, ``$BITS`` its width, ``$SIGN_BIT`` its last bit, ``$ZERO`` what stands before
the minus of a negation that may wrap, ``$MIN`` and ``$MAX`` the language's functions of integers,
``@name`` a math function of it.
"""

from __future__ import annotations

import re
from textwrap import dedent, indent

from fusionq.codegen.dialect import Dialect
from fusionq.codegen.helper_functions import PREFIX, HelperFunctions, suffix
from fusionq.ir.functions import INTEGER_FUNCTIONS
from fusionq.ir.nodes import GroupOp
from fusionq.ir.types import BFLOAT16, BOOL, FLOAT32, INT64, UINT32, UINT64, ScalarType

_COMMON = {
    "square": "return a * a;",
    "pymin": "return b < a ? b : a;",
    "pymax": "return b > a ? b : a;",
}

# Quotients have one return and compute nothing under a condition: where such a function is called
# under a condition that is always true, Intel's compiler for CPUs (2026.1) lost stores behind it.
_FLOATING = _COMMON | {
    # A tie of 0.0 and -0.0 gives the second operand, as NumPy's x86 loops do.
    "minimum": "return a < b || a != a ? a : b;",
    "maximum": "return a > b || a != a ? a : b;",
    "fmin": "return a < b || b != b ? a : b;",
    "fmax": "return a > b || b != b ? a : b;",
    "sign": "return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;",
    # C's rule for two equal numbers, 0.0 and -0.0 among them.
    "nextafter": "return a == b ? b : @nextafter(a, b);",
    "floordiv": """\
        const $T plain = a / b;
        const $T remainder = @fmod(a, b);
        $T quotient = (a - remainder) / b;
        if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
        const $T whole = @floor(quotient);
        const $T nearest = quotient - whole > ($T)0.5 ? whole + 1 : whole;
        return b == 0 ? plain : quotient == 0 ? @copysign(($T)0, plain) : nearest;""",
    "mod": """\
        const $T remainder = @fmod(a, b);
        const $T moved = remainder + b;
        const $T zero = @copysign(($T)0, b);
        const $T floored = (b < 0) != (remainder < 0) ? moved : remainder;
        return b == 0 ? remainder : remainder == 0 ? zero : floored;""",
}

_EITHER = dict.fromkeys(("minimum", "fmin"), _COMMON["pymin"])
_EITHER |= dict.fromkeys(("maximum", "fmax"), _COMMON["pymax"])

EXTREMA = {
    **dict.fromkeys(("pymin", "minimum", "fmin"), "min"),
    **dict.fromkeys(("pymax", "maximum", "fmax"), "max"),
}

# Equal integers are the same bits, whichever is returned.  Of conditions in their place, where
# several loops are inside each other, Intel's compiler for CPUs makes wrong vectors (2026.1); its
# functions it takes to differ between work-items, also of uniform operands, and runs loops up to
# them under masks.
_INTEGER = _COMMON | {
    **{name: f"return ${extremum.upper()}(a, b);" for name, extremum in EXTREMA.items()},
    "uniform_min": "return b < a ? b : a;",
    "uniform_max": "return b > a ? b : a;",
    "shl": "return ($U)b < $BITS ? ($T)(($U)a << b) : 0;",
    "pow": """\
        $U result = 1;
        $U square = a;
        for ($U rest = b; rest != 0; rest >>= 1) {
            if (rest & 1) result *= square;
            square *= square;
        }
        return ($T)result;""",
}

# Without branches around the division: those would keep a CPU from running it as a vector.
_SIGNED = _INTEGER | {
    "abs": "return a < 0 ? ($T)($ZERO - ($U)a) : a;",
    "sign": "return (a >> $SIGN_BIT) | (a != 0);",
    "shr": "return ($U)b < $BITS ? a >> b : (a < 0 ? -1 : 0);",
    "floordiv": """\
        const $T divisor = b == 0 || b == -1 ? 1 : b;
        const $T quotient = a / divisor;
        const $T remainder = a - quotient * divisor;
        const $T floored = quotient - (remainder != 0 && (remainder < 0) != (divisor < 0));
        return b == 0 ? 0 : b == -1 ? ($T)($ZERO - ($U)a) : floored;""",
    "mod": """\
        const $T divisor = b == 0 || b == -1 ? 1 : b;
        const $T remainder = a % divisor;
        const bool opposite = remainder != 0 && (remainder < 0) != (divisor < 0);
        return opposite ? remainder + divisor : remainder;""",
}

_UNSIGNED = _INTEGER | {
    "sign": "return a > 0;",
    "shr": "return b < $BITS ? a >> b : 0;",
    "floordiv": """\
        const $T quotient = a / (b == 0 ? 1 : b);
        return b == 0 ? 0 : quotient;""",
    "mod": "return a % (b == 0 ? 1 : b);",
}

_BODIES = {"f": _FLOATING, "i": _SIGNED, "u": _UNSIGNED, "b": _INTEGER | _COMMON | _EITHER}
_ONE_OPERAND = frozenset({"square", "sign", "abs"})
_COMPUTED_IN_FLOAT32 = frozenset({"floordiv", "mod"})
"""NumPy's float16 does these in float32 and rounds the result."""

_SYMBOLS: dict[GroupOp, str] = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}

# To nearest, ties to even; of NaN a quiet one with its sign.
_ROUNDED = """\
        const $WORD bits = $BITS_OF(a);
        const $WORD rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
        return $OF_BITS(a != a ? (bits & 0x80000000) | 0x7fc00000 : rounded);"""

_RANGE_LENGTH = """\
        if (step > 0 && start < stop) {
            return (($U)stop - ($U)start - 1) / ($U)step + 1;
        }
        if (step < 0 && start > stop) {
            return (($U)start - ($U)stop - 1) / (0 - ($U)step) + 1;
        }
        return 0;"""


def ring_type(type: ScalarType) -> ScalarType:
    """The unsigned type whose arithmetic, cut to ``type``, is ``type``'s wrapping arithmetic
    without C's promotion to int getting in the way."""
    return UINT64 if type.bits == 64 else UINT32


def _short(within_double: bool) -> str:
    return "short_" if within_double else ""


class Helpers(HelperFunctions):
    """The helper functions of a kernel in a C-family language."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self._dialect = dialect

    def operation_text(self, name: str, operation: str, type: ScalarType) -> str:
        """See ``HelperFunctions``."""
        parameters = ("a",) if operation in _ONE_OPERAND else ("a", "b")
        if operation in INTEGER_FUNCTIONS:
            body = f"return ($T){self._dialect.scalars.bits(operation, type, 'a')};"
            return self._function(name, type, type, ("a",), body)
        if type.name == "float16" and operation in _COMPUTED_IN_FLOAT32:
            wide = self.operation(operation, FLOAT32)
            argument = self._dialect.scalars.argument
            arguments = ", ".join(argument(p, type, FLOAT32) for p in parameters)
            body = f"return ($T){wide}({arguments});"
        else:
            body = _BODIES[type.kind][operation]
        return self._function(name, type, type, parameters, body)

    def rounded_to_bfloat16(self) -> str:
        """The name of the function that gives the bfloat16, as a float32, of a float32."""
        name = f"{PREFIX}{suffix(BFLOAT16)}_of_{suffix(FLOAT32)}"
        return self._made(name, lambda: self._rounded_text(name))

    def _rounded_text(self, name: str) -> str:
        scalars = self._dialect.scalars
        body = _ROUNDED.replace("$WORD", scalars.type_name(UINT32))
        body = body.replace("$BITS_OF", scalars.bits_of_float)
        body = body.replace("$OF_BITS", scalars.float_of_bits)
        return self._function(name, BFLOAT16, FLOAT32, ("a",), body)

    def choice(self, type: ScalarType) -> str:
        """The name of the function of a condition and of two values, both of which are computed
        before one is chosen."""
        name = f"{PREFIX}choice_{suffix(type)}"
        return self._made(name, lambda: self._choice_text(name, type))

    def _choice_text(self, name: str, type: ScalarType) -> str:
        text = self._dialect.scalars.type_name
        head = f"{text(BOOL)} c, {text(type)} a, {text(type)} b"
        qualifier = self._dialect.unit.function_qualifier
        return f"{qualifier} {text(type)} {name}({head}) {{\n    return c ? a : b;\n}}"

    def combination(self, op: GroupOp, type: ScalarType) -> str:
        """The name of the function that combines two values, as group functions do."""
        name = f"{PREFIX}combine_{op}_{suffix(type)}"
        return self._made(name, lambda: self._combination_text(name, op, type))

    def _combination_text(self, name: str, op: GroupOp, type: ScalarType) -> str:
        if op in ("min", "max"):
            body = f"return b {'<' if op == 'min' else '>'} a ? b : a;"
        elif type.is_integer and op in ("add", "mul"):
            body = f"return ($T)(($U)a {_SYMBOLS[op]} ($U)b);"
        else:
            body = f"return a {_SYMBOLS[op]} b;"
        return self._function(name, type, type, ("a", "b"), body)

    def range_length_text(self, name: str) -> str:
        """See ``HelperFunctions``."""
        return self._function(name, UINT64, INT64, ("start", "stop", "step"), _RANGE_LENGTH)

    def saturating_cast_text(self, name: str, target: ScalarType, source: ScalarType) -> str:
        """See ``HelperFunctions``."""
        body = self._dialect.scalars.saturating_cast(target, source)
        return self._function(name, target, source, ("a",), body)

    def float_of_integer(
        self, target: ScalarType, source: ScalarType, within_double: bool
    ) -> str | None:
        """The name of the function that converts an integer of 64 bits, less than 2⁵¹ in magnitude
        if ``within_double``, to a floating type; None for the language's cast."""
        body = self._dialect.scalars.float_of_integer(target, source, within_double)
        if body is None:
            return None
        name = f"{PREFIX}{suffix(target)}_of_{_short(within_double)}{suffix(source)}"
        return self._made(name, lambda: self._function(name, target, source, ("a",), body))

    def narrowed_float(self, target: ScalarType, source: ScalarType) -> str | None:
        """The name of the function that converts a float to a smaller type, where the dialect has
        one better than C's cast."""
        body = self._dialect.scalars.narrowed_float(target, source)
        if body is None:
            return None
        name = f"{PREFIX}{suffix(target)}_of_{suffix(source)}"
        return self._made(name, lambda: self._function(name, target, source, ("a",), body))

    def negation(self, type: ScalarType) -> str | None:
        """The name of the function that negates a float, where the dialect has one better than C's
        operator beside barriers."""
        body = self._dialect.scalars.negation(type)
        if body is None:
            return None
        name = f"{PREFIX}neg_{suffix(type)}"
        return self._made(name, lambda: self._function(name, type, type, ("a",), body))

    def division(
        self, operation: str, type: ScalarType, bits: int, same_divisor: bool
    ) -> str | None:
        """The name of the function for ``floordiv`` or ``mod`` of integers, the first less than two
        to so many ``bits`` in magnitude and the second the ``same_divisor`` for all work-items,
        where the dialect has one better than C's operators."""
        otherwise = _BODIES[type.kind][operation]
        body = self._dialect.scalars.division(operation, type, bits, same_divisor, otherwise)
        if body is None:
            return None
        short = _short(bits < type.bits) + ("same_" if same_divisor else "")
        name = f"{PREFIX}{operation}_{short}{suffix(type)}"
        return self._made(name, lambda: self._function(name, type, type, ("a", "b"), body))

    def near_remainder(self, type: ScalarType) -> str | None:
        """The name of the function for ``mod`` of integers that are hardly ever more than one
        divisor away from the remainder, where the dialect has one better than C's operator."""
        body = self._dialect.scalars.near_remainder(type, _BODIES[type.kind]["mod"])
        if body is None:
            return None
        name = f"{PREFIX}near_mod_{suffix(type)}"
        return self._made(name, lambda: self._function(name, type, type, ("a", "b"), body))

    def _function(
        self,
        name: str,
        result: ScalarType,
        type: ScalarType,
        parameters: tuple[str, ...],
        body: str,
    ) -> str:
        text = self._dialect.scalars.type_name
        head = ", ".join(f"{text(type)} {p}" for p in parameters)
        inner = indent(dedent(body), "    ")
        inner = inner.replace("$R", text(result))
        inner = inner.replace("$MIN", self._dialect.scalars.minimum)
        inner = inner.replace("$MAX", self._dialect.scalars.maximum)
        if "$U" in inner:
            inner = inner.replace("$U", text(ring_type(type)))
        inner = inner.replace("$T", text(type)).replace("$BITS", str(type.bits))
        zero = self._dialect.scalars.zero
        inner = inner.replace("$SIGN_BIT", f"({type.bits - 1} + {zero})").replace("$ZERO", zero)
        inner = re.sub(r"@(\w+)", lambda name: self._called(name[1], type), inner)
        qualifier = self._dialect.unit.function_qualifier
        return f"{qualifier} {text(result)} {name}({head}) {{\n{inner}\n}}"

    def _called(self, function: str, type: ScalarType) -> str:
        called = self._dialect.scalars.function(function, type)
        assert called is not None, f"{function} of {type} has no name"
        return called
