"""Integers below 64 bits in kernels of numba-dpex, which numba computes in 64 bits.

Their sums, products and the like are congruent in both languages, so they are the same once they
are stored in, or converted to, their type.  What makes use of more than that, a comparison or a
division say, would see a wrapped value here and a large one in numba: it is refused.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NoReturn

from fusionq.base.errors import KernelLanguageError
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Kernel,
    Select,
    Stmt,
    Unary,
    Var,
)
from fusionq.ir.printer import print_expr
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import operands, statement_expressions, statements


class ValueRelation(IntEnum):
    """How a value here relates to numba's, from the closest on."""

    SAME = 0
    """The same value of the same type."""
    WIDER = 1
    """The same value; numba's type may be a wider integer."""
    CONGRUENT = 2
    """numba's type is a wider integer, and its value the same modulo ours."""


SAME, WIDER, CONGRUENT = ValueRelation
_RING = ("add", "sub", "mul", "and", "or", "xor", "shl", "pow")
"""Operations whose left operand may be congruent only; ``_RIGHT_EXACT``: not the right one."""
_RIGHT_EXACT = ("shl", "pow")
_EXACT_RESULT = ("and", "or", "xor", "mod", "shr")
"""Operations that give the same value in a wider type, for the same operands."""


def check_narrow_integers(kernel: Kernel) -> None:
    """KernelLanguageError where wrapped integers below 64 bits are used as if they were exact."""
    _Checker(kernel).check()


class _Checker:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._variables: dict[str, ValueRelation] = {}
        self._span = kernel.span

    def check(self) -> None:
        found = tuple(statements(self._kernel.body))
        while self._grow(found):  # what loops carry
            pass

    def _grow(self, found: tuple[Stmt, ...]) -> bool:
        """Check all statements with what is known of the variables; whether that has grown."""
        before = dict(self._variables)
        for stmt in found:
            self._span = getattr(stmt, "span", self._span)
            values = [self._relation(e) for e in statement_expressions(stmt)]
            if isinstance(stmt, Assign):
                known = self._variables.get(stmt.name, SAME)
                self._variables[stmt.name] = max(known, values[0])
        return before != self._variables

    def _relation(self, expr: Expr) -> ValueRelation:
        """The relation of an expression's value, after checking the expression itself."""
        relations = [self._relation(operand) for operand in operands(expr)]
        for operand, relation in zip(operands(expr), relations, strict=True):
            if relation == CONGRUENT and not _takes_congruent(expr, operand):
                self._refuse(expr, operand)
            if relation != SAME and _mixes_with_float32(expr, operand):
                self._refuse(expr, operand)
        if not _is_narrow(expr.type):
            return SAME
        match expr:
            case Const():
                return WIDER  # a literal is an int64
            case Var():
                return self._variables.get(expr.name, SAME)
            case Select():
                return max(relations[1:])
            case Cast():
                return SAME
            case Call():
                return WIDER
            case Unary(op="pos") | Unary(op="invert", type=ScalarType(kind="i")):
                return max(WIDER, *relations)
            case Binary(op=op) if op in _EXACT_RESULT or _divides_exactly(expr):
                return max(WIDER, *relations)
            case Binary() | Unary():
                return CONGRUENT
        return SAME

    def _refuse(self, user: Expr, operand: Expr) -> NoReturn:
        type = operand.type
        raise KernelLanguageError(
            f"{self._span}: in {self._kernel.name!r}: {print_expr(operand)} has {type} here, which "
            f"wraps, and a 64-bit type in numba-dpex, so that {print_expr(user)} may differ\n"
            f"    {self._span.text}\n"
            f"  Write the type, so that both languages agree: np.{type}(…), or compute in int64."
        )


def _is_narrow(type: ScalarType) -> bool:
    return type.is_integer and type.bits < 64


def _takes_congruent(expr: Expr, operand: Expr) -> bool:
    """Whether the expression is right, modulo its type, for a congruent operand."""
    match expr:
        case Binary(op=op) if op in _RING:
            return operand is expr.lhs or op not in _RIGHT_EXACT
        case Unary() | Select():
            return True
        case Cast():
            return expr.type.is_integer and expr.type.bits <= operand.type.bits
    return False


def _mixes_with_float32(expr: Expr, operand: Expr) -> bool:
    """Whether numba computes in float64 beside a wide integer, in float32 beside a narrow one."""
    return (
        isinstance(expr, Cast)
        and expr.type.is_float
        and expr.type.bits < 64
        and operand.type.bits <= 16
    )


def _divides_exactly(expr: Binary) -> bool:
    """Floor division that cannot overflow, as that of the smallest integer by -1 does."""
    if expr.op != "floordiv":
        return False
    return expr.type.kind == "u" or (isinstance(expr.rhs, Const) and expr.rhs.value != -1)
