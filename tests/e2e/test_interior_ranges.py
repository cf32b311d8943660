"""Halos computed anew of kernels over the inside of an array, such as ``id + 1`` in a range of
``n - 2``: who reads beside it finds what was there before."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.halo_lists import neighbours, reference_queue, way
from tests.property.running import needs_device

__all__ = ["reference_queue", "way"]


@fq.kernel
def inside(item: fq.Item, a, b):
    i = item.get_id(0) + 1
    b[i] = a[i - 1] + a[i] - a[i + 1]


@fq.kernel
def from_(item: fq.Item, a, b, first):
    i = item.get_id(0) + first
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + 2 * a[i + 1]


@fq.kernel
def turned_round(item: fq.Item, a, b):
    i = b.shape[0] - 3 - item.get_id(0)
    b[i] = a[i] * 2 - a[i + 1]


@fq.kernel
def every_second(item: fq.Item, a, b):
    i = 2 * item.get_id(0) + 1
    b[i] = a[i - 1] + a[i]


@fq.kernel
def of_its_range(item: fq.Item, a, b):
    i = item.get_id(0) + 2
    b[i] = a[item.get_range(0) - item.get_id(0)] + item.get_range(0)


@fq.kernel
def where_positive(item: fq.Item, a, b):
    i = item.get_id(0) + 1
    if a[i] > 0:
        b[i] = a[i]


@fq.kernel
def up_to_a_bound(item: fq.Item, a, b):
    i = item.get_id(0) + 2
    if i < b.shape[0] - 5:
        b[i] = a[i] + a[i - 2]
    elif i > b.shape[0] - 3:
        b[i] = -a[i]


@fq.kernel
def added_up(item: fq.Item, a, b):
    i = item.get_id(0) + 1
    b[i] = 0
    for k in range(3):
        b[i] += a[i + k - 1] * (k + 1)


@fq.kernel
def two_results(item: fq.Item, a, b, c):
    i = item.get_id(0) + 1
    b[i] = a[i - 1] * 2
    c[i] = a[i + 1] - 3


@fq.kernel
def two_results_apart(item: fq.Item, a, b, c):
    i = item.get_id(0)
    b[i + 1] = a[i] * 2
    c[i + 3] = a[i + 1] - 3


@fq.kernel
def of_two(item: fq.Item, b, c, out):
    i = item.get_id(0)
    if i > 0 and i < out.shape[0] - 1:
        out[i] = b[i - 1] + b[i + 1] - c[i - 1] * c[i + 1]


@fq.kernel
def put(item: fq.Item, b, at, value):
    b[at + item.get_id(0)] = value


@fq.kernel
def in_groups(item: fq.NdItem, a, b):
    i = item.get_global_id(0) + 1
    b[i] = a[i - 1] - a[i + 1]


N = 61


def compared(queue, submit, shape=N, **options):
    """The report of a list by ``strategy="overlap"``, which leaves what it leaves unfused."""
    results = []
    for strategy in ("unfused", "overlap"):
        rng = np.random.default_rng(7)
        arrays = [fq.Buffer(rng.integers(-9, 10, shape)) for _ in range(4)]
        asked = options if strategy == "overlap" else {}
        with fq.fusion(queue, strategy=strategy, promote="internal", **asked) as f:
            submit(queue, *arrays)
        results.append([each.numpy().copy() for each in arrays])
    for name, expected, found in zip("abcd", *results, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=name)
    return f.report


def in_turn(kernel, items, steps, *scalars):
    def submit(queue, a, b, *_):
        for _ in range(steps):
            queue.submit(kernel, items, a, b, *scalars)
            a, b = b, a

    return submit


def then(kernel, items, *scalars):
    def submit(queue, a, b, c, *_):
        queue.submit(kernel, items, a, b, *scalars)
        queue.submit(neighbours, N, b, c)

    return submit


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("kernel", "items", "scalars"),
    [
        (inside, N - 2, ()),
        (inside, N - 5, ()),
        (inside, 1, ()),
        (from_, N - 4, (2,)),
        (from_, N - 4, (0,)),
        (from_, N, (-3,)),
        (from_, N + 9, (-3,)),
        (from_, 5, (N - 3,)),
        (turned_round, N - 4, ()),
        (every_second, N // 2, ()),
        (every_second, 7, ()),
        (of_its_range, N - 5, ()),
        (up_to_a_bound, N - 2, ()),
        (added_up, N - 2, ()),
        (in_groups, fq.NdRange(((N - 2) // 59 * 59,), (59,)), ()),
    ],
)
def test_elements_that_no_work_item_has_are_what_they_were(reference_queue, kernel, items, scalars):
    report = compared(reference_queue, then(kernel, items, *scalars))
    assert [(r.producer, r.stored) for r in report.plan.recomputed] == [(0, True)]


def test_an_empty_inside(reference_queue):
    report = compared(reference_queue, then(inside, 0))
    assert report.plan.recomputed == ()


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("n", [3, 4, 5, 6, 17, 300])
def test_time_steps_over_buffers_that_take_turns(reference_queue, n):
    report = compared(reference_queue, in_turn(inside, n - 2, 5), n)
    if n > 16:
        assert {0, 1} <= {r.producer for r in report.plan.recomputed}
        assert all(r.stored == (r.producer == 3) for r in report.plan.recomputed)


@pytest.mark.slow
def test_both_buffers_keep_edges_of_their_own(reference_queue):
    """Of one two elements at both ends, of the other four and three."""

    def submit(queue, a, b, *_):
        for _ in range(3):
            queue.submit(from_, N - 4, a, b, 2)
            queue.submit(from_, N - 7, b, a, 4)

    report = compared(reference_queue, submit)
    assert {0, 1} <= {r.producer for r in report.plan.recomputed}


@pytest.mark.slow
def test_an_inside_that_shrinks(reference_queue):
    """What a step leaves out is what the step before it wrote."""

    def submit(queue, a, b, *_):
        for k in range(1, 7):
            queue.submit(from_, N - 2 * k, a, b, k)
            a, b = b, a

    compared(reference_queue, submit)


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "between", "behind", "each step"])
def test_edges_that_others_write(reference_queue, when):
    def submit(queue, a, b, c, d):
        if when == "before":
            queue.submit(put, 1, b, 0, 77)
        queue.submit(inside, N - 2, a, b)
        if when in ("between", "each step"):
            queue.submit(put, 1, b, 0, 55)
            queue.submit(put, 1, b, N - 1, 56)
        queue.submit(inside, N - 2, b, c)
        if when == "behind":
            queue.submit(put, 2, b, 0, 33)
        if when == "each step":
            queue.submit(put, 1, c, 0, 44)
            queue.submit(put, 1, c, N - 1, 45)
        queue.submit(inside, N - 2, c, d)

    compared(reference_queue, submit)


def test_results_of_one_kernel(reference_queue):
    def submit(queue, a, b, c, d):
        queue.submit(two_results, N - 2, a, b, c)
        queue.submit(of_two, N, b, c, d)

    report = compared(reference_queue, submit)
    assert {(r.producer, r.argument) for r in report.plan.recomputed} == {(0, 1), (0, 2)}


def test_results_of_one_kernel_at_different_elements(reference_queue):
    def submit(queue, a, b, c, d):
        queue.submit(two_results_apart, N - 5, a, b, c)
        queue.submit(of_two, N, b, c, d)

    reason = compared(reference_queue, submit).fallback
    assert "is not certain to be of an element that is written" in reason


def test_views_that_overlap(reference_queue):
    """The inside by a view, read as a whole."""

    def submit(queue, a, b, c, _):
        queue.submit(neighbours, N - 2, a[1:-1], b[1:-1])
        queue.submit(neighbours, N, b, c)

    assert "views that differ" in compared(reference_queue, submit).fallback


def test_before_and_after_are_memory_that_others_write_by_address(reference_queue):
    """The reader's result lies over the edge that the producer leaves out."""
    results = []
    for strategy in ("unfused", "overlap"):
        memory, a = fq.Buffer(np.arange(2 * N)), fq.Buffer(np.arange(N) % 7)
        b, c = memory[:N], memory[N - 2 : 2 * N - 2]
        with fq.fusion(reference_queue, strategy=strategy):
            reference_queue.submit(inside, N - 2, a, b)
            reference_queue.submit(neighbours, N, b, c)
        results.append(memory.numpy().copy())
    np.testing.assert_array_equal(*results)


def test_a_flagged_buffer_whose_edges_are_read_is_stored(reference_queue):
    results = []
    for strategy in ("unfused", "overlap"):
        rng = np.random.default_rng(3)
        a, c = (fq.Buffer(rng.integers(-9, 10, N)) for _ in range(2))
        b = fq.Buffer(rng.integers(-9, 10, N), promote_private=True)
        with fq.fusion(reference_queue, strategy=strategy) as f:
            then(inside, N - 2)(reference_queue, a, b, c)
        results.append([x.numpy().copy() for x in (a, b, c)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [r.stored for r in f.report.plan.recomputed] == [True]


def test_stores_under_a_condition_on_data_are_refused(reference_queue):
    report = compared(reference_queue, then(where_positive, N - 2))
    assert report.plan.recomputed == ()
    assert "submission 0 writes" in report.fallback


def test_results_for_other_sizes_of_range_and_array(reference_queue):
    """A plan that is kept serves lists in which both have other sizes, or is not used."""
    for items, n in ((N - 2, N), (N - 1, N + 1), (N - 6, N), (40, N), (2 * N - 2, 2 * N)):
        compared(reference_queue, in_turn(inside, items, 4), n)


# ---------------------------------------------------------------------------- more dimensions
@fq.kernel
def inner_plane(item: fq.Item, a, b):
    i, j = item.get_id(0) + 1, item.get_id(1) + 2
    b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 2] - 4 * a[i, j]


@fq.kernel
def transposed_plane(item: fq.Item, a, b):
    j, i = item.get_id(0) + 1, item.get_id(1) + 1
    b[i, j] = a[i, j - 1] - a[i, j + 1]


@fq.kernel
def one_row(item: fq.Item, a, b):
    j = item.get_id(0) + 1
    b[3, j] = a[3, j - 1] + a[3, j + 1]


@fq.kernel
def of_a_plane(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] - a[i, j + 1]


@fq.kernel
def inner_box(item: fq.Item, a, b):
    i, j, k = item.get_id(0) + 1, item.get_id(1) + 1, item.get_id(2) + 1
    b[i, j, k] = a[i - 1, j, k] + a[i, j + 1, k] - a[i, j, k - 1] + a[i, j, k + 1]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("kernel", "items"),
    [
        (inner_plane, (11, 13)),
        (inner_plane, (1, 1)),
        (inner_plane, (10, 5)),
        (transposed_plane, (15, 11)),
        (one_row, (15,)),
    ],
)
@pytest.mark.parametrize("read", [of_a_plane, inner_plane])
def test_planes(reference_queue, kernel, items, read):
    def submit(queue, a, b, c, *_):
        queue.submit(kernel, items, a, b)
        queue.submit(read, (13, 17) if read is of_a_plane else (11, 14), b, c)

    report = compared(reference_queue, submit, (13, 17))
    assert {r.producer for r in report.plan.recomputed} == {0}


@pytest.mark.slow
def test_boxes(reference_queue):
    shape = (7, 6, 9)
    report = compared(reference_queue, in_turn(inner_box, (5, 4, 7), 4), shape)
    assert {r.producer for r in report.plan.recomputed} == {0, 1}


@pytest.mark.in_turn
@pytest.mark.slow
@needs_device
@pytest.mark.parametrize(
    ("kernel", "shape", "items"),
    [
        (inside, (5000,), (4998,)),
        (inner_plane, (67, 190), (65, 187)),
        (inner_box, (19, 23, 70), (17, 21, 68)),
    ],
)
def test_on_the_device(way, kernel, shape, items):
    with fq.FusionQueue() as queue:
        report = compared(queue, in_turn(kernel, items, 4), shape)
    assert {r.producer for r in report.plan.recomputed} == {0, 1}
