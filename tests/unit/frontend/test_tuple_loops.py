"""Loops over tuples: their bodies are repeated, and what jumps leave out is under conditions."""

import numpy as np
import pytest

from fusionq.ir.nodes import Break, Continue, For, If, While
from fusionq.ir.walk import statements
from tests.unit.frontend.bodies import X, both, ir_of
from tests.unit.frontend.running import define, run_both

JUMPS = {
    "nothing": [],
    "continue first": ["if x[i] > k:", "    continue"],
    "break first": ["if x[i] < k:", "    break"],
    "continue or break": ["if x[i] > k:", "    continue", "elif i == k:", "    break"],
    "break or continue": ["if x[i] > k:", "    t = t + 7", "    break", "else:", "    t = t - 1",
                          "    continue"],
    "deeper": ["if i != k:", "    t = t * 2", "    if x[i] > 0:", "        t = t + 1",
               "        continue", "    t = t - 5", "    if t > 9:", "        break",
               "    t = t + 3"],
    "return": ["if i == k:", "    return", "if x[i] > k:", "    continue"],
    "always": ["t = t + k", "break"],
    "in a loop": ["for j in range(4):", "    if j > i:", "        break", "    if j == k:",
                  "        continue", "    t = t + j", "if t > 20:", "    break"],
}  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("outer", ["for o in (0, 3):", "for o in range(2):", "while t < 40:"])
@pytest.mark.parametrize("items", ["(2,)", "(1, 0, 3)", "(i, n, 2, -1)"])
@pytest.mark.parametrize("jumps", JUMPS)
def test_jumps_in_a_loop_over_a_tuple(jumps, items, outer):
    lines = JUMPS[jumps]
    loop = ["t = 1", f"for k in {items}:", *(f"    {line}" for line in lines), "    t = t * 3 + k"]
    end = ["out[i, 0] = t", "out[i, 1] = k"]
    both(*loop, *end)
    turn = ["    m = t", "    t = t + i + 5", *(f"    {line}" for line in loop[1:])]
    if jumps != "return":
        turn.append("    t = max(t, m + 1)")
    both("t = 1", outer, *turn, "    if t > 60:", "        break", *end[:1])


@pytest.mark.parametrize("jumps", JUMPS)
def test_jumps_in_a_function(jumps):
    """Whose returns leave the loop too."""
    lines = [line.replace("return", "return 17 + k") for line in JUMPS[jumps]]
    body = "".join(f"        {line}\n" for line in [*lines, "t = t * 3 + k"])
    made = define(
        f"def f(x, i, t):\n    for k in (2, 0, 1):\n{body}    return t\n"
        "def k(item, x, out):\n    i = item.get_id(0)\n    out[i] = f(x, i, 1) * 100 + f(x, 2, 4)\n"
    )
    run_both(made, 4, X, np.zeros(4))


def test_without_jumps_there_is_nothing_but_the_body():
    ir = ir_of("for k in (0, 1, 2):", "    out[i, k] = x[k]")
    assert not [s for s in statements(ir.body) if isinstance(s, (For, While, If))]


def test_jumps_become_conditions():
    """No loop is left, and no variable that remembers a ``continue`` that ends its branch."""
    body = ["    if i + k < 0:", "        continue", "    out[i, 0] += k"]
    ir = ir_of("for k in (-1, 0, 1):", *body)
    found = list(statements(ir.body))
    assert not [s for s in found if isinstance(s, (For, While, Break, Continue))]
    assert [name for name, _ in ir.variables] == ["i"]


def test_what_the_loop_leaves_in_its_variables():
    both("for k in (3, 1, 2):", "    last = k", "    if x[i] > k:", "        break",
         "out[i, 0] = last * 10 + k")  # fmt: skip
    both("t = 0", "for k in (1, 2):", "    if i > k:", "        continue", "    t = t + 0.5 * k",
         "out[i, 0] = t")  # fmt: skip
