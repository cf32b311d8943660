"""Overlapped tiles by work-items that are threads: those inside of all bounds have code without
conditions, and the unfused result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.reference import ReferenceBackend
from fusionq.cache.plan_cache import PLANS
from fusionq.frontend.kernel import KernelFunction
from fusionq.ir.nodes import Barrier, Const, For, If, Kernel, Var
from fusionq.ir.walk import statements
from fusionq.passes import overlapped_tiles
from fusionq.planning import overlap
from fusionq.planning.overlapped_tiles import is_split
from tests.e2e.test_overlapped_tiles import compared, cube, image, line, numbers, temporary, tiles
from tests.unit.targets import REFERENCE


@fq.kernel
def unlike_the_edges(item: fq.Item, x, y):
    i, j = item.get_id(0), item.get_id(1)
    if i == 0 or j == 0 or i == x.shape[0] - 1 or j == x.shape[1] - 1:
        return
    y[i, j] = x[i - 1, j] - x[i + 1, j] * 3 + x[i, j - 1] * x[i, j + 1]


@fq.kernel
def up_to(item: fq.Item, n, m, x, y):
    i, j = item.get_id(0), item.get_id(1)
    y[i, j] = x[i, j]
    if i + 1 < n and j + 2 <= m - 1:
        y[i, j] = x[i, max(j - 1, 0)] * 2 - x[max(i - 1, 0), j]


@fq.kernel
def below_the_diagonal(item: fq.Item, x, y):
    i, j = item.get_id(0), item.get_id(1)
    if 0 < j <= i:
        y[i, j] = x[i, j - 1] - x[i, j]
    else:
        y[i, j] = x[i, j] * 2


@fq.kernel
def every_third(item: fq.Item, x, y):
    i, j = item.get_id(0), item.get_id(1)
    y[i, j] = x[i, max(j - 1, 0)] * 2
    if i % 3 == 1:
        y[i, j] = x[i, j]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[fq.FusionQueue]:
    """Of a device whose work-items are threads, with small tiles."""
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    monkeypatch.setattr(PLANS, "_plans", OrderedDict())
    monkeypatch.setattr(overlap, "WAYS", ("tiled",))
    backend = ReferenceBackend()
    backend.target = replace(
        backend.target, worker_size=32, sub_group_size=8, largest_overlapped_tile=160,
        resident_workers=1,
    )  # fmt: skip
    monkeypatch.setattr(registry, "backend_for", lambda target, profiling=False: backend)
    with fq.FusionQueue() as made:
        yield made


def whole(kernel: Kernel) -> list[If]:
    """The parts that tiles inside of all bounds do in another way."""
    return [s for s in statements(kernel.body) if isinstance(s, If) and s.cond == is_whole(kernel)]


def is_whole(kernel: Kernel) -> Var:
    (found,) = [Var(type, name) for name, type in kernel.variables if name == "is_whole"]
    return found


def kernel_of(report: fq.Report) -> Kernel:
    assert tiles(report)
    return report.plan.stages[0].kernel


@pytest.mark.in_turn
@pytest.mark.parametrize("shape", [(37, 83), (3, 200), (70, 5), (64, 64), (90, 90)])
def test_images(queue: fq.FusionQueue, shape: tuple[int, int]) -> None:
    kernel = kernel_of(compared(queue, image(shape)))
    parts = whole(kernel)
    assert len(parts) == 3 and sum(isinstance(s, Barrier) for s in statements(kernel.body)) == 2
    for part in parts:
        loops = [s for s in statements(part.then) if isinstance(s, For)]
        assert all(isinstance(e, Const) for loop in loops for e in (loop.start, loop.stop))


@pytest.mark.parametrize("n", [257, 320, 1000])
def test_lines(queue: fq.FusionQueue, n: int) -> None:
    def submit(queue: fq.FusionQueue) -> list[fq.Buffer]:
        a, b, t, u = fq.Buffer(numbers(n)), fq.Buffer(n, np.int64), temporary(n), temporary(n)
        for x, y in ((a, t), (t, u), (u, b)):
            queue.submit(line, n, x, y)
        return [a, b]

    assert len(whole(kernel_of(compared(queue, submit)))) == 3


def test_three_dimensions(queue: fq.FusionQueue) -> None:
    def submit(queue: fq.FusionQueue) -> list[fq.Buffer]:
        shape = (12, 14, 30)
        a, b, t = fq.Buffer(numbers(shape)), fq.Buffer(shape, np.int64), temporary(shape)
        queue.submit(cube, shape, a, t)
        queue.submit(cube, shape, t, b)
        return [a, b]

    assert whole(kernel_of(compared(queue, submit)))


def two_of(
    kernel: KernelFunction, *scalars: int, shape: tuple[int, int] = (61, 75)
) -> Callable[[fq.FusionQueue], list[fq.Buffer]]:
    def submit(queue: fq.FusionQueue) -> list[fq.Buffer]:
        a, b, t = fq.Buffer(numbers(shape)), fq.Buffer(numbers(shape)), temporary(shape)
        for x, y in ((a, t), (t, b)):
            queue.submit(kernel, shape, *scalars, x, y)
        return [a, b]

    return submit


@pytest.mark.parametrize("n, m", [(61, 75), (20, 33), (5, 1 << 62), (1 << 62, (1 << 63) - 1)])
def test_bounds_that_are_arguments(queue: fq.FusionQueue, n: int, m: int) -> None:
    """As large as they may be: what is added to ids does not wrap."""
    assert whole(kernel_of(compared(queue, two_of(up_to, n, m))))


def test_ids_that_are_unlike_the_edges(queue: fq.FusionQueue) -> None:
    report = compared(queue, two_of(unlike_the_edges))
    assert not tiles(report) or whole(report.plan.stages[0].kernel)


@pytest.mark.parametrize("kernel", [below_the_diagonal, every_third])
def test_conditions_that_no_box_decides(
    queue: fq.FusionQueue, kernel: KernelFunction
) -> None:
    """Ids of two dimensions, remainders: they stay, or the tile has no other code."""
    assert tiles(compared(queue, two_of(kernel)))


def test_few_tiles_have_one_code(queue: fq.FusionQueue) -> None:
    """Of which each thread does a few work-items, and would have to fetch it."""
    kernel = kernel_of(compared(queue, image((15, 17))))
    assert "is_whole" not in dict(kernel.variables)


@pytest.mark.parametrize(
    "side, lanes, expected", [(32, 8, True), (31, 8, False), (32, 32, False)]
)
def test_which_tiles_are_split(side: int, lanes: int, expected: bool) -> None:
    """Of work-items that are threads, of which each does some."""
    target = replace(REFERENCE, worker_size=32, sub_group_size=lanes, resident_workers=4)
    assert is_split((32, side), target) is expected


def test_kernels_that_are_too_large_have_one_code(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlapped_tiles, "MOST_NODES", 20)
    kernel = kernel_of(compared(queue, image((37, 83))))
    assert "is_whole" not in dict(kernel.variables)
