"""Traversal of expressions and their rewriting."""

from __future__ import annotations

import pytest

from fusionq.base.span import Span
from fusionq.ir.nodes import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Select,
    Unary,
    Var,
)
from fusionq.ir.types import BOOL, FLOAT64, INT64
from fusionq.ir.walk import map_operands, operands, rewrite, subexpressions

A, B, C = (Var(INT64, name) for name in "abc")
P, Q = (Var(BOOL, name) for name in "pq")
INNER = [
    Load(INT64, "x", (A, B), Span("file.py", 3, 4)),
    Unary(INT64, "neg", A),
    Binary(INT64, "sub", A, B),
    Compare("lt", A, B),
    Logical("and", P, Q),
    Select(INT64, P, A, B),
    Cast(FLOAT64, A),
    Call(INT64, "minimum", (A, B)),
]


@pytest.mark.parametrize("expr", INNER, ids=lambda expr: type(expr).__name__)
def test_operands_are_put_back_where_they_were(expr: Expr) -> None:
    def other(operand: Expr) -> Expr:
        return Var(operand.type, f"{operand.name}2")

    made = map_operands(expr, other)
    assert operands(made) == tuple(map(other, operands(expr)))
    assert map_operands(made, lambda operand: Var(operand.type, operand.name[:-1])) == expr
    assert getattr(made, "span", None) == getattr(expr, "span", None)


@pytest.mark.parametrize("expr", [*INNER, A, Const(INT64, 3)], ids=lambda e: type(e).__name__)
def test_what_stays_is_the_same_object(expr: Expr) -> None:
    assert map_operands(expr, lambda operand: operand) is expr


def test_subexpressions_come_outermost_first_and_from_left_to_right() -> None:
    left, right = Binary(INT64, "add", A, B), Unary(INT64, "neg", C)
    whole = Binary(INT64, "mul", left, right)
    assert list(subexpressions(whole)) == [whole, left, A, B, right, C]


def test_rewriting_goes_from_the_innermost_to_the_outermost() -> None:
    seen: list[Expr] = []

    def note(expr: Expr) -> Expr:
        seen.append(expr)
        return B if expr == A else expr

    whole = Unary(INT64, "neg", Binary(INT64, "add", A, C))
    changed = Binary(INT64, "add", B, C)
    assert rewrite(whole, note) == Unary(INT64, "neg", changed)
    assert seen == [A, C, changed, Unary(INT64, "neg", changed)]
