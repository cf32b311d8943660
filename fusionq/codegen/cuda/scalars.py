"""CUDA C++'s scalar types, pointers, literals and math functions.

Source: NVIDIA, CUDA Math API Reference Manual 13, and CUDA C++ Programming Guide 13, section
Mathematical Functions, which has the functions' errors in units in the last place.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import numpy as np

from fusionq.codegen.cuda.shared_memory import ALIGNMENT, offsets
from fusionq.codegen.dialect.scalars import OwnOperators
from fusionq.codegen.literals import bits_text, spelled
from fusionq.codegen.unaligned import unaligned_structure
from fusionq.ir.functions import PREDICATES
from fusionq.ir.nodes import Const, Kernel, Space
from fusionq.ir.text import PRIMARY, Text
from fusionq.ir.types import BFLOAT16, ScalarType

TYPE_NAMES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned",
    "uint64": "unsigned long long",
    "bfloat16": "float", "float16": "fq_half", "float32": "float", "float64": "double",
}  # fmt: skip

_STORED = {"bool": "unsigned char", "bfloat16": "unsigned short"}
"""What elements and arguments are of another type than values."""

_SUFFIXES = {
    "int64": "ll", "uint32": "u", "uint64": "ull", "bfloat16": "f", "float32": "f", "float64": "",
}  # fmt: skip

_INFINITIES = {
    "bfloat16": "__int_as_float(0x7f800000)",
    "float32": "__int_as_float(0x7f800000)",
    "float64": "__longlong_as_double(0x7ff0000000000000ll)",
}
_NANS = {
    "bfloat16": "__int_as_float(0x7fc00000)",
    "float32": "__int_as_float(0x7fc00000)",
    "float64": "__longlong_as_double(0x7ff8000000000000ll)",
}

_FUNCTION_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "gamma": "tgamma",
}  # fmt: skip
"""Where C's name is not NumPy's."""

_ON_BITS_OF_HALF = frozenset({"nextafter", "copysign", "signbit", "fabs"})
"""The functions of float16 that do not go through float32 (``codegen.cuda.half``)."""


_READ_ONLY = """\
// $WHAT
template <class T> struct $NAME {
    const T* at;
    template <class I> __device__ __forceinline__ T operator[](I index) const {
        return $LOAD(at + index);
    }
    __device__ __forceinline__ operator const T*() const { return at; }
};
"""
_READ_ONLY_HALF = """\
// $WHAT
struct $NAME {
    const fq_half* at;
    template <class I> __device__ __forceinline__ fq_half operator[](I index) const {
        return fq_half_of($LOAD((const unsigned short*)(at + index)));
    }
};
"""
_NEAR_REMAINDER = """\
        const $U moved = a < 0 ? ($U)a + ($U)b : ($U)a - ($U)b;
        const $U near = ($U)a < ($U)b ? ($U)a : moved;
        if (b > 0 && near < ($U)b) return ($T)near;
"""

_NOBODY_WRITES = (
    "An array that nobody writes while the kernel runs: its loads wait for no store or barrier."
)
_LOADED_ONCE = (
    "An array of which elements are loaded once: the level 2 cache gives up their lines first."
)


class CudaScalars(OwnOperators):
    """See ``Scalars``."""

    size_type = "unsigned"
    restrict = "__restrict__"
    # Of `c ? a[i] : b[i]` NVRTC (13.0 and 13.5) makes one load, and takes that for one of constant
    # memory if b is `float* __restrict__` and nobody writes it: what was stored to a is lost.
    restrict_constant = ""
    # Of 0 - x in int16 NVRTC makes neg.s16, after which ptxas (13.0) takes -32768 for 32768.
    zero = "(gridDim.x >> 31)"
    kept_apart: frozenset[str] = frozenset()
    bits_of_float = "__float_as_uint"
    float_of_bits = "__uint_as_float"
    minimum = "min"
    maximum = "max"
    array_parameters = True

    def read_only(self, element: str, once: bool = False) -> tuple[str, str] | None:
        name, load, what = (
            ("fq_read_once", "__ldcs", _LOADED_ONCE)
            if once
            else ("fq_read_only", "__ldg", _NOBODY_WRITES)
        )
        if element == "fq_half":
            name = f"{name}_half"
            return name, Template(_READ_ONLY_HALF).substitute(NAME=name, LOAD=load, WHAT=what)
        text = Template(_READ_ONLY).substitute(NAME=name, LOAD=load, WHAT=what)
        return f"{name}<{element}>", text

    def near_remainder(self, type: ScalarType, otherwise: str) -> str | None:
        return _NEAR_REMAINDER + otherwise

    def address(self, pointer: str, value: str) -> str:
        return f"({pointer})__cvta_global_to_generic({value})"

    def type_name(self, type: ScalarType) -> str:
        return TYPE_NAMES[type.name]

    def storage_name(self, type: ScalarType) -> str:
        return _STORED.get(type.name) or TYPE_NAMES[type.name]

    def aliased_type(self, type: ScalarType) -> tuple[str, str]:
        storage = self.storage_name(type)
        name = f"fq_aliased_{storage.replace(' ', '_').removeprefix('fq_')}"
        attribute = "" if storage == "fq_half" else "__attribute__((may_alias)) "  # has it itself
        return name, f"typedef {storage} {attribute}{name};"

    def unaligned_type(self, type: ScalarType, alignment: int) -> tuple[str, str]:
        return unaligned_structure(self.storage_name(type), alignment)

    def array_qualifier(self, space: Space) -> str:
        return "__shared__ " if space == "local" else ""

    def table(self, name: str, type: ScalarType, elements: Sequence[Const]) -> str:
        # Not in __constant__ memory, where lanes that read different elements take turns.
        values = ", ".join(map(self._initializer, elements))
        return f"static __device__ const {self.storage_name(type)} {name}[] = {{{values}}};"

    def _initializer(self, const: Const) -> str:
        """A constant as C++ computes it while compiling: constructors and intrinsics are not."""
        type = const.type
        if type == BFLOAT16:
            return bits_text(const)
        if not type.is_float or (np.isfinite(const.value) and type.name != "float16"):
            return self.literal(const).text
        with np.errstate(over="ignore"):
            bits = int(type.dtype.type(const.value).view(f"u{type.nbytes}"))
        word = TYPE_NAMES[f"uint{type.bits}"]
        return f"__builtin_bit_cast({TYPE_NAMES[type.name]}, ({word}){bits:#x})"

    def local_pool(self, kernel: Kernel) -> tuple[str, dict[str, str]] | None:
        places = offsets(kernel)
        if not places:
            return None
        return (
            "extern __shared__ unsigned long long fq_local[];",
            {name: f"(fq_local + {place // ALIGNMENT})" for name, place in places.items()},
        )

    def pointer(self, element: str, space: Space, constant: bool = False) -> str:
        return f"{'const ' if constant else ''}{element}*"

    def literal(self, const: Const) -> Text:
        name = const.type.name
        if name == "float16":
            with np.errstate(over="ignore"):
                bits = int(np.float16(const.value).view(np.uint16))
            return Text(f"fq_half_of({bits:#06x})", PRIMARY)
        suffix = _SUFFIXES.get(name, "")
        return spelled(const, suffix, _INFINITIES.get(name, ""), _NANS.get(name, ""))

    def function(self, name: str, type: ScalarType) -> str | None:
        if type.name == "float16":
            return f"fq_half_{name}" if name in _ON_BITS_OF_HALF else None
        if name in PREDICATES:
            return name
        return _FUNCTION_NAMES.get(name, name) + ("f" if type.name == "float32" else "")

    def bits(self, function: str, type: ScalarType, value: str) -> str:
        word = f"({TYPE_NAMES[f'uint{type.bits}']}){value}"
        if function == "popcount":
            return f"__popcll({word})"
        return f"(__clzll({word}) - {64 - type.bits})"

    def bit_cast(self, value: str, target: ScalarType) -> str:
        return f"__builtin_bit_cast({TYPE_NAMES[target.name]}, {value})"

    def argument(self, value: str, source: ScalarType, target: ScalarType) -> str:
        return value if source == target else f"({TYPE_NAMES[target.name]}){value}"

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        return f"return a != a ? 0 : {self._saturated(target, source)};"

    def _saturated(self, target: ScalarType, source: ScalarType) -> str:
        # Conversions to 32 and 64 bits saturate (PTX, cvt).
        kind = "double" if source.name == "float64" else "float"
        value = "(float)a" if source.name == "float16" else "a"
        signed = target.kind == "i"
        wide = {64: "ll", 32: "int"}[max(target.bits, 32)]
        converted = f"__{kind}2{'' if signed else 'u'}{wide}_rz({value})"
        if target.bits >= 32:
            return converted
        top = (1 << target.bits - signed) - 1
        limited = f"max({converted}, {-top - 1})" if signed else converted
        return f"({TYPE_NAMES[target.name]})min({limited}, {top}{'' if signed else 'u'})"
