"""Work-groups inside a range run without its guard, in kernels with barriers; with the same
results."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.opencl.whole_groups import MOST_NODES, without_guards
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
from fusionq.ir.types import FLOAT32, INT64

ID, N = ItemQuery("global_id", 0), Param(INT64, "n")
STORE = Store("a", (ID,), Const(FLOAT32, 1.0))
INSIDE = Compare("lt", ID, N)
BARRIER = Barrier()


def test_a_guard_beside_a_barrier_is_decided_for_whole_groups():
    guard = If(Logical("and", INSIDE, Compare("lt", ItemQuery("global_id", 1), Extent("a", 1))),
               (STORE,))
    split, barrier = without_guards((guard, BARRIER))
    assert barrier == BARRIER
    assert isinstance(split, If) and split.then == (STORE,)
    assert split.orelse == (guard, Barrier(global_memory=False))
    firsts = [
        Binary(INT64, "mul", ItemQuery("group_id", d), ItemQuery("local_range", d)) for d in (0, 1)
    ]
    assert isinstance(split.cond, Logical)
    assert [split.cond.lhs, split.cond.rhs] == [
        Compare("le", Binary(INT64, "add", first, ItemQuery("local_range", d)), limit)
        for d, (first, limit) in enumerate(zip(firsts, (N, Extent("a", 1)), strict=True))
    ]


MANY = tuple([STORE] * MOST_NODES)


@pytest.mark.parametrize(
    "body",
    [
        (If(INSIDE, (STORE,)),),  # no barrier
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
    assert without_guards(body) == body


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
