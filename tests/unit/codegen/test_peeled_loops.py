"""Loops in steps of a work-group: what all of its work-items do, and then the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.codegen.peeled_loops import with_peeled_loops
from fusionq.ir.nodes import For, Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.ir.walk import statements
from tests.property.running import examples
from tests.unit.frontend.running import binding, specialised

SIZES = np.zeros(12, np.int64)


def peeled(kernel: Any, *arguments: Any, shape: tuple[int, ...] = (16,)) -> Kernel:
    ir = specialised(kernel, fq.NdRange(shape, (*(1 for _ in shape[1:]), 8)), *arguments)
    made = with_peeled_loops(ir, ir.body)
    verify(made)
    return made


def loops(kernel: Kernel) -> int:
    return sum(isinstance(s, For) for s in statements(kernel.body))


@fq.kernel
def row_sums(item: fq.NdItem, a, out):
    total = 0
    for j in range(item.get_local_id(0), a.shape[0], 8):
        total += a[j]
    out[item.get_global_id(0)] = total


def test_what_it_becomes() -> None:
    assert print_kernel(peeled(row_sums, SIZES, SIZES)) == """\
def row_sums(item, a, out):
    # a: int64[:], out: int64[:]
    total = 0
    j_whole = (a.shape[0] - item.get_local_range(0)) // 8 + 1 if a.shape[0] >= item.get_local_range(0) else 0
    for j_turn in range(j_whole):
        j_own = item.get_local_id(0) + j_turn * 8
        total = total + a[j_own]
    for j in range(item.get_local_id(0) + j_whole * 8, a.shape[0], 8):
        total = total + a[j]
    out[item.get_global_id(0)] = total
"""  # noqa: E501


@fq.kernel
def general(item: fq.NdItem, a, first, stop, out):
    """Any start and stop, and statements of every kind inside."""
    own, g = item.get_local_id(0), item.get_group().get_group_id(0)
    total, last = a[g], -7
    for j in range(first + g * 3 + own, stop, 5):
        if j % 3 == 0:
            continue
        for k in range(own, j % 4, 2):
            total += a[k] * k
            if total > 90:
                break
        total = total * 2 + j
        last = j
    out[item.get_global_id(0)] = total + last


@fq.kernel
def grid_stride(item: fq.NdItem, a, first, stop, out):
    i = item.get_global_id(0)
    for j in range(i, stop, item.get_global_range(0)):
        out[i] = out[i] * 3 + a[j % 12] + first
    for j in range(i, stop, item.get_local_range(0)):
        out[i] += j


def run(kernel: Kernel, arguments: dict[str, Any]) -> np.ndarray:
    values = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    backend = ReferenceBackend(order="natural")
    bindings = [
        binding(values[p.name]) if isinstance(values[p.name], np.ndarray) else values[p.name]
        for p in kernel.params
    ]
    built = backend.build(kernel, "strict")
    backend.prepare(built, bindings, LaunchShape((16,), (8,))).launch()
    return values["out"]


ENDS = (-(1 << 63), -(1 << 63) + 3, -9, 0, 1, 7, 8, 9, 23, 40, 41, (1 << 63) - 1)


@pytest.mark.parametrize("kernel", (general, grid_stride), ids=lambda k: k.__name__)
@examples(60)
@given(
    st.one_of(st.integers(-20, 60), st.sampled_from(ENDS)),
    st.one_of(st.integers(-20, 60), st.sampled_from(ENDS)),
)
def test_every_work_item_does_the_same(kernel: Any, first: int, stop: int) -> None:
    if stop > 60 and (kernel is grid_stride or first < stop - 100):
        stop = 60  # not as many iterations
    first = max(first, -200) if stop > -200 else first
    a, out = np.arange(12) * 7 % 11 - 3, np.arange(16) % 5
    arguments = {"a": a, "first": first, "stop": stop, "out": out}
    original = specialised(kernel, fq.NdRange(16, 8), a, first, stop, out)
    made = peeled(kernel, a, first, stop, out)
    assert loops(made) > loops(original)
    np.testing.assert_array_equal(run(made, arguments), run(original, arguments))


def test_starts_that_differ_otherwise_stay() -> None:
    @fq.kernel
    def other_loops(item: fq.NdItem, a, stop, step, out):
        own, i = item.get_local_id(0), item.get_global_id(0)
        for j in range(own, stop, 8):  # it ends at any time
            if a[j] > 5:
                break
            out[i] += a[j]
        for j in range(own, own + stop, 8):  # ends differ
            out[i] += j
        for j in range(2 * own, stop, 8):  # starts in other steps
            out[i] += j
        for j in range(own, a[0], 8):  # loaded anew by each work-item
            out[i] += j
        for j in range(own, stop, step):  # it may be 0, or negative
            out[i] += j
        for j in range(own, 0, -1):
            out[i] += j
        for j in range(stop):
            out[i] += j

    ir = specialised(other_loops, fq.NdRange(16, 8), SIZES, 9, 3, SIZES)
    assert with_peeled_loops(ir, ir.body) == ir


def test_bounds_are_those_ahead_of_the_loop() -> None:
    @fq.kernel
    def moving(item: fq.NdItem, out):
        stop, total = 20, 0
        for j in range(item.get_local_id(0), stop, 8):
            stop += 1
            total += j
        out[item.get_global_id(0)] = total + stop

    out = np.zeros(16, np.int64)
    original = specialised(moving, fq.NdRange(16, 8), out)
    made = peeled(moving, out)
    np.testing.assert_array_equal(run(made, {"out": out}), run(original, {"out": out}))


def test_plain_ranges_stay() -> None:
    """Their work-groups may have any size."""

    @fq.kernel
    def stepping(item: fq.Item, a, out):
        i = item.get_id(0)
        for j in range(i, a.shape[0], item.get_range(0)):
            out[i] += a[j]

    ir = specialised(stepping, (16,), SIZES, SIZES)
    assert with_peeled_loops(ir, ir.body) == ir
