"""Stages with barriers, local memory and group functions inside of persistent kernels: one launch,
and the bits of the unfused run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.benchmarks.corpus.programs import PROGRAMS
from tests.property.running import needs_device
from tests.property.tilings import random_tilings

Array = npt.NDArray[Any]
Lists = Callable[[fq.FusionQueue, list[fq.Buffer]], None]


@fq.kernel
def swap(item: fq.NdItem, a: Array, b: Array, tile: Array) -> None:
    """Values and private arrays that live across regions; local memory that is used again."""
    i = item.get_global_id(0)
    own = item.get_local_id(0)
    last = item.get_local_range(0) - 1
    x = a[i]
    both = fq.PrivateArray(2, np.float32)
    both[0] = x
    tile[own] = x
    fq.group_barrier(item.get_group())
    y = tile[last - own]
    both[1] = y
    fq.group_barrier(item.get_group())
    tile[own] = y
    fq.group_barrier(item.get_group())
    b[i] = both[0] * 2 + both[1] + tile[(own + 1) % (last + 1)]


@fq.kernel
def backwards(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] + 1


@fq.kernel
def rounds(item: fq.NdItem, a: Array, b: Array, tile: Array, turns: int) -> None:
    """Barriers in loops and conditions that are the same for a group, one of them on data."""
    i = item.get_global_id(0)
    own = item.get_local_id(0)
    group = item.get_group()
    size = item.get_local_range(0)
    kept = a[i]
    tile[own] = kept
    fq.group_barrier(group)
    for turn in range(turns):
        if turn == 3:
            break
        fq.group_barrier(group)
        if group.get_group_id(0) % 2 == 0:
            value = tile[(own + turn + 1) % size]
            fq.group_barrier(group)
            tile[own] = value + kept
        else:
            kept = kept + 1
        fq.group_barrier(group)
        if tile[0] > 40:
            fq.group_barrier(group)
            tile[own] = tile[own] - 39
            continue
        fq.group_barrier(group)
    left = size
    while left > 1:
        left = left // 2
        fq.group_barrier(group)
        if own < left:
            tile[own] = tile[own] + tile[own + left]
    fq.group_barrier(group)
    b[i] = tile[0] + kept


@fq.kernel
def functions(item: fq.NdItem, a: Array, b: Array) -> None:
    i = item.get_global_id(0)
    group = item.get_group()
    total = fq.reduce_over_group(group, a[i], "add")
    best = fq.reduce_over_group(group, a[i], "max")
    before = fq.exclusive_scan_over_group(group, a[i], "add")
    first = fq.inclusive_scan_over_group(group, a[i], "min")
    given = fq.group_broadcast(group, a[i], item.get_local_range(0) - 1)
    result = total + 3 * best + 5 * before + 7 * first + 11 * given
    if fq.any_of_group(group, a[i] > 50):
        result = result + 1
    if fq.all_of_group(group, a[i] > 1):
        result = result + 2
    b[i] = result


@fq.kernel
def sums_of_fractions(item: fq.NdItem, a: Array, b: Array) -> None:
    """Floating sums whose order shows."""
    i = item.get_global_id(0)
    group = item.get_group()
    x = a[i] * np.float32(0.1) + np.float32(1) / (np.float32(i) + np.float32(3))
    total = fq.reduce_over_group(group, x, "add")
    for _turn in range(2):
        if total > 0:
            total = total + fq.reduce_over_group(group, x * x, "add")
    before = fq.exclusive_scan_over_group(group, x * total, "add")
    upto = fq.inclusive_scan_over_group(group, before + x, "max")
    b[i] = total + before * upto + fq.exclusive_scan_over_group(group, np.float64(x), "mul")


@fq.kernel(sub_group_size=16)
def sub_groups(item: fq.NdItem, a: Array, b: Array, tile: Array) -> None:
    """Functions of sub-groups beside those of the work-group, with values across regions, in a
    loop, and under conditions that hold for whole sub-groups."""
    i = item.get_global_id(0)
    own = item.get_local_id(0)
    group, part = item.get_group(), item.get_sub_group()
    x = a[i] * np.float32(0.1) + np.float32(1) / (np.float32(i) + np.float32(3))
    both = fq.PrivateArray(2, np.float32)
    both[0] = x
    both[1] = fq.reduce_over_group(part, x, "add")
    tile[own] = both[1] + fq.exclusive_scan_over_group(part, x, "add")
    total = fq.reduce_over_group(group, x, "add")
    last = item.get_local_range(0) - 1
    y = tile[last - own]
    for turn in range(3):
        y = y + fq.permute_group_by_xor(part, both[0] * total, turn)
        if part.get_group_id(0) % 2 == 0:
            y = y + fq.inclusive_scan_over_group(part, y, "add")
            if fq.any_of_group(part, y > 3):
                y = y - fq.group_broadcast(part, y, turn)
    b[i] = fq.shift_group_left(part, y, 1) + both[0]


@fq.kernel
def counted(item: fq.NdItem, a: Array, counts: Array, slots: Array) -> None:
    """Atomic operations on local and global memory, behind a guard that splits no group."""
    own = item.get_local_id(0)
    if own < slots.shape[0]:
        slots[own] = 0
    fq.group_barrier(item.get_group())
    i = item.get_global_id(0)
    if i < a.shape[0]:
        fq.AtomicRef(slots, a[i] % 4).fetch_add(1)
    fq.group_barrier(item.get_group())
    if own < slots.shape[0]:
        fq.AtomicRef(counts, own).fetch_add(slots[own])


@fq.kernel
def turned(item: fq.NdItem, a: Array, b: Array, tile: Array) -> None:
    i, j = item.get_global_id(0), item.get_global_id(1)
    k, m = item.get_local_id(0), item.get_local_id(1)
    tile[m, k] = a[i, j]
    fq.group_barrier(item.get_group())
    g, h = item.get_group().get_group_id(0), item.get_group().get_group_id(1)
    rows, columns = item.get_local_range(0), item.get_local_range(1)
    own = k * columns + m
    b[h * columns + own // rows, g * rows + own % rows] = tile[own // rows, own % rows]


def local(size: Any, dtype: Any = np.float32) -> fq.LocalAccessor:
    return fq.LocalAccessor(size, dtype)


def one_after_the_other(first: int, second: int) -> Lists:
    """Group by group and crosswise, in groups of different sizes; ``n`` is 60."""

    def submit(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
        q.submit(swap, fq.NdRange(60, first), b[0], b[1], local(first))
        q.submit(swap, fq.NdRange(60, second), b[1], b[2], local(second))
        q.submit(backwards, 60, b[2], b[0])
        q.submit(swap, fq.NdRange(60, first), b[0], b[1], local(first))

    return submit


def loops(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
    for size, turns in ((4, 3), (12, 5), (1, 2)):
        q.submit(rounds, fq.NdRange(60, size), b[0], b[1], local(size), turns)
        q.submit(backwards, 60, b[1], b[0])


def group_functions(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
    for size in (1, 5, 20):
        q.submit(functions, fq.NdRange(60, size), b[3], b[4])
        q.submit(backwards, 60, b[4], b[3])


def fractions(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
    """In groups of fewer work-items than a worker has lanes, of some more, and of many more."""
    for size in (5, 20, 60):
        q.submit(sums_of_fractions, fq.NdRange(60, size), b[0], b[1])
        q.submit(backwards, 60, b[1], b[0])
    for size in (16, 96):
        q.submit(sums_of_fractions, fq.NdRange(96, size), b[7], b[8])
        q.submit(backwards, 96, b[8], b[7])


def functions_of_sub_groups(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
    for size in (16, 48):
        q.submit(sub_groups, fq.NdRange(96, size), b[7], b[8], local(size))
        q.submit(backwards, 96, b[8], b[7])


def atomics(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
    q.submit(backwards, 60, b[3], b[4])
    q.submit(counted, fq.NdRange(64, 8), b[4], b[3], local(4, np.int32))
    q.submit(backwards, 60, b[3], b[4])


def two_dimensions(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
    q.submit(turned, fq.NdRange((6, 10), (3, 5)), b[5], b[6], local((5, 3)))
    q.submit(turned, fq.NdRange((10, 6), (2, 6)), b[6], b[5], local((6, 2)))


def whole_warps(*sizes: int) -> Lists:
    """Work-groups whose work-items are threads of a GPU's worker, one to eight of them at once."""

    def submit(q: fq.FusionQueue, b: list[fq.Buffer]) -> None:
        for size in sizes:
            q.submit(sums_of_fractions, fq.NdRange(512, size), b[9], b[10])
            q.submit(swap, fq.NdRange(512, size), b[10], b[9], local(size))
            q.submit(backwards, 512, b[9], b[10])
            q.submit(functions, fq.NdRange(512, size), b[11], b[12])
            q.submit(backwards, 512, b[12], b[11])
            q.submit(rounds, fq.NdRange(512, size), b[10], b[9], local(size), 3)
            q.submit(backwards, 512, b[11], b[12])
            q.submit(counted, fq.NdRange(512, size), b[12], b[11], local(4, np.int32))
        q.submit(turned, fq.NdRange((32, 64), (8, 16)), b[13], b[14], local((16, 8)))
        q.submit(turned, fq.NdRange((64, 32), (2, 32)), b[14], b[13], local((32, 2)))

    return submit


LISTS: dict[str, Lists] = {
    "one item a group": one_after_the_other(1, 4),
    "odd counts": one_after_the_other(20, 12),
    "larger than a worker": one_after_the_other(30, 20),
    "one group": one_after_the_other(60, 3),
    "loops": loops,
    "functions": group_functions,
    "fractions": fractions,
    "functions of sub-groups": functions_of_sub_groups,
    "atomics": atomics,
    "two dimensions": two_dimensions,
    "whole warps": whole_warps(32, 64, 128, 256),
}
FEWER_SIZES: dict[str, Lists] = {"whole warps": whole_warps(64)}
"""For workers that do such groups in turns of their lanes, as those of the other lists."""


def buffers() -> list[fq.Buffer]:
    values = np.arange(60) * 37 % 60
    floats = [fq.Buffer(values.astype(np.float32)), *(fq.Buffer(60, np.float32) for _ in range(2))]
    integers = [fq.Buffer(values.astype(np.int32)), fq.Buffer(60, np.int32)]
    plane = values.reshape(6, 10).astype(np.int16)
    more = [fq.Buffer(np.arange(96, dtype=np.float32)), fq.Buffer(96, np.float32)]
    many = np.arange(512) * 37 % 60
    more += [fq.Buffer(many.astype(np.float32)), fq.Buffer(512, np.float32)]
    more += [fq.Buffer(many.astype(np.int32)), fq.Buffer(512, np.int32)]
    large = np.arange(2048, dtype=np.int16).reshape(32, 64)
    more += [fq.Buffer(large), fq.Buffer((64, 32), np.int16)]
    return [*floats, *integers, fq.Buffer(plane), fq.Buffer((10, 6), np.int16), *more]


@pytest.fixture(params=["reference", "threads", pytest.param(None, marks=needs_device)])
def queue(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fq.FusionQueue]:
    """``threads``: a device whose workers' lanes can be the work-items of work-groups."""
    name = request.param
    if name == "threads":
        backend = ReferenceBackend()
        device = replace(backend.target.device, groups_in_workers=True)
        backend.target = replace(backend.target, device=device, worker_size=256, sub_group_size=16)
        monkeypatch.setattr(registry, "backend_for", lambda target, profiling=False: backend)
        name = None
    with fq.FusionQueue(name) as made:
        yield made


@pytest.mark.in_turn
@pytest.mark.parametrize("name", LISTS)
def test_one_launch_with_the_bits_of_the_unfused_run(
    request: pytest.FixtureRequest, queue: fq.FusionQueue, name: str
) -> None:
    expected, given = buffers(), buffers()
    submit = LISTS[name]
    if request.node.callspec.params["queue"] != "threads":
        submit = FEWER_SIZES.get(name, submit)
    submit(queue, expected)
    with random_tilings(7), fq.fusion(queue, strategy="megakernel", require=True) as f:
        submit(queue, given)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    f.replay()
    submit(queue, expected)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert (f.report.strategy, len(f.report.plan.stages)) == ("megakernel", 1)


def test_a_solver_with_dot_products_by_groups_is_one_launch() -> None:
    """Many short questions: together they come to no bound."""
    program = PROGRAMS["conjugate_gradients"]
    form = next(f for f in program.forms if f.name == "groups")
    size = program.sizes["tiny"]
    expected, given = (
        [fq.Buffer(a) for a in program.arrays(size, np.random.default_rng(1)).values()]
        for _ in range(2)
    )
    with fq.FusionQueue("reference") as queue:
        form.submit(queue, size, *expected)
        with fq.fusion(queue, strategy="megakernel", require=True) as f:
            form.submit(queue, size, *given)
        assert (f.report.strategy, len(f.report.plan.stages)) == ("megakernel", 1)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
