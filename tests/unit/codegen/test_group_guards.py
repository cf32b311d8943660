"""Work-groups inside a range run without its guard, those outside run nothing; with the same
results."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.group_conditions import FENCE, skipped_outside
from fusionq.codegen.opencl.group_guards import MOST_NODES, MOST_TWICE, decided_for_groups
from fusionq.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Compare,
    Const,
    Extent,
    If,
    ItemQuery,
    Load,
    Logical,
    Param,
    Store,
)
from fusionq.ir.types import BOOL, FLOAT32, INT64

ID, N = ItemQuery("global_id", 0), Param(INT64, "n")
STORE = Store("a", (ID,), Const(FLOAT32, 1.0))
INSIDE = Compare("lt", ID, N)
BARRIER = Barrier()
MANY = tuple([STORE] * MOST_NODES)


def first_of_group(dim):
    return Binary(INT64, "sub", ItemQuery("global_id", dim), ItemQuery("local_id", dim))


def last_of_group(dim):
    end = Binary(INT64, "add", first_of_group(dim), ItemQuery("local_range", dim))
    return Binary(INT64, "sub", end, Const(INT64, 1))


def test_several_guards_are_decided_for_whole_work_groups():
    guard, other = If(INSIDE, (STORE,)), If(Compare("lt", ID, Param(INT64, "m")), (STORE,))
    for skipped, given in zip(decided_for_groups((guard, other)), (guard, other), strict=True):
        assert skipped == If(Compare("lt", first_of_group(0), given.cond.rhs), (FENCE, given))


def test_groups_outside_a_guard_run_nothing():
    """Nor do those outside the plane of a smaller range, which no group is inside of."""
    store = Assign("x", N)
    guard = If(INSIDE, (STORE,))
    (split, _) = decided_for_groups((guard, store))
    assert split == If(Compare("lt", first_of_group(0), N), (FENCE, guard))
    plane = Logical("and", INSIDE, Compare("eq", ItemQuery("global_id", 1), Const(INT64, 0)))
    guard = If(plane, (STORE,))
    (split, _) = decided_for_groups((guard, store))
    zero = Const(INT64, 0)
    holds = Logical(
        "and",
        Compare("le", first_of_group(1), zero),
        Compare("ge", last_of_group(1), zero),
    )
    assert split == If(Logical("and", INSIDE, holds), (FENCE, guard))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_vectors_skip_what_is_outside_in_other_dimensions_than_theirs(dims):
    """Those of a group's rows beyond the range too, of which the group itself has others."""
    limits = [Param(INT64, name) for name in "nml"[:dims]]
    *others, last = (Compare("lt", ItemQuery("global_id", d), n) for d, n in enumerate(limits))
    skipped = Compare("lt", first_of_group(dims - 1), limits[-1])
    cond = last
    for other in reversed(others):
        cond, skipped = Logical("and", other, cond), Logical("and", other, skipped)
    guard = If(cond, (STORE,))
    assert decided_for_groups((guard, STORE)) == (If(skipped, (FENCE, guard)), STORE)


@pytest.mark.parametrize(
    ("cond", "holds"),
    [
        (Compare("le", ID, N), Compare("le", first_of_group(0), N)),
        (Compare("gt", ID, N), Compare("gt", last_of_group(0), N)),
        (Compare("le", N, ID), Compare("ge", last_of_group(0), N)),
        (
            Compare("lt", Binary(INT64, "sub", ID, Const(INT64, 2)), N),
            Compare("lt", Binary(INT64, "add", first_of_group(0), Const(INT64, -2)), N),
        ),
        # What is not known of a group is left out of a conjunction, and rules out a disjunction.
        (Logical("and", Load(BOOL, "b", (ID,)), INSIDE), Compare("lt", first_of_group(0), N)),
        (
            Logical("or", INSIDE, Compare("ge", ID, N)),
            Logical("or", Compare("lt", first_of_group(0), N), Compare("ge", last_of_group(0), N)),
        ),
    ],
)
def test_users_conditions_hold_for_some_of_a_group(cond, holds):
    """Also in a kernel that one guard holds, which stays the compiler's own bound."""
    stmt = If(cond, (STORE,))
    guarded = If(holds, (FENCE, stmt))
    assert decided_for_groups((stmt, STORE)) == (guarded, STORE)
    both = If(INSIDE, (stmt, STORE))
    assert decided_for_groups((both,)) == (If(INSIDE, (guarded, STORE)),)


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge", "eq"])
def test_rows_of_a_group_are_decided_each(op):
    """What a condition asks of ids of other dimensions than the last is one for a vector."""
    row = Compare(op, Binary(INT64, "add", ID, Const(INT64, 1)), N)
    column = Compare("lt", ItemQuery("global_id", 1), N)
    stmt = If(Logical("and", row, column), (STORE,))
    some = Logical("and", row, Compare("lt", first_of_group(1), N))
    assert skipped_outside((stmt, STORE), (FENCE,)) == (If(some, (FENCE, stmt)), STORE)
    rows_only = skipped_outside((stmt, STORE), (FENCE,), rows_only=True)
    assert rows_only == (If(row, (FENCE, stmt)), STORE)
    by_column = If(column, (STORE,))
    assert skipped_outside((by_column, stmt), rows_only=True) == (by_column, If(row, (stmt,)))


def test_a_guard_beside_a_barrier_is_decided_for_whole_groups():
    guard = If(Logical("and", INSIDE, Compare("lt", ItemQuery("global_id", 1), Extent("a", 1))),
               (STORE,))
    split, barrier = decided_for_groups((guard, BARRIER))
    assert barrier == BARRIER
    assert isinstance(split, If) and split.then == (STORE,)
    firsts = [first_of_group(d) for d in (0, 1)]
    some = Logical("and", INSIDE, Compare("lt", firsts[1], Extent("a", 1)))
    # masked accesses of rows and groups beyond the range cost here, too
    assert split.orelse == (If(some, (FENCE, guard)), Barrier(global_memory=False))
    assert isinstance(split.cond, Logical)
    assert [split.cond.lhs, split.cond.rhs] == [
        Compare("le", Binary(INT64, "add", first, ItemQuery("local_range", d)), limit)
        for d, (first, limit) in enumerate(zip(firsts, (N, Extent("a", 1)), strict=True))
    ]


def test_no_more_barriers_in_rare_branches_than_compilers_take():
    guard = If(INSIDE, (STORE,))
    decided = decided_for_groups((guard, BARRIER) * (MOST_TWICE + 2))
    (once,) = set(decided_for_groups((guard, BARRIER))) - {BARRIER}
    assert decided == (once, BARRIER) * MOST_TWICE + (guard, BARRIER) * 2


@pytest.mark.parametrize(
    "body",
    [
        (If(INSIDE, (STORE,)),),  # the compiler's own bound
        (Assign("i", ID), If(INSIDE, (STORE,))),
        (If(Compare("ne", ID, N), (STORE,)), STORE),
        (If(Logical("or", INSIDE, Load(BOOL, "b", (ID,))), (STORE,)), STORE),
        (If(Compare("lt", Binary(INT64, "mul", ID, Const(INT64, 2)), N), (STORE,)), STORE),
        (If(INSIDE, (STORE,), (STORE,)), STORE),
        (If(INSIDE, (STORE,), (STORE,)), BARRIER),
        (If(INSIDE, (STORE, BARRIER)), BARRIER),
        (If(Compare("ge", ID, N), (STORE,)), BARRIER),
        (If(Compare("lt", ItemQuery("local_id", 0), N), (STORE,)), BARRIER),
        (If(Compare("lt", ID, Load(INT64, "b", (ID,))), (STORE,)), BARRIER),
        (If(Logical("or", INSIDE, INSIDE), (STORE,)), BARRIER),
        (If(Logical("and", INSIDE, Compare("lt", N, ID)), (STORE,)), BARRIER),
        (If(INSIDE, MANY), BARRIER),
        (Assign("x", N), BARRIER),
    ],
)
def test_others_stay_as_they_are(body):
    assert decided_for_groups(body) == body


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] * 2


@fq.kernel
def reversed_in_groups(item: fq.NdItem, a, out, n):
    i, k = item.get_global_id(0), item.get_local_id(0)
    x = np.float32(-1)
    if i < n:
        x = a[i]
    slots = fq.reduce_over_group(item.get_group(), x)
    if i < n:
        out[i] = slots + k


def test_results_on_the_device():
    """Ranges that end at, in and before the last group."""
    with fq.FusionQueue() as queue:
        for n in (1, 63, 64, 130, 192):
            a = np.arange(200, dtype=np.float32)
            tmp, out = fq.Buffer(200, "f4"), fq.Buffer(np.full(200, -5, "f4"))
            with fq.fusion(queue, strategy="fused"):
                queue.submit(shifted, 200, fq.Buffer(a), tmp)
                queue.submit(reversed_in_groups, fq.NdRange(192, 64), tmp, out, n)
            want = np.full(200, -5, "f4")
            for g in range(3):
                x = np.full(64, -1, "f4")
                inside = min(max(n - 64 * g, 0), 64)
                x[:inside] = 2 * a[64 * g : 64 * g + inside]
                want[64 * g : 64 * g + inside] = x.sum() + np.arange(inside)
            np.testing.assert_array_equal(out.numpy(), want)


@fq.kernel
def added(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = out[i] + a[i]


@fq.kernel
def added_in_rows(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = out[i, j] + a[i, j]


@fq.kernel
def in_box(item: fq.Item, a, out):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    out[i, j, k] = out[i, j, k] + a[i, j, k]


def test_ranges_of_very_different_sizes_on_the_device():
    """Most work-items of the launch are far beyond the memory of the smaller ones."""
    rng = np.random.default_rng(3)
    flat, planes = [70001, 1, 4096, 33, 70000], [(300, 300), (1, 299), (300, 1), (7, 9)]
    staggered = [(257, 272), (257, 271), (256, 272)]
    boxes = [(29, 31, 33), (30, 5, 33), (30, 31, 2)]
    lists = (added, flat), (added_in_rows, planes), (added_in_rows, staggered), (in_box, boxes)
    with fq.FusionQueue() as queue:
        for kernel, shapes in lists:
            given = [[rng.random(shape, np.float32) for shape in shapes] for _ in range(2)]
            a, out = [[fq.Buffer(array) for array in arrays] for arrays in given]
            with fq.fusion(queue, strategy="fused"):
                for shape, one, other in zip(shapes, a, out, strict=True):
                    queue.submit(kernel, shape, one, other)
            for one, other, result in zip(*given, out, strict=True):
                np.testing.assert_array_equal(result.numpy(), one + other)


@fq.kernel
def conditions(item: fq.Item, a, out, low, high):
    i = item.get_id(0)
    if i >= low and i - 3 < high:
        out[i] = a[i - low]
    else:
        out[i] = -1
    if i == low or high <= i:
        out[i] += 2


def test_users_conditions_on_the_device_and_in_tiles():
    """Where they end at, in and between work-groups; the reference backend has no groups."""
    n = 70001
    bounds = [(0, 0), (0, n), (1, 4095), (4096, 8189), (n - 1, n), (n, n), (-5, -5), (16, 17)]
    for target, strategy in (("reference", "unfused"), (None, "unfused"), (None, "megakernel")):
        size = 301 if target else n
        with fq.FusionQueue(target) as queue:
            a = fq.Buffer(np.arange(n + 5, dtype=np.float32))
            for low, high in bounds:
                outs = [fq.Buffer(np.zeros(size, "f4")) for _ in range(2)]
                with fq.fusion(queue, strategy=strategy):
                    for out in outs:
                        queue.submit(conditions, size, a, out, max(low, 0), high)
                i = np.arange(size)
                want = np.where((i >= max(low, 0)) & (i - 3 < high), i - max(low, 0), -1)
                want = want + 2 * ((i == max(low, 0)) | (high <= i))
                for out in outs:
                    np.testing.assert_array_equal(out.numpy(), want)


@fq.kernel
def part_of_plane(item: fq.Item, a, out, top, left):
    i, j = item.get_id(0), item.get_id(1)
    if i >= top and j >= left:
        out[i, j] = a[i - top, j - left]
    if i + 1 == top or left > j:
        out[i, j] += 1


def test_users_conditions_on_several_dimensions_on_the_device():
    shape = 75, 272
    a = np.random.default_rng(3).random(shape, np.float32)
    with fq.FusionQueue() as queue:
        given = fq.Buffer(a)
        for top, left in ((0, 0), (75, 0), (1, 271), (13, 16), (74, 17), (14, 272)):
            outs = [fq.Buffer(np.zeros(shape, "f4")) for _ in range(2)]
            with fq.fusion(queue, strategy="fused"):
                for out in outs:
                    queue.submit(part_of_plane, shape, given, out, top, left)
            want = np.zeros(shape, np.float32)
            want[top:, left:] = a[: 75 - top, : 272 - left]
            i, j = np.indices(shape)
            want += (i + 1 == top) | (left > j)
            for out in outs:
                np.testing.assert_array_equal(out.numpy(), want)
