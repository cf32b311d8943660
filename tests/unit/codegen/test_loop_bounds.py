"""Conditions on ids as bounds of the compiler's loop over work-items; with the same results."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.loop_bounds import is_loop_bound, with_loop_bounds
from fusionq.codegen.opencl.early_exits import FENCE, shielded
from fusionq.codegen.opencl.group_guards import decided_for_groups
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Block,
    Call,
    Cast,
    Compare,
    Const,
    Extent,
    If,
    ItemQuery,
    Load,
    Logical,
    Param,
    Store,
    Unary,
    Var,
)
from fusionq.ir.types import BOOL, FLOAT32, INT32, INT64
from tests.in_turn import one_in

ID, EXTENT = ItemQuery("global_id", 0), Extent("a", 0)
STORE = Store("a", (ID,), Const(FLOAT32, 1.0))
ON_DATA = Load(BOOL, "b", (ID,))


def const(value):
    return Const(INT64, value)


def plus(expr, value):
    return Binary(INT64, "add" if value > 0 else "sub", expr, const(abs(value)))


def cut(limit):
    """Within what ids can be compared with, small constants added."""
    return Call(INT64, "minimum", (Call(INT64, "maximum", (limit, const(-(2**33)))), const(2**61)))


def at_least(limit):
    return Compare("ge", ID, limit)


def below(limit):
    return Compare("lt", ID, limit)


HELD = Param(INT64, "n")
N = cut(HELD)

BOUNDS = [
    (below(HELD), below(N)),
    (at_least(HELD), at_least(N)),
    (Compare("gt", HELD, ID), below(N)),
    (Compare("le", ID, HELD), below(plus(N, 1))),
    (Compare("gt", plus(ID, 2), HELD), at_least(plus(N, -1))),
    (Compare("lt", ID, Binary(INT64, "sub", HELD, const(1))), below(cut(plus(HELD, -1)))),
    (Compare("lt", ID, Cast(INT64, Param(INT32, "n"))), below(cut(Cast(INT64, Param(INT32, "n"))))),
    (Compare("lt", const(0), ID), at_least(const(1))),
    (Compare("le", ID, EXTENT), below(plus(EXTENT, 1))),
    (Compare("lt", plus(ID, 1), EXTENT), below(plus(EXTENT, -1))),
    (Compare("le", plus(ID, 1), plus(EXTENT, -1)), below(plus(EXTENT, -1))),
    (Compare("ge", plus(ID, -2), const(0)), at_least(const(2))),
    (Compare("ne", ID, const(0)), at_least(const(1))),
    (Unary(BOOL, "not", Compare("lt", ID, const(3))), at_least(const(3))),
    (Unary(BOOL, "not", Logical("or", Compare("lt", ID, const(3)), Compare("ge", ID, EXTENT))),
     Logical("and", at_least(const(3)), below(EXTENT))),
    (Compare("eq", ID, const(4)), Logical("and", at_least(const(4)), below(const(5)))),
]  # fmt: skip


@pytest.mark.parametrize(("cond", "bound"), BOUNDS)
def test_conditions_on_one_id_are_its_bounds(cond, bound):
    assert with_loop_bounds((If(cond, (STORE,)),)) == (If(bound, (STORE,)),)
    assert with_loop_bounds((If(bound, (STORE,)),)) == (If(bound, (STORE,)),)
    assert is_loop_bound(If(bound, (STORE,)))


def test_bounds_stand_around_what_they_do_not_need():
    """A condition on data, which is asked later, and variables."""
    label = Block("0: k", ())
    last = Assign("m", plus(EXTENT, -1))
    both = Logical("and", ON_DATA, Compare("lt", ID, Var(INT64, "m")))
    given = label, last, If(both, (STORE,))
    inner = last, If(ON_DATA, (STORE,))
    assert with_loop_bounds(given) == (label, If(below(plus(EXTENT, -1)), inner))


def test_neighbours_under_the_same_bounds_are_one():
    cond = Compare("lt", const(0), ID)
    two = If(cond, (STORE,)), Block("1: k", ()), If(cond, (STORE, STORE))
    assert with_loop_bounds(two) == (
        If(at_least(const(1)), (STORE, Block("1: k", ()), STORE, STORE)),
    )


def test_bounds_inside_of_bounds():
    inner = If(Compare("ne", ID, N), (If(below(EXTENT), (STORE,)),))
    nested = (If(at_least(const(1)), (If(below(N), (inner,)),)),)
    assert with_loop_bounds(nested) == nested
    fenced = If(at_least(const(1)), (If(below(N), (FENCE, inner)),))
    assert shielded(nested) == (fenced,)


def test_neither_fence_nor_groups_stand_before_bounds():
    """The compiler does not look behind them."""
    guard = If(below(HELD), (If(at_least(const(1)), (STORE,)),))
    assert shielded(decided_for_groups((guard,))) == (guard,)


VARIABLE = Var(INT64, "m")
OTHERS = [
    Compare("lt", Binary(INT64, "sub", N, ID), const(3)),  # the id decreases
    Compare("lt", Binary(INT64, "mul", ID, const(2)), N),
    Compare("lt", ID, ID),
    Compare("lt", Binary(INT64, "add", ID, HELD), const(4)),
    Compare("lt", plus(ID, 1 << 40), HELD),
    Compare("lt", ID, Cast(INT64, Param(FLOAT32, "x"))),
    Compare("lt", ID, Load(INT64, "b", (const(0),))),
    Compare("lt", ID, VARIABLE),
    Compare("lt", ItemQuery("local_id", 0), N),
    Compare("lt", ItemQuery("global_id", 0, INT32), Const(INT32, 3)),
    Compare("ne", ID, N),
    Logical("or", below(N), at_least(EXTENT)),
    Unary(BOOL, "not", Logical("and", below(N), at_least(EXTENT))),
    ON_DATA,
]


@pytest.mark.parametrize("cond", OTHERS)
def test_others_stay_as_they_are(cond):
    given = (If(cond, (STORE,)),)
    assert with_loop_bounds(given) == given
    assert not is_loop_bound(given[0])


@pytest.mark.parametrize(
    "body",
    [
        (),
        (STORE,),
        (If(below(N), (STORE,), (STORE,)),),
        (If(Logical("and", Call(BOOL, "leads_sub_group", ()), below(N)), (STORE,)),),
        (STORE, If(below(N), (STORE,))),  # which others run, too
        (If(below(N), (STORE,)), STORE),
        (If(below(N), (STORE,)), If(below(EXTENT), (STORE,))),
        (If(below(N), (STORE,)), STORE, If(below(N), (STORE,))),
        (If(below(N), (STORE,)), Barrier(), If(below(N), (STORE,))),
        # One of two values that the variable has.
        (Assign("m", N), Assign("m", EXTENT), If(below(VARIABLE), (STORE,))),
        (Assign("m", N), If(below(VARIABLE), (Assign("m", EXTENT), STORE))),
        (Assign("m", Load(INT64, "b", (const(0),))), If(below(VARIABLE), (STORE,))),
    ],
)
def test_other_kernels_stay_as_they_are(body):
    assert with_loop_bounds(body) == body


def test_several_conjuncts_keep_the_order_of_those_on_data():
    other = Load(BOOL, "c", (ID,))
    given = If(conjunction((ON_DATA, below(N), other)), (STORE,))
    inner = If(Logical("and", ON_DATA, other), (STORE,))
    assert with_loop_bounds((given,)) == (If(below(N), (inner,)),)


# ------------------------------------------------------------------------------ on the device
@fq.kernel
def between(item: fq.Item, a, b, low, high):
    i = item.get_id(0)
    if i < low or i >= high:
        return
    b[i] = a[i] + 1


@fq.kernel
def inner_columns(item: fq.Item, a, b, low, high):
    i, j = item.get_id(0), item.get_id(1)
    m = a.shape[1]
    if 0 < i < a.shape[0] - 1 and low <= j and j < high and j + 3 < m and a[i, j] > 0.25:
        b[i, j] = a[i, j - 1] + a[i - 1, j] * a[i + 1, j + 3]


@fq.kernel
def a_plane(item: fq.Item, a, b, low, high):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    if j == 1 and k >= low and i != 0:
        b[i, j, k] = a[i - 1, j, k]
    if j == 1 and k >= low and i != 0:
        b[i, j, k] += a[i, j, k]


@fq.kernel
def groups_between(item: fq.NdItem, a, b, low, high):
    i, k = item.get_global_id(0), item.get_local_id(0)
    if i >= low and i < high and i - 2 >= 0:
        b[i] = a[i - 2] + k + item.get_group().get_group_id(0)


ENDS = [0, 1, 7, 8, 63, 100, 1000, -1, -9, 2**62, 2**63 - 1, -(2**63)]
SPACES = [
    (between, (100,), None),
    (inner_columns, (5, 67), None),
    (a_plane, (4, 3, 21), None),
    (groups_between, (96,), (16,)),
    (groups_between, (99,), (33,)),
]


@pytest.mark.parametrize(("kernel", "extents", "groups"), SPACES)
def test_results_are_those_of_every_work_item_alone(kernel, extents, groups):
    """Empty interiors, ends outside the range, and such that differ by more than 64 bits hold."""
    space = fq.Range(*extents) if groups is None else fq.NdRange(extents, groups)
    a = np.random.default_rng(3).random(extents, np.float32)
    for low, high in one_in(5, itertools.product(ENDS, repeat=2)):
        results = []
        for backend in (None, "reference"):
            b = np.full(extents, -1, np.float32)
            in_range = low >= 1 or kernel is not inner_columns
            with fq.FusionQueue(backend) as queue:
                queue.submit(kernel, space, a, b, low if in_range else 1, high).wait()
            results.append(b)
        np.testing.assert_array_equal(results[0], results[1])
