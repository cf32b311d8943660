"""Guards keep barriers outside."""

from __future__ import annotations

from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Block,
    Compare,
    Const,
    For,
    GroupCall,
    If,
    ItemQuery,
    Load,
    Param,
    Store,
    Var,
    While,
)
from fusionq.ir.printer import print_body
from fusionq.ir.types import BOOL, FLOAT32, INT64
from fusionq.passes.guard import guarded, unguardable

ID = ItemQuery("global_id", 0)
INSIDE = Compare("lt", ID, Param(INT64, "n"))
STORE = Store("out", (ID,), Const(FLOAT32, 1.0))


def const(value):
    return Const(INT64, value)


def loop(*body, stop=None):
    return For("k", const(0), stop or Param(INT64, "m"), const(1), body)


def test_statements_without_barriers_share_one_guard():
    assert guarded((STORE, STORE), INSIDE) == (If(INSIDE, (STORE, STORE)),)


def test_barriers_split_the_guard():
    assert guarded((STORE, Barrier(), STORE), INSIDE) == (
        If(INSIDE, (STORE,)),
        Barrier(),
        If(INSIDE, (STORE,)),
    )


def test_guards_go_into_loops_and_blocks_around_barriers():
    body = (Block("0: k", (loop(STORE, Barrier()), STORE)),)
    assert print_body(guarded(body, INSIDE)).splitlines() == [
        "# 0: k",
        "for k in range(m):",
        "    if item.get_id(0) < n:",
        "        out[item.get_id(0)] = 1.0",
        "    group_barrier(item.get_group())",
        "if item.get_id(0) < n:",
        "    out[item.get_id(0)] = 1.0",
    ]


def test_loops_without_barriers_are_guarded_whole():
    body = (loop(STORE),)
    assert guarded(body, INSIDE) == (If(INSIDE, body),)


def test_what_cannot_leave_a_guard():
    assert unguardable((STORE, Barrier())) is None
    assert unguardable((loop(Barrier()),)) is None
    assert "fixed number" in unguardable((While(Const(BOOL, True), (Barrier(),)),))
    call = GroupCall("reduce", "add", Const(FLOAT32, 1.0), None, "r")
    assert "group function" in unguardable((call,))
    by_data = Load(INT64, "a", (const(0),))
    assert "differ between work-items" in unguardable((loop(Barrier(), stop=by_data),))
    by_id = Compare("lt", ItemQuery("local_id", 0), const(3))
    assert "differ between work-items" in unguardable((If(by_id, (Barrier(),)),))
    by_variable = Compare("lt", Var(INT64, "x"), const(3))
    assert "differ" in unguardable((Block("b", (If(by_variable, (Barrier(),)),)),))
    assert unguardable((loop(STORE, stop=by_data), Assign("x", const(1)))) is None
    assert "differ between work-items" in unguardable((If(INSIDE, (Barrier(),)),))
    uniform = Compare("lt", Param(INT64, "m"), const(3))
    for branches in (((call,), ()), ((STORE,), (Barrier(), call))):
        assert "group function" in unguardable((If(uniform, *branches),))


def test_guards_go_into_both_branches_around_barriers():
    uniform = Compare("lt", Param(INT64, "m"), const(3))
    body = (If(uniform, (STORE, Barrier()), (Barrier(), STORE)), STORE)
    assert guarded(body, INSIDE) == (
        If(uniform, (If(INSIDE, (STORE,)), Barrier()), (Barrier(), If(INSIDE, (STORE,)))),
        If(INSIDE, (STORE,)),
    )
