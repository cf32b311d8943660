"""The fence before the user's first condition."""

from __future__ import annotations

from fusionq.codegen.opencl.early_exits import shielded
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Block,
    Call,
    Compare,
    Const,
    Expr,
    Fence,
    For,
    If,
    ItemQuery,
    Load,
    Param,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import FLOAT32, INT64

ID, N, ZERO = ItemQuery("global_id", 0), Param(INT64, "n"), Const(INT64, 0)
INDEX = Var(INT64, "i")
STORE = Store("a", (ID,), Load(FLOAT32, "b", (ID,)))
USER = If(Compare("le", ZERO, Binary(INT64, "sub", N, ID)), (STORE,))
FENCE = Fence("relaxed", "work_item")


def guard(*body: Stmt, value: Expr = ID) -> If:
    return If(Compare("lt", value, N), body)


def test_a_kernel_without_conditions_of_its_own_stays_as_it_is() -> None:
    for body in ((), (STORE,), (guard(STORE),), (Block("0: k", ()), guard(STORE))):
        assert shielded(body) == body


def test_the_fence_stands_behind_the_guard_of_the_range() -> None:
    assert shielded((guard(USER),)) == (guard(FENCE, USER),)
    by_variable = Assign("i", ID), guard(USER, value=INDEX)
    assert shielded(by_variable) == (by_variable[0], guard(FENCE, USER, value=INDEX))


def test_a_condition_that_is_no_guard_of_the_range_is_behind_the_fence() -> None:
    assert shielded((USER,)) == (FENCE, USER)
    both = If(Compare("lt", ID, N), (STORE,), (STORE,))
    assert shielded((both,)) == (FENCE, both)
    assert shielded((guard(STORE), USER)) == (FENCE, guard(STORE), USER)


def test_choices_and_bounds_of_loops_are_conditions_too() -> None:
    smaller = Assign("i", Call(INT64, "pymin", (ID, N)))
    loop = For("k", ZERO, ID, Const(INT64, 1), (STORE,))
    fixed = For("k", ZERO, Const(INT64, 3), Const(INT64, 1), (STORE,))
    assert shielded((guard(smaller),)) == (guard(FENCE, smaller),)
    assert shielded((guard(loop),)) == (guard(FENCE, loop),)
    assert shielded((guard(fixed),)) == (guard(fixed),)
