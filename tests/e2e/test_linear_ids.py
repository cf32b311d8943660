"""Halos computed anew of programs over one linear id that they divide: as over rows."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.halo_lists import reference_queue, way
from tests.property.running import needs_device

__all__ = ["reference_queue", "way"]


@fq.kernel
def across(item: fq.Item, a, b):
    m = a.shape[1]
    i, j = item.get_linear_id() // m, item.get_linear_id() % m
    b[i, j] = a[i, max(j - 1, 0)] - a[i, min(j + 1, m - 1)]


@fq.kernel
def down(item: fq.Item, a, b):
    i = item.get_linear_id() // a.shape[1]
    j = item.get_linear_id() % a.shape[1]
    b[i, j] = a[max(i - 1, 0), j] + 2 * a[min(i + 1, a.shape[0] - 1), j]


@fq.kernel
def inside(item: fq.Item, a, b):
    i = item.get_linear_id() // a.shape[1]
    j = item.get_linear_id() % a.shape[1]
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] - a[i, j + 1]


@fq.kernel
def plane(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[max(i - 1, 0), j] - 3 * a[i, max(j - 2, 0)]


@fq.kernel
def box(item: fq.Item, a, b):
    n, p = a.shape[1], a.shape[2]
    i = item.get_linear_id() // (n * p)
    j = item.get_linear_id() // p % n
    k = item.get_linear_id() % p
    b[i, j, k] = a[max(i - 1, 0), j, k] + a[i, min(j + 1, n - 1), k] - a[i, j, max(k - 1, 0)]


@fq.kernel
def flat(item: fq.Item, a, b):
    i = item.get_linear_id()
    b[i] = a[max(i - 1, 0)] * 2


def compared(queue, submit, *shapes, strategy="overlap", **options):
    """The report of a list by ``strategy``, which leaves what it leaves unfused."""
    results = []
    for asked in ("unfused", strategy):
        rng = np.random.default_rng(2)
        arrays = [fq.Buffer(rng.integers(-9, 10, shape)) for shape in shapes]
        with fq.fusion(queue, strategy=asked, **(options if asked == strategy else {})) as f:
            submit(queue, *arrays)
        results.append([each.numpy().copy() for each in arrays])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)
    return f.report


def chain(*kernels, items=None):
    def submit(queue, *arrays):
        for kernel, a, b in zip(kernels, arrays, arrays[1:], strict=False):
            range_ = tuple(a.shape) if kernel is plane else int(np.prod(a.shape))
            queue.submit(kernel, range_ if items is None else items, a, b)

    return submit


SHAPES = [(7, 9), (9, 7), (8, 8), (1, 12), (12, 1), (33, 40)]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "shape", [SHAPES[0], *(pytest.param(s, marks=pytest.mark.slow) for s in SHAPES[1:])]
)
@pytest.mark.parametrize("kernels", [(across, down, across), (inside, down), (down, plane)])
def test_planes(reference_queue, kernels, shape):
    report = compared(reference_queue, chain(*kernels), *[shape] * (len(kernels) + 1))
    assert {r.producer for r in report.plan.recomputed} <= {*range(len(kernels) - 1)}
    for stage in report.plan.stages:
        if stage.kernel.ndim == 2 and kernels[-1] is not plane:
            assert len(stage.extents) == 2


def test_they_are_rows_of_the_arrays(reference_queue, way):
    report = compared(reference_queue, chain(across, down, across), *[(33, 40)] * 4)
    (stage,) = report.plan.stages
    assert stage.kernel.ndim == 2
    assert [(e.argument, e.dim) for e in stage.extents] == [(0, 0), (0, 1)]
    assert [r.producer for r in report.plan.recomputed] == [0, 1]


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 4, 5), (4, 4, 4), (5, 1, 6)])
def test_boxes(reference_queue, shape):
    report = compared(reference_queue, chain(box, box, box), *[shape] * 4)
    assert [r.producer for r in report.plan.recomputed] == [0, 1]


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("steps", [4, 5])
def test_time_steps(reference_queue, steps):
    def submit(queue, a, b):
        for _ in range(steps):
            queue.submit(inside, 33 * 40, a, b)
            a, b = b, a

    report = compared(reference_queue, submit, (33, 40), (33, 40))
    assert {0, 1} <= {r.producer for r in report.plan.recomputed}


@pytest.mark.parametrize("items", [32, 36, 37])
def test_ranges_that_are_not_the_whole_array(reference_queue, items):
    """Fewer rows than an array has, or a row and a half, have no extents that say so."""
    compared(reference_queue, chain(inside, down, items=items), *[(6, 8)] * 3)


def test_flat_arrays_beside_them(reference_queue):
    def submit(queue, a, b, c, d, e):
        queue.submit(across, 63, a, b)
        queue.submit(down, 63, b, c)
        queue.submit(flat, 63, d, e)

    compared(reference_queue, submit, (7, 9), (7, 9), (7, 9), 63, 63)


@pytest.mark.slow
def test_a_kept_plan_and_other_sizes(reference_queue):
    for shape in ((33, 40), (20, 40), (33, 40), (40, 33), (40, 40), (1, 40)):
        compared(reference_queue, chain(across, down, across), *[shape] * 4)


def test_work_groups_of_the_user_s_stay(reference_queue):
    @fq.kernel
    def in_groups(item: fq.NdItem, a, b):
        i = item.get_global_linear_id() // a.shape[1]
        j = item.get_global_linear_id() % a.shape[1]
        b[i, j] = a[i, max(j - 1, 0)]

    def submit(queue, a, b, c):
        queue.submit(in_groups, fq.NdRange((64,), (16,)), a, b)
        queue.submit(down, 64, b, c)

    compared(reference_queue, submit, (8, 8), (8, 8), (8, 8))


@pytest.mark.in_turn
@needs_device
@pytest.mark.parametrize("kernels", [(across, down, across), (inside, inside), (box, box)])
def test_on_the_device(way, kernels):
    shape = (11, 13, 17) if box in kernels else (45, 130)
    with fq.FusionQueue() as queue:
        report = compared(queue, chain(*kernels), *[shape] * (len(kernels) + 1))
    assert report.plan.recomputed
