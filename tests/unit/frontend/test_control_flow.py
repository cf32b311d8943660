"""Branches, loops, jumps and early returns."""

import numpy as np
import pytest

from fusionq.ir.nodes import (
    Assign,
    Binary,
    Break,
    Compare,
    Const,
    Continue,
    For,
    If,
    Logical,
    Param,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import BOOL, FLOAT32, INT64
from fusionq.ir.walk import statements
from tests.unit.frontend.bodies import X, both, ir_of, refused
from tests.unit.frontend.running import define, run_both


# ------------------------------------------------------------------------- branches
def test_if_elif_else():
    out = both(
        "if x[i] > 2:",
        "    out[i, 0] = 1",
        "elif x[i] > 0:",
        "    out[i, 0] = 2",
        "else:",
        "    out[i, 0] = 3",
    )
    assert out[:, 0].tolist() == [2, 3, 1, 1]
    branch = ir_of("if x[i] > 2:", "    out[i, 0] = 1").body[1]
    assert isinstance(branch, If) and isinstance(branch.cond, Compare) and branch.orelse == ()
    assert branch.span.text == "if x[i] > 2:"


def test_a_constant_condition_chooses_at_compile_time():
    ir = ir_of("if 1 < 2:", "    out[i, 0] = 1", "else:", "    out[i, 0] = nonsense")
    assert [type(s) for s in ir.body] == [Assign, Store]
    ir = ir_of("if 0:", "    out[i, 0] = 1")
    assert len(ir.body) == 1


def test_conditional_expressions_evaluate_one_side():
    both("out[i, 0] = x[i] if x[i] > 0 else -x[i]", "out[i, 1] = 0.5 if x[i] > 1 else x[i + 4]")
    out = both("out[i, 0] = x[i + n] if i + n < 4 else -1", n=2)
    assert out[:, 0].tolist() == [2.5, 3.0, -1, -1]


def test_chained_comparisons_evaluate_the_middle_once():
    both("out[i, 0] = 0 < x[i] < x[i + 1] < 9", "out[i, 1] = i < 2 and 0 < x[i] * 2 <= 5 != n")
    ir = ir_of("out[i, 0] = 0 < x[i] * 2 < 9")
    middle, store = ir.body[1:]
    assert isinstance(middle, Assign) and isinstance(middle.value, Binary)
    assert store.value.operand == Logical(
        "and",
        Compare("lt", Const(FLOAT32, 0.0), Var(FLOAT32, middle.name)),
        Compare("lt", Var(FLOAT32, middle.name), Const(FLOAT32, 9.0)),
    )


def test_and_or_are_lazy():
    both(
        "if i < 2 and x[i] > 0 or x[i] < -1:", "    out[i, 0] = 1",
        "if not (i > 1 and x[i + 4] > 0):", "    out[i, 1] = 2",
        "if x[i] and n:", "    out[i, 2] = 3",
    )  # fmt: skip
    ir = ir_of("if i < n and x[i] > 0:", "    out[i, 0] = 1")
    assert isinstance(ir.body[1].cond, Logical)


def test_a_constant_operand_of_and_disappears():
    ir = ir_of(
        "if True and i < n:", "    out[i, 0] = 1", "if i < n and False:", "    out[i, 0] = 2"
    )
    assert ir.body[1].cond == Compare("lt", Var(INT64, "i"), Param(INT64, "n"))
    assert len(ir.body) == 2


# ---------------------------------------------------------------------------- loops
@pytest.mark.parametrize(
    "bounds", ["n", "1, n", "n, 0, -1", "0, 7, n", "7, -1, -n", "n, n", "0, 5, 2", "i, n", "x.size"]
)
def test_ranges(bounds):
    both(f"for k in range({bounds}):", "    out[i, 0] += x[k]", "    out[i, 1] += k * (k + 1)")


def test_the_ir_of_a_loop():
    loop = ir_of("for k in range(n):", "    out[i, 0] += k").body[1]
    assert isinstance(loop, For)
    zero, one = Const(INT64, 0), Const(INT64, 1)
    assert (loop.var, loop.start, loop.stop, loop.step) == ("k", zero, Param(INT64, "n"), one)


def test_loops_with_one_name_get_variables_of_their_own():
    ir = ir_of(*["for k in range(n):", "    out[i, 0] += k"] * 2)
    assert [s.var for s in ir.body[1:]] == ["k", "k_1"]


def test_a_loop_variable_is_pythons():
    """Changing it does not change the iteration; it keeps its last value."""
    out = both(
        "k = -5",
        "for k in range(n):",
        "    out[i, 0] += k",
        "    k = k * 10 + 1",
        "out[i, 1] = k",
        "for k in range(0):",
        "    pass",
        "out[i, 2] = k",
    )
    assert out[0].tolist() == [3, 21, 21, 0]


def test_a_loop_over_a_tuple_is_its_body_for_each_item():
    out = both(
        "y = x[i] * 2",
        "for y, k in ((y + 1, 0), (y, 1), (x[i], n)):",
        "    out[i, k] = y",
        "    for d in (-1, 1):",
        "        if i + d < 0:",
        "            pass",
        "        else:",
        "            out[i, 2] += x[i + d] * k + d",
        "for k in range(2):",
        "    for d in (0.5, k):",
        "        out[i, 0] += d",
        "for d in ():",
        "    out[i, 0] = nonsense",
        "for d in (1, 2):",
        "    out[i, 1] += d",
        "    if x[i] < 0:",
        "        return",
        "out[i, 0] += d + k",
    )
    assert out[0].tolist() == [7.0, 4.0, -3.0, 0.5]


def test_loops_over_enumerated_zipped_and_reversed_tuples():
    out = both(
        "for k, d in enumerate((0.5, 1.5)):",
        "    out[i, k] += x[i] * d",
        "for p, (q, r) in zip((1, 2, 3), ((i, 10), (2, 20))):",
        "    out[i, 2] += p * q + r",
        "for k, (p, q) in enumerate(zip((3, 4), reversed((5, 6)))):",
        "    out[i, 3] = 10 * out[i, 3] + k + p * q",
        "for k in zip(()):",
        "    out[i, 0] = nonsense",
    )
    assert out[0][2:].tolist() == [34.0, 201.0]


def test_a_loop_over_the_tuple_that_a_function_returns():
    def ends(n, k):
        return n - k, n

    def k(item, x, out, n):
        i = item.get_id(0)
        for end in ends(n, i):
            out[i, 0] = out[i, 0] * x[i] + end

    run_both(k, 4, X, np.zeros((4, 4)), 7)


def test_a_loop_variable_is_not_assigned_after_a_loop_that_may_not_run():
    message = refused("for k in range(int(x[i])):", "    out[i, 0] = k", "out[i, 1] = k")
    assert "'k' may not be assigned here: only some paths assign it (line 3)" in message
    assert "Assign k on every path" in message


def test_break_and_continue():
    both(
        "total = 0",
        "last = -1",
        "for k in range(8):",
        "    if x[k] < 0:",
        "        continue",
        "    last = k",
        "    if x[k] > 2.7 + i:",
        "        break",
        "    total += 1",
        "out[i, 0] = total",
        "out[i, 1] = last",
    )
    ir = ir_of("for k in range(8):", "    if x[k] < 0:", "        continue", "    break")
    assert [type(s) for s in statements(ir.body)] == [Assign, For, If, Continue, Break]


def test_while():
    both(
        "k = 0",
        "while k < n and x[k] > -1:",
        "    k += 1",
        "out[i, 0] = k",
        "while True:",
        "    k += 2",
        "    if k > 5 + i:",
        "        found = k * 0.5",
        "        break",
        "out[i, 1] = found",
    )
    loop = ir_of("k = 0", "while k < n:", "    k += k + 1").body[2]
    assert isinstance(loop, While)
    assert loop.cond == Compare("lt", Var(INT64, "k"), Param(INT64, "n"))
    assert len(ir_of("while False:", "    nonsense()").body) == 1


def test_nested_loops_with_jumps():
    both(
        "total = 0.0",
        "for k in range(n):",
        "    j = 0",
        "    while j < 5:",
        "        j += 1",
        "        if j == k:",
        "            continue",
        "        if j > 3:",
        "            break",
        "        total += x[j] * k",
        "    if total > 4:",
        "        break",
        "out[i, 0] = total",
    )


def test_loop_bounds_are_evaluated_once():
    both("m = n", "for k in range(m):", "    m = m + 1", "    out[i, 0] += 1", "out[i, 1] = m")


def test_a_condition_that_needs_statements():
    function = define(
        "def positive(v):\n    if v > 1:\n        return True\n    return v == 0.5\n\n"
        "def k(item, x, out, n):\n    i = item.get_id(0)\n    j = i\n"
        "    while j < 8 and positive(x[j]):\n        j += 1\n"
        "        if j == 3:\n            continue\n        out[i, 0] += 1\n    out[i, 1] = j\n"
    )
    run_both(function, 4, X, np.zeros((4, 4)), 3)


# --------------------------------------------------------------------- early returns
def test_an_early_return_becomes_a_condition():
    lines = ["if i >= n:", "    return", "out[i, 0] = 1"]
    both(*lines)
    guard = ir_of(*lines).body[1]
    assert isinstance(guard, If)
    assert guard.cond == Compare("lt", Var(INT64, "i"), Param(INT64, "n"))
    assert [type(s) for s in guard.then] == [Store] and guard.orelse == ()


def test_a_float_condition_is_not_turned_round():
    guard = ir_of("if x[i] > 0:", "    return", "out[i, 0] = 1").body[1]
    assert isinstance(guard.cond, Unary) and guard.cond.op == "not"  # NaN goes on


def test_returns_in_branches_need_no_flag():
    lines = [
        "if x[i] > 0:",
        "    if x[i] > 1:",
        "        out[i, 0] = 1",
        "        return",
        "    else:",
        "        out[i, 0] = 2",
        "else:",
        "    return",
        "out[i, 1] = 3",
    ]
    both(*lines)
    assert all(t != BOOL for _, t in ir_of(*lines).variables)


def test_returns_that_need_a_flag():
    lines = [
        "if x[i] > 0:",
        "    if x[i] > 1:",
        "        return",
        "    out[i, 0] = 2",
        "elif x[i] < -1:",
        "    if n > 2:",
        "        return",
        "    out[i, 0] = 4",
        "out[i, 1] = 3",
    ]
    both(*lines)
    both(*lines, n=1)
    assert ("returned", BOOL) in ir_of(*lines).variables


def test_returns_from_loops():
    lines = [
        "for k in range(n):",
        "    for j in range(k, 8):",
        "        if x[j] > 2.9 - i:",
        "            out[i, 0] = j",
        "            return",
        "        if x[j] < -7:",
        "            break",
        "    out[i, 1] += 1",
        "out[i, 2] = 5",
    ]
    for n in (0, 1, 4, 8):
        both(*lines, n=n)
    both("while True:", "    out[i, 0] += 1", "    if out[i, 0] > i:", "        return")


def test_what_follows_a_return_is_not_compiled():
    assert len(ir_of("return", "nonsense()").body) == 1


def test_a_kernel_returns_nothing():
    assert "a kernel returns nothing" in refused("return i")
    ir_of("return None")
