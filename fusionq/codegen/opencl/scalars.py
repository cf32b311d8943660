"""OpenCL C's scalar types, address spaces, literals and math functions.

Source: Khronos, The OpenCL C Specification 3.0, sections 6.3 (data types), 6.4 (conversions), 6.7
(address spaces) and 6.15.2 (math functions).
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.codegen.literals import bits_text, spelled
from fusionq.codegen.opencl.items import UNKNOWN_ZERO
from fusionq.codegen.opencl.vector_arithmetic import (
    division,
    float_of_integer,
    half_of_double,
    integer_of_float,
)
from fusionq.codegen.unaligned import unaligned_structure
from fusionq.ir.nodes import Const, Kernel, Space
from fusionq.ir.text import Text
from fusionq.ir.types import BFLOAT16, FLOAT16, FLOAT64, ScalarType

TYPE_NAMES = {
    "bool": "bool", "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "bfloat16": "float", "float16": "half", "float32": "float", "float64": "double",
}  # fmt: skip

_STORED = {"bool": "uchar", "bfloat16": "ushort"}
"""What elements and arguments are of another type than values."""

_SUFFIXES = {
    "int64": "L", "uint32": "u", "uint64": "UL",
    "bfloat16": "f", "float16": "h", "float32": "f", "float64": "",
}  # fmt: skip

_SPACE_QUALIFIERS: dict[Space, str] = {
    "global": "__global ", "local": "__local ", "private": "", "constant": "__constant ",
}  # fmt: skip

_FUNCTION_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "gamma": "tgamma",
}  # fmt: skip
"""Where OpenCL C's name is not NumPy's."""

_ALSO_OF_HALF = frozenset({
    "floor", "ceil", "trunc", "rint", "copysign", "nextafter", "fabs",
    "isnan", "isinf", "isfinite", "signbit",
})  # fmt: skip
"""The functions of half that are exact; the others go through float."""


class OpenCLScalars:
    """See ``Scalars``."""

    size_type = "size_t"
    half_bits: tuple[str, str] | None = None
    restrict = restrict_constant = "restrict"
    zero = UNKNOWN_ZERO  # of 0 - x >> 31 Intel's compiler for CPUs makes -(x > 0)
    kept_apart = frozenset({"cos"})  # with sin, as sincos, whose last bits differ
    # Intel's compiler for CPUs (runtime 2026.21.7), of work-items that are left over beside
    # vectors, and of what is the same for all of one: (x + y) * c and (x - y) * c, c constant or
    # loaded, from x * c and y * c.  With fma(x + y, c, -0.0f) loops are not unrolled: 1.1 to 1.8
    # times the time.
    unknown_zero: str | None = f"const uint fq_zero = {zero};"
    bits_of_float = "as_uint"
    float_of_bits = "as_float"
    minimum = "min"
    maximum = "max"
    array_parameters = False

    def read_only(self, element: str, once: bool = False) -> tuple[str, str] | None:
        return None

    def halved(self, type: ScalarType) -> tuple[str, str] | None:
        name, wide = f"fq_halved_{type.name}", TYPE_NAMES[type.name]
        return name, f"""\
static inline {wide} {name}(__global const void* element) {{
    typedef uint __attribute__((may_alias)) half_word;
    __global const half_word* halves = (__global const half_word*)element;
    return as_{wide}((uint2)(halves[0], halves[1]));
}}"""

    def address(self, pointer: str, value: str) -> str:
        return f"({pointer}){value}"

    def type_name(self, type: ScalarType) -> str:
        return TYPE_NAMES[type.name]

    def storage_name(self, type: ScalarType) -> str:
        return _STORED.get(type.name) or TYPE_NAMES[type.name]

    def aliased_type(self, type: ScalarType) -> tuple[str, str]:
        storage = self.storage_name(type)
        name = f"aliased_{storage}"
        return name, f"typedef {storage} __attribute__((may_alias)) {name};"

    def unaligned_type(self, type: ScalarType, alignment: int) -> tuple[str, str]:
        return unaligned_structure(self.storage_name(type), alignment)

    def array_qualifier(self, space: Space) -> str:
        return _SPACE_QUALIFIERS[space]

    def table(self, name: str, type: ScalarType, elements: Sequence[Const]) -> str:
        # NAN is no constant expression in all of them.
        nan = f"({TYPE_NAMES[type.name]})(0.0f / 0.0f)"
        values = ", ".join(nan if e.value != e.value else self.literal(e).text for e in elements)
        storage = self.storage_name(type)
        if type == BFLOAT16:
            values = ", ".join(bits_text(element) for element in elements)
        return f"__constant {storage} {name}[{len(elements)}] = {{{values}}};"

    def local_pool(self, kernel: Kernel) -> None:
        return None

    def pointer(self, element: str, space: Space, constant: bool = False) -> str:
        return f"{_SPACE_QUALIFIERS[space]}{'const ' if constant else ''}{element}*"

    def literal(self, const: Const) -> Text:
        name = const.type.name
        of_type = "" if name in ("bfloat16", "float32") else f"({TYPE_NAMES[name]})"
        infinity, nan = f"{of_type}INFINITY", f"{of_type}NAN"
        if const.type == BFLOAT16:
            nan = "as_float(0x7fc00000)"  # whose first half is a NaN too
        return spelled(const, _SUFFIXES.get(name, ""), infinity, nan)

    def function(self, name: str, type: ScalarType) -> str | None:
        if type.name == "float16" and name not in _ALSO_OF_HALF:
            return None
        return _FUNCTION_NAMES.get(name, name)

    def hidden(self, value: str, type: ScalarType) -> str:
        name, word = {"float32": ("float", "uint"), "float64": ("double", "ulong")}[type.name]
        return f"as_{name}(as_{word}({value}) + fq_zero)"

    def bits(self, function: str, type: ScalarType, value: str) -> str:
        return f"{function}({value})"

    def bit_cast(self, value: str, target: ScalarType) -> str:
        return f"as_{TYPE_NAMES[target.name]}({value})"

    def argument(self, value: str, source: ScalarType, target: ScalarType) -> str:
        return value

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        return integer_of_float(target, source)

    def float_of_integer(
        self, target: ScalarType, source: ScalarType, within_double: bool
    ) -> str | None:
        return float_of_integer(target, source, within_double)

    def narrowed_float(self, target: ScalarType, source: ScalarType) -> str | None:
        return half_of_double() if (target, source) == (FLOAT16, FLOAT64) else None

    def division(
        self, op: str, type: ScalarType, bits: int, same_divisor: bool, otherwise: str
    ) -> str | None:
        return division(op, type, bits, same_divisor, otherwise)

    def near_remainder(self, type: ScalarType, otherwise: str) -> str | None:
        return None  # a branch, which would keep the loop over work-items from being vectors

    def negation(self, type: ScalarType) -> str | None:
        # Intel's CPU compiler (runtime 2026.21.7) makes one value for a whole work-group of -x, x
        # made of ids, where it is needed behind a barrier; and x * -1 is -x to it.
        name = TYPE_NAMES[type.name]  # float of a bfloat16
        word, last = {"half": ("ushort", 15), "float": ("uint", 31), "double": ("ulong", 63)}[name]
        sign = f"({word})(({word})1 << ({last} + {self.zero}))"
        return f"return as_{name}(({word})(as_{word}(a) ^ {sign}));"
