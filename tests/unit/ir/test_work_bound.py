"""How many operations a kernel takes at most: never fewer than it does, infinite where unknown."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.work_bound import WorkBound
from tests.unit.frontend.running import specialised

SIZE = 5000
"""More than one work-group."""


@fq.kernel
def once(item: fq.Item, a, n):
    i = item.get_id(0)
    a[i] = a[i] + 1


@fq.kernel
def rows(item: fq.Item, a, n):
    i = item.get_id(0)
    for _ in range(a.shape[0] * 2):
        a[i] = a[i] + 1


@fq.kernel
def scalar(item: fq.Item, a, n):
    i = item.get_id(0)
    for _ in range(n):
        a[i] = a[i] + 1


@fq.kernel
def endless(item: fq.Item, a, n):
    i = item.get_id(0)
    while a[i] > 0:
        a[i] = a[i] - 1


@fq.kernel
def from_its_id(item: fq.Item, a, n):
    i = item.get_id(0)
    for k in range(i // 2, a.shape[0] - 1 + 1, 2):
        a[k] = a[k] + 1


@fq.kernel
def up_to_its_id(item: fq.Item, a, n):
    i = item.get_id(0)
    for _ in range(i, -1, -1):
        a[i] = a[i] + 1


@fq.kernel
def very_many(item: fq.Item, a, n):
    i = item.get_id(0)
    for k in range(i * 2**40 * 2**40, -1, -3):
        a[i] = a[i] + k


@fq.kernel
def in_tiles(item: fq.Item, a, n):
    i = item.get_id(0)
    for first in range(0, a.shape[0], 16):
        for k in range(min(16, a.shape[0] - first)):
            a[i] = a[i] + a[first + k]


@fq.kernel
def some_neighbours(item: fq.Item, a, n):
    first = item.get_id(0) * 4
    for k in range(first, min(first + 4, n)):
        for j in range(a.shape[0]):
            a[k] = a[k] + a[j]


@fq.kernel
def in_a_tree(item: fq.Item, a, n):
    distance = 64
    for _ in range(7):
        for k in range(distance):
            a[k] = a[k] + a[k + distance]
        distance //= 2


@fq.kernel
def in_a_growing_tree(item: fq.Item, a, n):
    distance = 64
    for _ in range(7):
        for k in range(distance):
            a[k] = a[k] + a[k + distance]
        distance = distance * 3 // 2


@fq.kernel
def with_constants(item: fq.Item, a, n):
    i = item.get_id(0)
    sum = a[i] + np.float32(np.inf)
    for k in range(3):
        product = a[i] * np.float32(np.nan)
        a[i] = product if sum > k else np.float32(0.3)


def bound(kernel: fq.KernelFunction, items: int, size: int) -> float:
    ir = specialised(kernel, items, np.zeros(size, np.float32), 3)
    return WorkBound(ir).operations(items, {"a": (size,)})


def test_work_grows_with_items_and_with_known_loops() -> None:
    assert 0 < bound(once, 10, 10) * 10 == bound(once, 100, 10)
    assert bound(rows, 10, 200) > 1.9 * bound(rows, 10, 100) > 100 * bound(once, 10, 100)


@pytest.mark.parametrize("kernel", [from_its_id, up_to_its_id, in_tiles])
def test_loops_from_ids_and_to_ids(kernel: fq.KernelFunction) -> None:
    """As long as the longest one: over all of the array, or all of the work-items."""
    of_all = bound(once, 64, 64) * 64
    assert of_all / 4 < bound(kernel, 64, 64) < 2 * of_all
    assert bound(kernel, 64, 64) < bound(kernel, 128, 128) / 3


def test_a_loop_over_some_neighbours_ends_soon_wherever_it_begins() -> None:
    """Whatever the argument is that may end it before."""
    assert bound(rows, 1, 50) < bound(some_neighbours, 1, 100) < 5 * bound(rows, 1, 100)
    assert bound(some_neighbours, 64, 100) == 64 * bound(some_neighbours, 1, 100)


def test_constants_that_are_no_integers() -> None:
    assert bound(once, 1, 1) < bound(with_constants, 1, 1) < 1000


def test_bounds_are_no_int64() -> None:
    assert bound(very_many, 9, 1) > 9 * 9 * 2.0**80 / 3


def test_distances_that_are_halved() -> None:
    assert 64 * 7 < bound(in_a_tree, 1, 1000) < 64 * 7 * 40


@pytest.mark.parametrize("kernel", [scalar, endless, in_a_growing_tree])
def test_loops_that_depend_on_values_have_no_bound(kernel: fq.KernelFunction) -> None:
    assert bound(kernel, 1, 1) == inf


@pytest.mark.slow
def test_a_persistent_kernel_counts_its_stages() -> None:
    @fq.kernel
    def shifted(item: fq.Item, a, out):
        i = item.get_id(0)
        if i + 1 < a.shape[0]:
            out[i] = a[i + 1] + a[i]

    found = []
    for steps in (4, 8):
        a, b = fq.Buffer(SIZE, np.float32), fq.Buffer(SIZE, np.float32)
        with fq.FusionQueue("reference") as queue:
            with fq.fusion(queue, strategy="megakernel") as f:
                for step in range(steps):
                    queue.submit(shifted, SIZE, *((a, b) if step % 2 else (b, a)))
            (stage,) = f.report.plan.stages
            assert f.report.strategy == "megakernel"
            found.append(WorkBound(stage.kernel).operations(16, {"a": (SIZE,), "out": (SIZE,)}))
    assert found[1] == 2 * found[0] > SIZE * 4


def test_each_shape_has_its_own_bound() -> None:
    ir = specialised(rows, 10, np.zeros(10, np.float32), 3)
    work = WorkBound(ir)
    sizes = (100, 100, 200, 100)
    again = [work.operations(10, {"a": (size,)}) for size in sizes]
    assert again == [bound(rows, 10, size) for size in sizes]
