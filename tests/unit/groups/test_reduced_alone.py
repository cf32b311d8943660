"""Who combines a work-group's values in local memory: the first work-item where they are lanes of
a vector, several of them elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.nodes import Compare, Const, For, GroupCall, If, ItemQuery, Kernel
from fusionq.ir.types import FLOAT32, INT64
from fusionq.ir.walk import statements
from fusionq.passes.local_memory import launched_bytes, with_ordered_functions
from fusionq.passes.reduce_by_groups import GroupReduction, reduce_by_groups
from tests.unit.lists import submissions
from tests.unit.targets import device

CPU, GPU = device("cpu"), device("gpu")
UNORDERED = replace(CPU, float_groups="unordered")


@fq.kernel
def sums(item: fq.NdItem, x, out):
    i = item.get_global_id(0)
    out[i] = fq.reduce_over_group(item.get_group(), x[i], "add")


def kernel(size: int) -> Kernel:
    """A kernel with a reduction and a function of work-groups of its user's."""
    x, out = (np.zeros(2 * size, np.float32) for _ in range(2))
    (submission,) = submissions((sums, fq.NdRange(2 * size, size), x, out))
    reduction = GroupReduction("add", FLOAT32, "total_of_x", "total", FLOAT32, "partial")
    return reduce_by_groups(submission.ir, [reduction], (size,), ())


def calls(ir: Kernel) -> list[bool]:
    """Of each function of work-groups that is left, whether it is ``in_order``."""
    return [s.in_order for s in statements(ir.body) if isinstance(s, GroupCall)]


def loops(ir: Kernel) -> list[For]:
    return [s for s in statements(ir.body) if isinstance(s, For)]


def test_lanes_of_a_vector_leave_it_to_the_first():
    lowered = with_ordered_functions(kernel(256), (256,), CPU)
    assert calls(lowered) == []
    assert loops(lowered)
    assert {loop.start for loop in loops(lowered)} == {Const(INT64, 0)}
    conditions = [s for s in statements(lowered.body) if isinstance(s, If)]
    around = [s for s in conditions if any(isinstance(inner, For) for inner in s.then)]
    first = Compare("eq", ItemQuery("local_id", 0), Const(INT64, 0))
    assert {s.cond for s in around} == {first}


def test_threads_share_it():
    lowered = with_ordered_functions(kernel(256), (256,), GPU)
    assert {loop.start for loop in loops(lowered)} == {ItemQuery("local_id", 0)}


def test_devices_with_an_order_of_their_own_keep_that_for_functions_of_users():
    ir = kernel(128)
    assert sorted(calls(ir)) == [False, True]
    assert calls(with_ordered_functions(ir, (128,), UNORDERED)) == [False]


@pytest.mark.parametrize("info", [CPU, GPU, UNORDERED], ids=["cpu", "gpu", "unordered"])
def test_the_local_memory_of_reductions_counts(info):
    assert launched_bytes(kernel(128), (128,), info) >= 128 * 4
