"""Which variables are uniform in a work-group."""

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
    Extent,
    For,
    GroupCall,
    If,
    ItemQuery,
    Load,
    Param,
    Stmt,
    Store,
    Var,
    While,
)
from fusionq.ir.types import INT64
from fusionq.ir.uniformity import is_uniform, uniform_variables

ONE, N, EXTENT = Const(INT64, 1), Param(INT64, "n"), Extent("a", 0)
ID, LOCAL, GROUP = ItemQuery("global_id", 0), ItemQuery("local_id", 0), ItemQuery("group_id", 0)
ELEMENT = Load(INT64, "a", (Const(INT64, 0),))


def add(lhs: Expr, rhs: Expr) -> Binary:
    return Binary(INT64, "add", lhs, rhs)


def var(name: str) -> Var:
    return Var(INT64, name)


def loop(name: str, stop: Expr, *body: Stmt) -> For:
    return For(name, Const(INT64, 0), stop, ONE, body)


def where(cond: Expr, *body: Stmt) -> If:
    return If(Compare("lt", cond, N), body)


@pytest.mark.parametrize(
    ("body", "uniform"),
    [
        ([loop("k", N)], {"k"}),
        ([loop("k", Call(INT64, "pymin", (N, EXTENT)))], {"k"}),
        ([loop("k", ID)], set()),
        ([loop("k", ELEMENT)], set()),
        ([loop("k", N, loop("m", add(var("k"), GROUP)))], {"k", "m"}),
        ([loop("k", LOCAL, loop("m", var("k")))], set()),
        ([loop("k", N), loop("k", ID)], set()),
        ([Assign("x", add(GROUP, N)), loop("k", var("x"))], {"x", "k"}),
        ([Assign("x", ID), loop("k", var("x"))], set()),
        ([where(ID, Assign("x", ONE))], set()),
        ([where(GROUP, Assign("x", ONE))], {"x"}),
        ([loop("k", ID, Assign("x", ONE))], set()),
        ([While(Compare("lt", ID, N), (Assign("x", ONE),))], set()),
        # Each is uniform if the other is: x becomes an id in the second turn.
        ([loop("k", N, Assign("y", var("x")), Assign("x", ID))], {"k"}),
        ([loop("k", N, Assign("y", var("x")), Assign("x", add(var("y"), ONE)))], {"k", "x", "y"}),
        ([Atomic("add", "a", (ONE,), ONE, "old", "relaxed", "device")], set()),
        ([GroupCall("broadcast", None, ID, Const(INT64, 0), "first")], set()),
        ([Store("a", (ID,), N)], set()),
    ],
)  # fmt: skip
def test_variables(body: list[Stmt], uniform: set[str]) -> None:
    assert uniform_variables(body) == uniform


def test_expressions() -> None:
    assert is_uniform(Call(INT64, "pymin", (add(var("k"), GROUP), EXTENT)), frozenset({"k"}))
    assert not is_uniform(Call(INT64, "pymin", (var("k"), EXTENT)), frozenset())
    for expr in (ID, LOCAL, ELEMENT, add(N, LOCAL), Call(INT64, "clock", ())):
        assert not is_uniform(expr, frozenset())


def test_in_a_row() -> None:
    """What differs in another id only is one value there."""
    other = ItemQuery("global_id", 1)
    body = [loop("k", add(ID, N), Assign("x", var("k"))), loop("m", other), Assign("y", LOCAL)]
    assert uniform_variables(body, 1) == {"k", "x", "y"}
    assert uniform_variables(body, 0) == {"m"}
    assert uniform_variables([Assign("x", add(var("q"), ONE))], 0, ["q"]) == {"q", "x"}
    assert uniform_variables([Assign("x", add(var("q"), ONE))], 0) == set()
    assert uniform_variables([Assign("q", ID)], 0, ["q"]) == set()
    assert is_uniform(add(GROUP, ItemQuery("global_range", 1)), frozenset(), 1)
    for expr in (other, ItemQuery("local_id", 1), ItemQuery("local_linear_id", 0), ELEMENT):
        assert not is_uniform(expr, frozenset(), 1)
