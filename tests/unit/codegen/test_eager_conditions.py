"""Which conditions are computed whole, without a branch before their right operands."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.eager_conditions import MOST_NODES, is_eager
from fusionq.codegen.interior import Interior, interior_of
from fusionq.codegen.scoping import read_unassigned
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    Extent,
    If,
    ItemQuery,
    Load,
    Logical,
    Var,
)
from fusionq.ir.types import BOOL, FLOAT32, INT32, INT64
from fusionq.ir.walk import expressions, subexpressions
from tests.unit.lists import submission

A = np.zeros((9, 4096), np.uint8)
TABLE = (0, 1, 0)
X, Y = Var(FLOAT32, "x"), Var(FLOAT32, "y")
ABOVE = Compare("gt", X, Y)
NONE: frozenset[str] = frozenset()


def test_comparisons_of_numbers() -> None:
    assert is_eager(Logical("and", ABOVE, ABOVE), NONE)
    assert is_eager(Logical("or", Logical("and", ABOVE, ABOVE), ABOVE), NONE)
    k = Var(INT32, "k")
    assert is_eager(Logical("and", Compare("lt", k, k), ABOVE), NONE)


@pytest.mark.parametrize(
    "right",
    [
        Compare("gt", Load(FLOAT32, "a", (Const(INT64, 1),)), X),
        Compare("gt", Binary(FLOAT32, "truediv", X, Y), X),
        Compare("gt", Call(FLOAT32, "exp", (X,)), X),
        Compare("lt", Var(INT64, "i"), Var(INT64, "n")),
    ],
)
def test_what_stays_behind_its_branch(right: Expr) -> None:
    """A load, which may be outside; what takes long; and bounds of ids."""
    assert not is_eager(Logical("and", ABOVE, right), NONE)


def test_long_operands_stay_behind_their_branch() -> None:
    long: Expr = X
    for _ in range(MOST_NODES):
        long = Binary(FLOAT32, "add", long, Y)
    assert not is_eager(Logical("and", ABOVE, Compare("gt", long, X)), NONE)


@fq.kernel
def neighbours(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    c = a[i, j]
    b[i, j] = 1 if c > 3 and a[i, j - 1] < c and a[i + 1, j + 2] < c else 0


@fq.kernel
def nested(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if a[i, j] > 3 and a[i, j + 1] < 3:
        b[i, j] = 1


@fq.kernel
def of_ids(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if j % 4 == 1 and a[i, j + 1] < 3:
        b[i, j] = 1


@fq.kernel
def of_a_table(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if TABLE[j % 3] == 1 and a[i, j + 1] < 3:
        b[i, j] = 1


@fq.kernel
def by_memory(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if a[i, j] > 3 and a[i, int(a[i, j])] < 3:
        b[i, j] = 1


def interior(kernel, eager: bool = True) -> Interior | None:
    ir = submission(kernel, (9, 4096), A, A.copy()).ir
    return interior_of(ir, eager=eager)


def behind_branches(found: Interior) -> list[Expr]:
    """The loads in right operands of conditions with short circuits."""
    logical = (e for e in expressions(found.body) if isinstance(e, Logical))
    return [e for each in logical for e in subexpressions(each.rhs) if isinstance(e, Load)]


@pytest.mark.parametrize("kernel", [neighbours, nested])
def test_loads_inside_of_rows_have_no_branch(kernel) -> None:
    found = interior(kernel)
    assert found is not None
    assert found.highs
    assert not behind_branches(found)
    assert any(isinstance(e, Binary) and e.type == BOOL for e in expressions(found.body))
    assert not found.decided, "the kernel has no conditions on ids"


def test_the_interior_is_where_all_loads_are_inside() -> None:
    """Of the other dimension, too: of the last row nothing is."""
    found = interior(neighbours)
    assert found is not None
    assert Const(INT64, 1) in found.lows
    last = Binary(INT64, "add", ItemQuery("global_id", 0), Const(INT64, 1))
    assert Compare("lt", last, Extent("a", 0)) in found.where


@pytest.mark.parametrize("kernel", [of_ids, of_a_table, by_memory])
def test_loads_that_may_not_be_made(kernel) -> None:
    """Ids and tables say of which elements analysis knows that they are read, and memory which:
    tiles have no others."""
    assert interior(kernel) is None


def test_languages_with_predicates_have_their_branches() -> None:
    assert interior(nested, eager=False) is None


def test_a_variable_that_the_left_operand_may_leave_unassigned() -> None:
    """``x`` has a value where ``inside`` holds only."""
    inside, x = Var(BOOL, "inside"), Var(FLOAT32, "x")
    cond = Logical("and", inside, Compare("gt", x, Const(FLOAT32, np.float32(2))))
    first = Assign("inside", Compare("gt", Y, Const(FLOAT32, np.float32(0))))
    guarded = (first, If(inside, (Assign("x", Y),), ()), If(cond, (), ()))
    everywhere = (first, Assign("x", Y), If(cond, (), ()))
    assert read_unassigned([guarded]) == {"x"} and read_unassigned([everywhere]) == NONE
    assert not is_eager(cond, read_unassigned([guarded]))
    assert is_eager(cond, read_unassigned([everywhere]))


@fq.kernel
def squares_of_some(item: fq.Item, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    inside = a[i] > 1
    if inside:
        x = a[i] * a[i]
    if inside and x > 20:
        out[i] = x


def test_the_source_keeps_its_branch_there() -> None:
    with fq.FusionQueue() as queue, fq.fusion(queue) as f:
        queue.submit(squares_of_some, 99, np.ones(99, np.float32), fq.Buffer(99, np.float32))
    assert "inside && x > 20.0f" in f.report.device_source
