"""Variables: their types, where paths meet, in loops, in tuples, and by assignment."""

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from fusionq.ir.nodes import (
    Assign,
    Const,
    ItemQuery,
)
from fusionq.ir.types import FLOAT32, FLOAT64, INT64
from tests.unit.frontend.bodies import both, ir_of, kernel_of, refused
from tests.unit.frontend.running import define, run_both, specialised


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
    message = refused("if i > 0:", "    y = x[i]", "else:", "    y = i", "out[i, 0] = y")
    assert "'y' has no single type here: it is float32 (line 4) or int64 (line 6)" in message
    assert "np.float64(…)" in message
    message = refused("y = i", "for k in range(n):", "    y = y * 0.5", "out[i, 0] = y")
    assert "'y' has no single type here: it is int64 (line 3) or float64 (line 5)" in message


def test_a_bool_and_a_number_are_refused_also_where_both_are_constants():
    message = refused("y = 1", "if i > 0:", "    y = True", "out[i, 0] = y")
    assert "'y' has no single type here: it is bool (line 5) or int (line 3)" in message


def test_different_types_that_nobody_reads_are_accepted():
    both(
        "if i > 0:", "    y = x[i]", "    out[i, 0] = y", "else:", "    y = i", "    out[i, 1] = y"
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int32"])
@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("1000", {"uint32", "int32"}),
        ("-1", {"int8", "int32"}),
        ("n - 300", set()),
        ("2**31", {"uint32"}),
    ],
)
def test_a_python_int_that_may_not_fit_the_other_paths_type(dtype, value, fits):
    """Both are int64 then, in plain Python a NumPy scalar and an int."""
    choice = [f"out[i, 1] = x[i] if i > 1 else {value}"]
    function = kernel_of(f"y = {value}", "if i > 1:", "    y = x[i]", "out[i, 0] = y", *choice)
    x = np.arange(4).astype(dtype)
    ir = specialised(function, 4, x, np.zeros((4, 4)), 1)
    held = {t.name for name, t in ir.variables if name.startswith("y")}
    assert ("int64" in held) == (dtype not in fits)
    assert bool(ir.notes) == (dtype not in fits)
    run_both(function, 4, x, np.zeros((4, 4)), 1)


ACCUMULATIONS = {
    "sum": ["for k in range(9):", "    y += x[k % 4]"],
    "under a condition": ["for k in range(9):", "    if x[k % 4] > 60:", "        y += x[k % 4]"],
    "greatest": ["for k in range(4):", "    if x[k] > y:", "        y = x[k]"],
    "max": ["for k in range(4):", "    y = max(y, x[k])"],
    "choice": ["for k in range(4):", "    y = x[k] if x[k] > y else y"],
    "nested": ["for k in range(3):", "    for m in range(4):", "        y += x[m] * x[k]"],
    "in the inner loop": ["for k in range(3):", "    for m in range(n):", "        if m > k:",
                          "            y = y * 3 + x[k]"],
    "while": ["while y < 60:", "    y = y + x[0] if n < 9 else x[1]"],
    "left": ["for k in range(9):", "    if k > 6:", "        break", "    if k == 4:",
             "        continue", "    y += x[k % 4]"],
    "one at a time": ["for k in range(9):", "    if x[k % 4] > 60:", "        y += 1",
                      "    else:", "        y += x[k % 4]"],
    "by way of another": ["z = 0", "for k in range(9):", "    z = y + x[k % 4]", "    y = z"],
    "pair": ["t = (0, 1)", "for k in range(9):", "    t = (t[1], t[0] + x[k % 4])", "y = t[0]"],
}  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int32", "int64", "uint64"])
@pytest.mark.parametrize("lines", ACCUMULATIONS.values(), ids=ACCUMULATIONS)
def test_what_a_loop_adds_to_a_literal_has_the_type_of_what_it_adds(dtype, lines):
    """So that it wraps as in plain Python, where the first sum is a NumPy scalar."""
    function = kernel_of("y = 0", *lines, "out[i, 0] = y")
    x = np.array([50, 70, 100, 120]).astype(dtype)
    ir = specialised(function, 4, x, np.zeros((4, 4)), 4)
    held = {t.name for name, t in ir.variables if name[0] in "yt"}
    assert held - {"bool"} == {dtype}
    assert not ir.notes
    run_both(function, 4, x, np.zeros((4, 4)), 4)


@pytest.mark.parametrize(
    "lines",
    [
        ["c = 0", "for k in range(300):", "    c += 1", "    y = min(c + 200, x[3])",
         "    if x[k % 4] > 60:", "        y = c", "out[i, 0] = y"],
        ["c = n - 300", "for k in range(3):", "    if x[k] > 60:", "        c = x[k]",
         "    out[i, k] = c"],
        ["c = 0", "for k in range(3):", "    for m in range(99):", "        c += 1",
         "    d = x[3] if x[k] > 100 else c", "    out[i, k] = d"],
        ["c = 0", "while c < 290:", "    c += 7", "out[i, 0] = max(c, x[0])"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_python_int_of_a_loop_that_may_not_fit_what_it_meets(dtype, lines):
    """Which makes it no value of that type in the loop."""
    function = kernel_of(*lines)
    x = np.array([50, 70, 100, 120]).astype(dtype)
    ir = specialised(function, 4, x, np.zeros((4, 4)), 1)
    assert ir.notes or "max" in lines[-1]
    run_both(function, 4, x, np.zeros((4, 4)), 1)


def test_a_loops_variable_that_fits_the_other_paths_type():
    function = kernel_of("y = x[i]", "for k in range(100):", "    y = k", "out[i, 0] = y")
    for dtype in ("int8", "uint8", "uint64"):
        ir = specialised(function, 4, np.zeros(4, dtype), np.zeros((4, 4)), 1)
        assert dict(ir.variables)["y"].name == dtype


def test_a_python_int_that_may_not_fit_uint64():
    function = kernel_of("y = -1", "if i > 0:", "    y = x[i]", "out[i, 0] = y")
    with pytest.raises(KernelLanguageError, match=r"'y' has no single type here[\s\S]*np\.int64"):
        specialised(function, 4, np.zeros(4, "uint64"), np.zeros((4, 4)), 1)


@pytest.mark.parametrize(
    ("one", "other", "wider"),
    [
        ("np.int32(i)", "i", "int64"),
        ("np.int8(i)", "np.uint8(n)", "int16"),
        ("x[i]", "np.float64(1)", "float64"),
        ("x[i]", "np.int32(n)", "float64"),
        ("np.int32(n)", "0.5", "float64"),
    ],
)
def test_paths_that_meet_with_types_of_which_one_holds_both(one, other, wider):
    branches = [f"if i > 1:\n        y = {one}", f"else:\n        y = {other}", "out[i, 0] = y"]
    ir = ir_of(*branches)
    assert wider in {t.name for name, t in ir.variables if name.startswith("y")}
    assert any(f" is {wider}, also where it is assigned" in note for note in ir.notes)
    both(*branches)
    loop = [f"y = {one}", "for k in range(n):", f"    y = {other}", "out[i, 0] = y"]
    both(*loop)
    both(f"y = {one} if i > 1 else {other}", "out[i, 0] = y")


@pytest.mark.parametrize(
    "lines",
    [
        # where the condition holds under which the name was bound
        ["if i < n:", "    y = x[i]", "if i < n:", "    out[i, 0] = y"],
        ["if i < n and i > 0:", "    y = x[i]", "if i < n:", "    if i > 0:",
         "        out[i, 0] = y"],
        ["if i < n:", "    pass", "else:", "    y = 2", "if not i < n:", "    out[i, 0] = y"],
        ["if i < n:", "    y = x[i]", "if i >= n:", "    return", "out[i, 0] = y"],
        ["c = i < n", "if c:", "    y = x[i]", "if c:", "    y += 1", "if c:", "    out[i, 0] = y"],
        ["if i < n:", "    y = x[i]", "for k in range(n):", "    if i < n:",
         "        out[i, k] = y"],
        ["c = i < n", "if c:", "    y = x[i]", "    z = i", "d = c and (z > 0 or y > 1)",
         "out[i, 0] = y if c and not d else 3", "out[i, 1] = not c or y < 2 and z < 1"],
        ["c = i < n", "if c:", "    y = x[i]", "d = c and y > 2", "if d:", "    out[i, 0] = y",
         "e = not c or y < 2", "if not e:", "    out[i, 1] = y"],
        # after a loop that certainly runs
        ["for k in range(3):", "    y = x[i] + k", "out[i, 0] = y", "out[i, 1] = k"],
        ["for k in range(5, 0, -2):", "    if i < k:", "        y = k", "        continue",
         "    y = x[i]", "out[i, 0] = y", "out[i, 1] = k"],
        ["for k in range(4):", "    y = x[i] + k", "    if k == i:", "        break",
         "out[i, 0] = y"],
        ["for k in range(4):", "    y = k", "    break", "out[i, 0] = y"],
        ["k = -1", "for k in range(4):", "    y = k", "    if k == i:", "        break",
         "out[i, 0] = y + k"],
    ],
)  # fmt: skip
def test_names_that_are_certainly_assigned_where_they_are_read(lines):
    both(*lines, n=2)


def test_a_loop_variable_after_a_break():
    both("for k in range(3):", "    if x[k] > i:", "        break", "out[i, 0] = k")
    message = refused("for k in range(int(x[0])):", "    break", "out[i, 0] = k")
    assert "'k' cannot be read after its loop, which a break may leave (line 3)" in message


@pytest.mark.parametrize(
    "lines",
    [
        ["if i < n:", "    y = x[i]", "if i <= n:", "    out[i, 0] = y"],
        ["if i < n:", "    y = x[i]", "if i < n or i > 2:", "    out[i, 0] = y"],
        ["c = i < n", "if c:", "    y = x[i]", "c = i > n", "if c:", "    out[i, 0] = y"],
        ["if x[i] > 0:", "    y = 1", "x[i] = 1", "if x[i] > 0:", "    out[i, 0] = y"],
        ["c = i < 1", "if c:", "    y = x[i]", "for k in range(n):", "    if c:",
         "        out[i, 0] = y", "    c = k > 0"],
        ["if i < n:", "    y = 1", "for k in range(n):", "    if i < n:", "        out[i, 0] = y",
         "    if k > 0:", "        y = 2.5"],
        ["for k in range(3):", "    if i > k:", "        y = k", "out[i, 0] = y"],
        ["for k in range(3):", "    if i > k:", "        break", "    y = k", "out[i, 0] = y"],
        ["for k in range(0):", "    y = k", "out[i, 0] = y"],
        ["c = i < n", "if c and x[i] > 1:", "    y = 2", "if c:", "    out[i, 0] = y"],
        ["c = i < n", "if c:", "    y = 2", "d = c or i > 2", "if d:", "    out[i, 0] = y"],
        ["c = i < n", "if c:", "    y = 2", "d = c and i > 1", "c = i > 1", "if d:",
         "    pass", "if c:", "    out[i, 0] = y"],
        ["c = i < n", "d = c and i > 1", "c = i > 0", "if c:", "    y = 2", "if d:",
         "    out[i, 0] = y"],
    ],
)  # fmt: skip
def test_names_that_another_condition_binds(lines):
    assert "'y' may not be assigned here" in refused(*lines)


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
