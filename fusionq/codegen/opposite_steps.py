"""Integers that rise by a multiple of what others fall by, from one vector to the next.

    3 * id, n - 1 - id        id by 16 an iteration: one rises by 48, the other falls by 16
    p[id, k], p[n - 1 - id, k]    the same of elements of ``p``, in rows of three

Intel's compiler for CPUs (runtime 2026.21.7) computes the first from the second where loops stand
inside each other, four iterations at a time, and takes the first one's value for all four.  It does
not where it does not know by how much ids rise.
"""

from __future__ import annotations

from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Atomic,
    Binary,
    Const,
    Expr,
    ItemQuery,
    Kernel,
    Load,
    Store,
    Unary,
    Var,
)
from fusionq.ir.walk import expressions, statements, subexpressions


def has_opposite_steps(kernel: Kernel) -> bool:
    """Whether integers of ``kernel`` may be such, by the form of the text: an id, or a variable, is
    subtracted or negated, and one is multiplied or added to another."""
    falls, rises = False, _counts_rows(kernel)
    for e in expressions(kernel.body):
        if not e.type.is_integer:
            continue
        match e:
            case Binary(op="sub", rhs=operand) | Unary(op="neg", operand=operand):
                falls = falls or _varies(operand)
            case (
                Binary(op="mul", lhs=Const() as factor, rhs=operand)
                | Binary(op="mul", lhs=operand, rhs=Const() as factor)
            ):
                multiplies = _is_product(int(factor.value)) and _varies(operand)
                rises = rises or multiplies
                falls = falls or (factor.value < 0 and _varies(operand))
            case Binary(op="add", lhs=lhs, rhs=rhs):
                rises = rises or (_varies(lhs) and _varies(rhs))
        if falls and rises:
            return True
    return False


def _counts_rows(kernel: Kernel) -> bool:
    """Whether the place of an element is an id times a constant, as in rows of known length."""
    lengths = {a.name: _row_lengths(a) for a in (*kernel.params, *kernel.arrays)
               if isinstance(a, (ArrayParam, ArrayDecl))}  # fmt: skip
    accesses = (
        *(e for e in expressions(kernel.body) if isinstance(e, Load)),
        *(s for s in statements(kernel.body) if isinstance(s, (Store, Atomic))),
    )
    return any(
        length is not None and _is_product(length) and _varies(index)
        for access in accesses
        for index, length in zip(access.indices, lengths.get(access.array, ()), strict=False)
    )


def _row_lengths(array: ArrayParam | ArrayDecl) -> list[int | None]:
    """How many elements lie from an index of each dimension to the next; None: not known."""
    extents = (
        array.shape if isinstance(array, ArrayDecl) else map(array.extent, range(array.ndim))
    )
    lengths: list[int | None] = [1]
    for extent in reversed([*extents][1:]):
        last = lengths[-1]
        lengths.append(None if last is None or extent is None else last * extent)
    return lengths[::-1]


def _is_product(factor: int) -> bool:
    """Whether that is a multiplication, and no shift."""
    return abs(factor) & (abs(factor) - 1) != 0


def _varies(expr: Expr) -> bool:
    """Whether it may be made of an id, and is not of memory."""
    every = list(subexpressions(expr))
    return any(isinstance(e, (ItemQuery, Var)) for e in every) and not any(
        isinstance(e, Load) for e in every
    )
