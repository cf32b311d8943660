"""Branches, loops, jumps, early returns, and what variables hold where paths meet."""

import math

import numpy as np
import pytest

from fusionq.errors import KernelLanguageError
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Break,
    Compare,
    Const,
    Continue,
    For,
    If,
    ItemQuery,
    Logical,
    Param,
    Store,
    Unary,
    Var,
    While,
)
from fusionq.ir.types import BOOL, FLOAT32, FLOAT64, INT64
from fusionq.ir.walk import statements
from tests.unit.frontend.running import define, run_both, specialised


def kernel_of(*lines, parameters="x, out, n"):
    """A kernel over ``x`` and ``out`` with ``i = item.get_id(0)`` before the given lines."""
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    return define(f"def k(item, {parameters}):\n{body}", math=math)


X = np.array([0.5, -1.5, 2.5, 3.0, -0.25, 8.0, 1.0, -7.5], "float32")


def both(*lines, n=3, dtype="float64"):
    """Run both ways over ``X``; the output array."""
    return run_both(kernel_of(*lines), 4, X, np.zeros((4, 4), dtype), n)[1]


def ir_of(*lines, n=3):
    return specialised(kernel_of(*lines), 4, X, np.zeros((4, 4), "float64"), n)


def refused(*lines):
    with pytest.raises(KernelLanguageError) as error:
        ir_of(*lines)
    return str(error.value)


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


def test_a_loop_variable_is_not_assigned_after_a_loop_that_may_not_run():
    message = refused("for k in range(n):", "    out[i, 0] = k", "out[i, 1] = k")
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
    loop = ir_of("k = 0", "while k < n:", "    k += 1").body[2]
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


# ------------------------------------------------------------------------ variables
def test_a_loop_carries_the_type_of_its_body():
    ir = ir_of("s = 0.0", "for k in range(n):", "    s += x[k]", "out[i, 0] = s")
    assert dict(ir.variables) == {"i": INT64, "s": FLOAT32}
    assert ir.body[1] == Assign("s", Const(FLOAT32, 0.0))
    assert ir.body[1].span.line == 3
    both("s = 0.1", "for k in range(n):", "    s = s * x[k]", "out[i, 0] = s", n=0, dtype="float32")


def test_an_int_that_becomes_a_float_in_a_loop():
    ir = ir_of("s = 0", "for k in range(n):", "    s += x[k] / 2", "out[i, 0] = s")
    assert dict(ir.variables)["s"] == FLOAT32
    ir = ir_of("s = 0", "for k in range(n):", "    s = s + 0.5", "out[i, 0] = s * x[i]")
    assert dict(ir.variables)["s"] == FLOAT64
    assert ir.body[-1].value.operand.type == FLOAT32  # still weak


def test_types_that_pass_through_several_variables():
    ir = ir_of(
        "a = 0", "b = 0", "for k in range(n):", "    a = b", "    b = b + x[k]", "out[i, 0] = a"
    )
    assert dict(ir.variables)["a"] == dict(ir.variables)["b"] == FLOAT32


def test_a_break_hands_over_a_type():
    lines = ["best = -1", "for k in range(8):", "    if x[k] > i:", "        best = x[k]",
             "        break", "out[i, 0] = best"]  # fmt: skip
    assert dict(ir_of(*lines).variables)["best"] == FLOAT32
    both(*lines)


def test_a_new_type_starts_a_new_variable():
    ir = ir_of("t = x[i]", "t = np.float64(t) + 1", "t = i", "out[i, 0] = t")
    assert [(n, t) for n, t in ir.variables if n.startswith("t")] == [
        ("t", FLOAT32), ("t_1", FLOAT64), ("t_2", INT64),
    ]  # fmt: skip
    both("t = x[i]", "out[i, 0] = t", "t = np.float64(t) * 0.1", "t = t * 3", "out[i, 1] = t")


def test_paths_that_meet_with_a_weak_and_a_strong_type():
    ir = ir_of("y = x[i]", "if y > 0:", "    y = 1", "out[i, 0] = y")
    assert dict(ir.variables)["y"] == FLOAT32
    both("y = x[i]", "if y > 0:", "    y = 1", "out[i, 0] = y")


def test_paths_that_meet_with_different_types_are_refused():
    message = refused(
        "if i > 0:", "    y = x[i]", "else:", "    y = np.float64(1)", "out[i, 0] = y"
    )
    assert "'y' has no single type here: it is float32 (line 4) or float64 (line 6)" in message
    assert "np.float32(…)" in message
    message = refused("y = i", "for k in range(n):", "    y = y * 0.5", "out[i, 0] = y")
    assert "'y' has no single type here: it is int64 (line 3) or float64 (line 5)" in message


def test_different_types_that_nobody_reads_are_accepted():
    both(
        "if i > 0:", "    y = x[i]", "    out[i, 0] = y", "else:", "    y = i", "    out[i, 1] = y"
    )


def test_a_literal_that_does_not_fit_the_other_paths_type():
    function = kernel_of("y = 1000", "if i > 0:", "    y = x[i]", "out[i, 0] = y")
    with pytest.raises(KernelLanguageError, match="'y' has no single type here"):
        specialised(function, 4, np.zeros(4, "int8"), np.zeros((4, 4)), 1)


@pytest.mark.parametrize(
    "lines",
    [
        ["out[i, 0] = y", "y = 1"],
        ["if i > 0:", "    y = 1", "out[i, 0] = y"],
        ["while i > n:", "    y = 1", "    break", "out[i, 0] = y"],
        ["y += 1"],
        ["for k in range(n):", "    if k > 0:", "        out[i, 0] = y", "    y = k"],
    ],
)
def test_names_that_may_not_be_assigned(lines):
    message = refused(*lines)
    assert "'y' is read before it is assigned" in message or "'y' may not be assigned" in message


def test_names_assigned_on_all_paths():
    both("if i > 1:", "    y = 1", "else:", "    y = 2.5", "out[i, 0] = y")
    both("if i > 1:", "    return", "else:", "    y = 2.5", "out[i, 0] = y")


def test_tuples():
    both(
        "a, b = i, x[i]", "a, b = b, a", "out[b, 0] = a",
        "t = (a, b, 3)", "a = a + 1", "out[i, 1] = t[0] + t[-1] + len(t)",
        "t = (t[1], t[0], t[2])", "out[i, 2] = t[0] + 2 * t[1]",
        "(p, q), r = (1, a), 2", "out[i, 3] = p + q + r",
    )  # fmt: skip
    ir = ir_of("a, b = item.get_id(0), item.get_range(0)", "out[a, 0] = b")
    assert ir.body[1:3] == (
        Assign("a", ItemQuery("global_id", 0)), Assign("b", ItemQuery("global_range", 0)),
    )  # fmt: skip


def test_elements_can_be_swapped():
    function = define(
        "def k(item, a):\n    i = item.get_id(0) * 2\n    a[i], a[i + 1] = a[i + 1], a[i]\n"
    )
    (a,) = run_both(function, 2, np.arange(4.0))
    assert a.tolist() == [1, 0, 3, 2]


def test_tuples_where_paths_meet():
    both(
        "t = (0, 1.5)",
        "for k in range(n):",
        "    t = (t[0] + k, t[1] * x[k])",
        "out[i, 0] = t[0]",
        "out[i, 1] = t[1]",
    )


def test_assignment_to_several_targets():
    both("a = b = out[i, 2] = x[i] + 1", "a += 1", "out[i, 0] = a", "out[i, 1] = b")


def test_annotated_and_augmented_assignments():
    both(
        "s: float = x[i]", "t: int", "t = 3", "s += 1", "s *= t", "s -= 0.5", "s /= 4",
        "s //= 0.25", "s %= 3", "s **= 2", "out[i, 0] = s",
        "t <<= 2", "t |= 3", "t &= 14", "t ^= 5", "t >>= 1", "out[i, 1] = t",
    )  # fmt: skip


def test_augmented_elements_keep_the_arrays_type():
    function = define(
        "def k(item, a):\n    i = item.get_id(0)\n"
        "    a[i] += 0.5\n    a[i] *= 3\n    a[i] -= i\n    a[i] //= 2\n"
    )
    run_both(function, 4, np.array([1, -7, 100, 5], "int32"))
    run_both(function, 4, np.array([1, -7, 100, 5], "float32"))
