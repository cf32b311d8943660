"""Which assignments under a condition become choices, and that they give the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.codegen.if_conversion import MOST_ASSIGNMENTS, as_choice, as_choices, loads_in
from fusionq.codegen.interior import interior_of
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    If,
    Load,
    Logical,
    Select,
    Store,
    Var,
)
from fusionq.ir.types import BOOL, FLOAT16, FLOAT32, INT32, INT64
from fusionq.ir.walk import expressions, statements
from tests.property.running import examples
from tests.unit.lists import submission

NONE: frozenset[str] = frozenset()
HERE = Var(INT64, "i")
V, W = Var(INT32, "v"), Var(INT32, "w")
A, M = Load(INT32, "a", (HERE,)), Load(INT32, "m", (HERE,))
SET = Compare("ne", M, Const(INT32, 0))
ADDED = Assign("v", Binary(INT32, "add", V, A))


def test_an_assignment_becomes_a_choice() -> None:
    made = as_choices(If(SET, (ADDED,), ()), {"v"}, NONE)
    assert made == (Assign("v", Select(INT32, SET, ADDED.value, V, True)),)
    made = as_choices(If(SET, (), (ADDED,)), {"v"}, NONE)
    assert made == (Assign("v", Select(INT32, SET, V, ADDED.value, True)),)


def test_conditions_are_computed_whole_and_their_loads_count() -> None:
    other = Compare("gt", Load(INT32, "b", (HERE,)), V)
    made = as_choices(If(Logical("and", SET, other), (Assign("w", A),), ()), {"v", "w"}, NONE)
    assert made is not None
    assert isinstance(made[0].value, Select)
    assert made[0].value.cond == Binary(BOOL, "and", SET, other)
    assert {load.array for load in loads_in(made[0].value)} == {"a", "b", "m"}


@pytest.mark.parametrize(
    "stmt",
    [
        If(SET, (ADDED, Store("b", (HERE,), V)), ()),
        If(Compare("gt", V, M), (ADDED,), ()),  # which changes what it asks
        If(SET, (Assign("u", A),), ()),  # without a value before
        If(SET, (Assign("v", W),), ()),  # nothing is loaded
        If(SET, (Assign("v", Binary(INT32, "floordiv", A, W)),), ()),
        If(SET, (Assign("v", Call(FLOAT32, "exp", (Load(FLOAT32, "f", (HERE,)),))),), ()),
        If(SET, (Assign("v", Load(FLOAT16, "h", (HERE,))),), ()),
        If(Logical("and", SET, Compare("gt", Call(INT32, "abs", (Var(INT32, "x"),)), W)),
           (ADDED,), ()),
        If(SET, (ADDED,) * (MOST_ASSIGNMENTS + 1), ()),
    ],
)  # fmt: skip
def test_what_keeps_its_branch(stmt: If) -> None:
    assert as_choices(stmt, {"v", "w", "x"}, frozenset({"x"})) is None


def test_choices_of_expressions() -> None:
    both = Select(INT32, SET, A, V)
    assert as_choice(both, NONE) == Select(INT32, SET, A, V, True)
    assert as_choice(Select(INT32, SET, V, W), NONE) is None
    assert as_choice(Select(INT32, SET, Binary(INT32, "mod", A, V), W), NONE) is None


@fq.kernel
def smallest(item: fq.Item, m, a, b):
    y = item.get_id(0)
    x = item.get_id(1)
    h = m.shape[0]
    w = m.shape[1]
    v = a[y, x]
    if m[y, x]:
        if y > 0 and m[y - 1, x]:
            v = min(v, a[y - 1, x])
        if y < h - 1 and m[y + 1, x] > 1:
            v = max(v, a[y + 1, x])
        if x > 0 and m[y, x - 1]:
            v = min(v, a[y, x - 1])
        if x < w - 1 and m[y, x + 1]:
            v += a[y, x + 1]
    b[y, x] = v


@fq.kernel
def chosen(item: fq.Item, m, a, b):
    y = item.get_id(0)
    x = item.get_id(1)
    if 1 <= x < m.shape[1] - 1:
        left = a[y, x - 1] if m[y, x - 1] > m[y, x] else a[y, x]
        right = left
        if m[y, x + 1] == 2:
            right = a[y, x + 1]
        elif m[y, x + 1]:
            right = left + a[y, x]
        b[y, x] = left if m[y, x] else right


@fq.kernel
def counted(item: fq.Item, m, a, b):
    y = item.get_id(0)
    x = item.get_id(1)
    n = a[y, x]
    for d in range(-2, 3):
        if 0 <= x + d < m.shape[1] and m[y, x + d]:
            n = n + a[y, x + d] if a[y, x + d] > n else a[y, x + d]
    b[y, x] = n


@fq.kernel
def outside(item: fq.Item, m, a, b):
    y = item.get_id(0)
    x = item.get_id(1)
    v = a[y, x]
    if m[y, x] > 2:  # of elements that have such a neighbour only
        v = a[y + 1, x - 1]
    b[y, x] = v


KERNELS = smallest, chosen, counted


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_branch_is_left_inside_of_rows(kernel: fq.Kernel) -> None:
    m, a = np.zeros((9, 4096), np.uint8), np.zeros((9, 4096), np.int32)
    ir = submission(kernel, m.shape, m, a, a.copy()).ir
    inner = interior_of(ir, keeps_rows=True)
    assert inner is not None
    assert any(isinstance(e, Select) and e.speculated for e in expressions(inner.body))
    assert not any(
        isinstance(s, If) and any(isinstance(e, Load) for e in expressions((s,)) if e is s.cond)
        for s in statements(inner.body)
    )


def _lists(kernel: fq.Kernel, m, a, strategy, queue):
    buffers = [fq.Buffer(x) for x in (m, a, np.zeros_like(a), np.zeros_like(a))]
    first, *rest = buffers
    with np.errstate(all="ignore"), fq.fusion(queue, strategy=strategy, adapt=False):
        queue.submit(kernel, m.shape, first, rest[0], rest[1])
        queue.submit(kernel, m.shape, first, rest[1], rest[2])
    return [b.numpy().copy() for b in rest]


@examples(150)
@given(
    kernel=st.sampled_from(KERNELS),
    mask=st.sampled_from([np.bool_, np.uint8, np.int16, np.float32]),
    dtype=st.sampled_from(
        [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.float32, np.float64]
    ),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 150)),
    strategy=st.sampled_from(["unfused", "megakernel", "overlap"]),
    seed=st.integers(0, 1000),
)
def test_equal_to_plain_python(kernel, mask, dtype, shape, strategy, seed) -> None:
    rng = np.random.default_rng(seed)
    m = rng.integers(0, 4, shape).astype(mask)
    a = rng.integers(0, 100, shape).astype(dtype)
    if a.dtype.kind == "f":
        a[rng.random(shape) < 0.1] = rng.choice([np.nan, -0.0, np.inf])
    made = _lists(kernel, m, a, strategy, fq.FusionQueue())
    expected = _lists(kernel, m, a, "unfused", fq.FusionQueue("reference"))
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_read_behind_a_condition_is_not_read_outside_of_its_array() -> None:
    m = np.zeros((3, 64), np.uint8)
    m[:2, 1:] = 3
    a = np.arange(3 * 64, dtype=np.int32).reshape(3, 64)
    b = fq.Buffer(np.zeros_like(a))
    queue = fq.FusionQueue()
    queue.submit(outside, m.shape, fq.Buffer(m), fq.Buffer(a), b)
    expected = a.copy()
    expected[:2, 1:] = a[1:, :-1]
    np.testing.assert_array_equal(b.numpy(), expected)
