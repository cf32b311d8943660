"""Which values may be sums."""

from __future__ import annotations

import pytest

from fusionq.ir.nodes import (
    Assign,
    Atomic,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    For,
    Load,
    Param,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)
from fusionq.ir.sums import may_be_sum, places_of_sums
from fusionq.ir.types import FLOAT32, INT64

X, Y = Param(FLOAT32, "x"), Load(FLOAT32, "a", (Const(INT64, 0),))
SUM, PRODUCT = Binary(FLOAT32, "sub", X, Y), Binary(FLOAT32, "mul", X, Y)
FIRST = Const(INT64, 0)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (SUM, True),
        (Binary(FLOAT32, "add", PRODUCT, X), True),
        (Unary(FLOAT32, "neg", SUM), True),
        (Select(FLOAT32, Compare("lt", X, Y), X, SUM), True),
        (Select(FLOAT32, Compare("lt", X, Y), X, Y), False),
        (PRODUCT, False),
        (Call(FLOAT32, "exp", (SUM,)), False),
        (Y, False),
        (X, False),
    ],
)
def test_by_form(value: Expr, found: bool) -> None:
    assert may_be_sum(value, frozenset()) is found


def assign(name: str, value: Expr) -> Stmt:
    return Assign(name, value)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ([assign("s", SUM)], {"s"}),
        ([assign("s", PRODUCT)], set()),
        ([assign("t", Var(FLOAT32, "s")), assign("s", SUM)], {"s", "t"}),
        ([assign("s", PRODUCT), For("k", FIRST, FIRST, FIRST, (assign("s", SUM),))], {"s"}),
        ([Store("p", (FIRST,), SUM), assign("s", Load(FLOAT32, "p", (FIRST,)))], {"p", "s"}),
        ([Store("p", (FIRST,), Y), assign("s", Load(FLOAT32, "p", (FIRST,)))], set()),
        ([Atomic("add", "a", (FIRST,), X, "old", "relaxed", "device")], {"old"}),
    ],
)
def test_by_what_is_assigned(body: list[Stmt], found: set[str]) -> None:
    assert places_of_sums(body) == found
