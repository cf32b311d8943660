"""The vocabulary of scalar values and of the memory that they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fusionq.ir.nodes import Const, Kernel, Space
from fusionq.ir.text import Text
from fusionq.ir.types import ScalarType


class Scalars(Protocol):
    """Types, pointers, literals, math functions and casts.

    C's casts ``(T)x`` between any two of the types, and arithmetic and comparisons of one type,
    also with an ``int`` literal of one digit beside, are the language's own, and round once.  In
    CUDA C++ int64 is ``long long`` (``long`` has 32 bits on some hosts), float16 a class around
    ``__half`` with such operators and explicit conversions, pointers name no address space.
    A value of bfloat16 is a float that was rounded (``Helpers.rounded_to_bfloat16``).
    """

    size_type: str
    """The unsigned type of a linear local id."""

    restrict: str
    """Qualifier of a pointer whose memory no other pointer reaches."""

    restrict_constant: str
    """The same where nothing is stored through it, or nothing but what was loaded, while the kernel
    stores to and loads from other arrays whose elements are as large; empty where a compiler gets
    that wrong."""

    zero: str
    """An unsigned 0 before the minus of a negation that may wrap, and in the distance of a shift
    that leaves only the sign: an expression that the compiler does not fold, where it would take it
    that no number is its own negative."""

    kept_apart: frozenset[str]
    """Functions that the compiler would compute together with another one of the same argument, to
    other results than alone: theirs are differences from ``zero``."""

    unknown_zero: str | None
    """Where the compiler multiplies the terms of sums that several products share,
    ``x * c + y * c`` in place of ``(x + y) * c``, which rounds to other results: the declaration of
    ``fq_zero``, an unsigned 0 that it does not know.  None elsewhere."""

    minimum: str
    """The function of two integers of one type that gives the smaller."""

    maximum: str
    """The function of two integers of one type that gives the greater."""

    bits_of_float: str
    """The function that gives the bits of a float32 as a uint32."""

    float_of_bits: str
    """The opposite."""

    array_parameters: bool
    """Whether a kernel over a range takes its arrays as pointers; else as addresses, uint64, which
    it casts.  CUDA's compilers know of a pointer parameter that it is to global memory."""

    def read_only(self, element: str, once: bool = False) -> tuple[str, str] | None:
        """A type whose values are made of a pointer to ``element`` and have its elements, of memory
        that nobody writes while the kernel runs, and the lines that define it; None where it has no
        use.  ``once``: each element is loaded once, so that caches should keep others."""

    def halved(self, type: ScalarType) -> tuple[str, str] | None:
        """The function that loads a ``type`` of 64 bits from a pointer to global memory as two
        halves, and its definition; None where that has no use."""

    def address(self, pointer: str, value: str) -> str:
        """A pointer of the type ``pointer`` to the global memory at ``value``, a uint64."""

    def type_name(self, type: ScalarType) -> str:
        """The type of a value; bool has one of its own."""

    half_bits: tuple[str, str] | None
    """Where memory holds float16 as an integer: the functions that make a number of that, and that
    of a number."""

    def storage_name(self, type: ScalarType) -> str:
        """The type of an element in memory and of a kernel argument: bool is one byte, bfloat16 an
        unsigned integer, the first half of the float's bits."""

    def aliased_type(self, type: ScalarType) -> tuple[str, str]:
        """A type like ``storage_name(type)`` that may lie in the same memory as any other, and
        the line that defines it: C's compilers take it that different types do not."""

    def unaligned_type(self, type: ScalarType, alignment: int) -> tuple[str, str]:
        """A structure whose member ``value`` is an element of a type that lies at a multiple of
        ``alignment`` bytes, less than its size, in any memory, and the line that defines it."""

    def array_qualifier(self, space: Space) -> str:
        """What stands before the declaration of an array in ``space``, with a trailing blank, or
        nothing: ``__shared__`` for a local one in CUDA C++."""

    def table(self, name: str, type: ScalarType, elements: Sequence[Const]) -> str:
        """The definition, outside of functions, of a constant array of ``elements``, each of
        ``type``; it converts to a pointer to ``constant`` memory."""

    def local_pool(self, kernel: Kernel) -> tuple[str, dict[str, str]] | None:
        """The declaration of one memory for all local arrays, and by each ``ArrayDecl.memory``
        where it begins there, for a cast to a pointer; None where each is declared alone."""

    def pointer(self, element: str, space: Space, constant: bool = False) -> str:
        """The type of a pointer to elements of the type ``element`` in ``space``, which are only
        read if ``constant``.  A cast makes it of an address, a uint64, and of another pointer."""

    def literal(self, const: Const) -> Text:
        """A constant of its own type, to overload resolution too; integers narrower than int32 are
        written as int.  The compiler reads back the same bits (``codegen.literals``)."""

    def function(self, name: str, type: ScalarType) -> str | None:
        """The name of a function of ``ir.functions`` on floating values, or of ``pow`` or
        ``fabs``; None if the language has none for float16, which then goes through float32."""

    def bits(self, function: str, type: ScalarType, value: str) -> str:
        """``popcount`` or ``clz`` of ``value``, an identifier of an integer type."""

    def bit_cast(self, value: str, target: ScalarType) -> str:
        """The bits of ``value``, whose type has as many as ``target``, as a ``target``."""

    def hidden(self, value: str, type: ScalarType) -> str:
        """``value``, of a floating type, whose bits ``fq_zero`` was added to: of what operation it
        is the result, or which constant, the compiler does not see."""

    def argument(self, value: str, source: ScalarType, target: ScalarType) -> str:
        """``value``, an identifier of type ``source``, as an argument for a parameter of type
        ``target``: itself, where the language converts it."""

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        """The body of the conversion of ``a`` from a floating type to an integer: it truncates and
        saturates, and gives 0 for NaN.  ``$R`` is the result's type."""

    def float_of_integer(
        self, target: ScalarType, source: ScalarType, within_double: bool
    ) -> str | None:
        """The body of the conversion of ``a`` from an integer of 64 bits to a floating type, where
        one is better than C's cast; ``within_double``: it is less than 2⁵¹ in magnitude."""

    def narrowed_float(self, target: ScalarType, source: ScalarType) -> str | None:
        """The body of the conversion of ``a`` from one floating type to a smaller one, where one is
        better than C's cast."""

    def division(
        self, op: str, type: ScalarType, bits: int, same_divisor: bool, otherwise: str
    ) -> str | None:
        """The body of ``floordiv`` or ``mod`` of the integers ``a`` and ``b`` of ``type``, where
        one is better than ``otherwise``, which is made of C's; ``a`` is less than two to so many
        ``bits`` in magnitude.  ``same_divisor``: ``b`` is the same for all work-items.  ``$T`` is
        their type, ``$U`` that of its wrapping arithmetic."""

    def near_remainder(self, type: ScalarType, otherwise: str) -> str | None:
        """The body of ``mod`` of the signed integers ``a`` and ``b`` of ``type``, ``a`` hardly ever
        further away from the remainder than by ``b``, where one is better than ``otherwise``."""

    def negation(self, type: ScalarType) -> str | None:
        """The body of the negation of ``a``, of a floating type, in kernels with barriers; None for
        the language's own."""


class OwnOperators:
    """The part of ``Scalars`` of a language whose own divisions, negations, products and
    conversions of integers to floats nothing betters, and whose memory has its numbers."""

    unknown_zero: str | None = None

    def hidden(self, value: str, type: ScalarType) -> str:
        return value

    half_bits: tuple[str, str] | None = None

    def float_of_integer(
        self, target: ScalarType, source: ScalarType, within_double: bool
    ) -> str | None:
        return None

    def narrowed_float(self, target: ScalarType, source: ScalarType) -> str | None:
        return None

    def division(
        self, op: str, type: ScalarType, bits: int, same_divisor: bool, otherwise: str
    ) -> str | None:
        return None

    def near_remainder(self, type: ScalarType, otherwise: str) -> str | None:
        return None

    def read_only(self, element: str, once: bool = False) -> tuple[str, str] | None:
        return None

    def halved(self, type: ScalarType) -> tuple[str, str] | None:
        return None

    def address(self, pointer: str, value: str) -> str:
        return f"({pointer}){value}"

    def negation(self, type: ScalarType) -> str | None:
        return None
