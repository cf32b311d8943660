"""Indices in a normal form, so that those that are equal look equal.

    (i - 1) + 1    →    i
    k + (i + k)    →    i + 2 * k

The terms stand in the order of their text.  Integers wrap, so that sums may be taken apart and put
together in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusionq.ir.nodes import Binary, Const, Expr, Unary
from fusionq.ir.printer import print_expr
from fusionq.ir.types import INT64
from fusionq.ir.walk import map_operands


def index_sum(expr: Expr) -> Expr:
    """``expr`` with every sum of int64 in it in normal form."""
    if expr.type != INT64 or not _is_sum(expr):
        return map_operands(expr, index_sum)
    return sum_of(*index_terms(expr))


def sum_of(terms: Iterable[tuple[Expr, int]], constant: int) -> Expr:
    """The sum of ``terms``, each with its factor, and of a constant."""
    total: Expr | None = None
    for term, factor in terms:
        total = with_term(total, term, factor)
    if total is None:
        return Const(INT64, constant)
    if constant < 0 and constant != -(1 << 63):
        return Binary(INT64, "sub", total, Const(INT64, -constant))
    return Binary(INT64, "add", total, Const(INT64, constant)) if constant else total


def index_terms(expr: Expr) -> tuple[tuple[tuple[Expr, int], ...], int]:
    """The terms of an int64, each with its factor, in the order of a normal form, and a constant:
    it is their sum."""
    factors: dict[Expr, int] = {}
    constant = 0
    for term, factor in _terms(expr, 1):
        if isinstance(term, Const):
            constant += int(term.value) * factor
        else:
            factors[term] = factors.get(term, 0) + factor
    kept = {term: value for term, factor in factors.items() if (value := _wrapped(factor))}
    order = sorted(kept, key=lambda t: (kept[t] < 0, print_expr(t)))
    return tuple((term, kept[term]) for term in order), _wrapped(constant)


def with_term(total: Expr | None, term: Expr, factor: int) -> Expr:
    """The sum of ``total``, if there is one, and the product of a ``term`` and its ``factor``."""
    if total is not None and factor == -1:
        return Binary(INT64, "sub", total, term)
    if factor != 1:
        term = Binary(INT64, "mul", Const(INT64, factor), term)
    return term if total is None else Binary(INT64, "add", total, term)


def _is_sum(expr: Expr) -> bool:
    match expr:
        case Binary(_, "add" | "sub"):
            return True
        case Binary(_, "mul", lhs, rhs):
            return isinstance(lhs, Const) or isinstance(rhs, Const)
        case Unary(_, "neg" | "pos"):
            return True
    return False


def _terms(expr: Expr, factor: int) -> Iterator[tuple[Expr, int]]:
    """The terms of a sum, each with its factor."""
    match expr:
        case Binary(_, "add" | "sub" as op, lhs, rhs):
            yield from _terms(lhs, factor)
            yield from _terms(rhs, factor if op == "add" else -factor)
        case Binary(_, "mul", Const(_, value), other) | Binary(_, "mul", other, Const(_, value)):
            yield from _terms(other, factor * int(value))
        case Unary(_, "neg" | "pos" as op, operand):
            yield from _terms(operand, -factor if op == "neg" else factor)
        case Const():
            yield expr, factor
        case _:
            yield map_operands(expr, index_sum), factor


def _wrapped(value: int) -> int:
    """``value`` as int64."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
