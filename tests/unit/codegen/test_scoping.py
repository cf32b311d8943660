"""Where variables are declared."""

from __future__ import annotations

import re

from fusionq.codegen.kernel_source import generate
from fusionq.codegen.opencl import OPENCL_C
from fusionq.ir.nodes import Assign, Compare, For, If, Kernel, Store, Var, While
from fusionq.ir.types import FLOAT32, INT64
from tests.unit.codegen.built_kernels import IDS, ITEM, N, add, arrays, const, less, load
from tests.unit.targets import TWO_CORES

X, Y = Var(FLOAT32, "x"), Var(FLOAT32, "y")
TIMES = (const(0), N, const(1))


def source(*body, variables=("x", "y")):
    """The lines of a kernel's body, after ``i`` has been declared."""
    from fusionq.ir.nodes import ScalarParam

    params = (*arrays(["a", "out"]), ScalarParam("n", INT64))
    types = (("i", INT64), *((name, FLOAT32) for name in variables))
    kernel = Kernel("k", 1, params, types, (IDS[0], *body))
    text = generate(kernel, "strict", TWO_CORES, OPENCL_C).text
    return text.split(re.search(r"i = .*;\n", text)[0])[1].splitlines()


def declarations(lines):
    return [line for line in lines if re.match(r" *(const )?float \w+( =|;)", line)]


def assign(name, value):
    return Assign(name, value)


def test_declared_with_its_only_assignment():
    lines = source(assign("x", load("a", ITEM)), Store("out", (ITEM,), X))
    assert lines[:2] == ["    const float x = a[i];", "    out[i] = x;"]


def test_not_const_when_assigned_again():
    lines = source(assign("x", load("a", ITEM)), assign("x", add(X, X)), Store("out", (ITEM,), X))
    assert lines[:2] == ["    float x = a[i];", "    x = x + x;"]


def test_each_branch_has_its_own():
    branch = (assign("x", load("a", ITEM)), Store("out", (ITEM,), X))
    lines = source(If(less(ITEM, N), branch, branch))
    assert declarations(lines) == ["        const float x = a[i];"] * 2


def test_branches_that_assign_for_what_follows():
    lines = source(
        If(less(ITEM, N), (assign("x", load("a", ITEM)),), (assign("x", const(1.0, FLOAT32)),)),
        Store("out", (ITEM,), X),
    )
    assert lines[0] == "    float x;"
    assert declarations(lines) == ["    float x;"]


def test_assigned_first_in_the_loop_stays_inside():
    lines = source(For("k", *TIMES, (assign("x", load("a", ITEM)), Store("out", (ITEM,), X))))
    assert declarations(lines) == ["        const float x = a[i];"]


def test_carried_between_iterations_stays_outside():
    carried = If(
        Compare("eq", Var(INT64, "k"), const(0)),
        (assign("x", load("a", ITEM)),),
        (assign("y", X), Store("out", (ITEM,), Y)),
    )
    lines = source(For("k", *TIMES, (carried,)))
    assert lines[0] == "    float x;"
    assert declarations(lines) == ["    float x;", "            const float y = x;"]


def test_used_in_the_condition_of_its_loop():
    loop = While(Compare("lt", X, const(5.0, FLOAT32)), (assign("x", add(X, X)),))
    lines = source(assign("x", load("a", ITEM)), loop, Store("out", (ITEM,), X))
    assert declarations(lines) == ["    float x = a[i];"]


def test_assigned_in_a_nested_loop_and_read_after_it():
    inner = For("m", *TIMES, (assign("x", add(X, load("a", Var(INT64, "m")))),))
    outer = For("k", *TIMES, (assign("x", const(0.0, FLOAT32)), inner, Store("out", (ITEM,), X)))
    assert declarations(source(outer)) == ["        float x = 0.0f;"]
