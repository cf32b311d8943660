"""Which condition around a kernel's body keeps out the work-items beyond its range."""

from __future__ import annotations

import pytest

from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Compare,
    Const,
    Expr,
    If,
    ItemQuery,
    Load,
    Logical,
    Param,
    Stmt,
    Var,
)
from fusionq.ir.range_guard import range_guard
from fusionq.ir.types import INT32, INT64

N, M = Param(INT64, "n"), Param(INT64, "m")
WORK = Assign("x", Const(INT64, 1))


def below(dim: int, limit: Expr) -> Compare:
    return Compare("lt", ItemQuery("global_id", dim), limit)


def test_one_dimension() -> None:
    guard = If(below(0, N), (WORK,))
    found = range_guard((guard,))
    assert found is not None
    assert found.guard is guard
    assert found.before == ()
    assert found.limits == {0: N}


def test_two_dimensions_and_ids_in_variables() -> None:
    ids = (Assign("i", ItemQuery("global_id", 0)), Assign("j", ItemQuery("global_id", 1)))
    inside = Compare("lt", Var(INT64, "j"), M)
    found = range_guard((*ids, If(Logical("and", below(0, N), inside), (WORK,))))
    assert found is not None
    assert found.before == ids
    assert found.limits == {0: N, 1: M}


@pytest.mark.parametrize(
    "body",
    [
        (),
        (WORK,),
        (If(below(0, N), (WORK,)), WORK),
        (WORK, If(below(0, N), (WORK,))),
        (If(below(0, N), (WORK,), (WORK,)),),
        (If(Compare("le", ItemQuery("global_id", 0), N), (WORK,)),),
        (If(Compare("lt", ItemQuery("local_id", 0), N), (WORK,)),),
        (If(Compare("lt", Var(INT64, "x"), N), (WORK,)),),
        (If(Logical("or", below(0, N), below(1, M)), (WORK,)),),
        (If(Logical("and", below(0, N), below(0, M)), (WORK,)),),
        (If(below(0, N), (Barrier(),)),),
        (If(below(0, Load(INT64, "a", (Const(INT64, 0),))), (WORK,)),),
        (If(below(0, Param(INT32, "n")), (WORK,)),),
    ],
)
def test_what_is_no_guard_of_everything(body: tuple[Stmt, ...]) -> None:
    assert range_guard(body) is None
