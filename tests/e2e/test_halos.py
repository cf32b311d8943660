"""Halos computed anew: what is proved, what is refused and why, always the unfused result."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.halo_lists import (
    FLAGS,
    Lists,
    N,
    accumulated,
    by_range,
    chain,
    double,
    from_the_inside,
    inside_only,
    into_odd_elements,
    lazily,
    neighbours,
    offset_by_one,
    reversed_,
    shifted,
    while_positive,
)


# ----------------------------------------------------------------------------- computed anew
@pytest.mark.parametrize("flag", FLAGS)
def test_a_neighbour_s_element_is_computed_anew(reference_queue, way, flag):
    report = Lists(reference_queue, flag)(chain(double, neighbours))
    assert report.strategy == "overlap"
    assert len(report.stages) == 1
    assert report.fallback is None
    (decision,) = (p for p in report.promotions if p.buffer == "t")
    assert decision.scope == ("private" if way == "inlined" else "local")
    assert (report.plan.stages[0].tiling is not None) == (way == "tiled")
    assert "t" not in [p.name for p in report.plan.stages[0].kernel.params]


@pytest.mark.parametrize(
    ("first", "second", "items"),
    [
        (inside_only, from_the_inside, N),
        (inside_only, neighbours, N),
        (reversed_, neighbours, N),
        (accumulated, neighbours, N),
        (by_range, neighbours, N),
        (double, lazily, N),
        (double, neighbours, N),
    ],
)
def test_what_is_written_where_it_is_read(lists, first, second, items):
    report = lists(chain(first, second, items))
    assert [r.buffer for r in report.plan.recomputed] == ["t"]


def test_an_interior_written_from_its_own_first_element(lists):
    report = lists(chain(offset_by_one, from_the_inside, N - 2))
    assert report.strategy == "overlap"


def test_distances_that_only_the_guard_makes_whole(lists):
    def submit(queue, a, b, t, u, **_):
        queue.submit(double, N, a, t)
        queue.submit(into_odd_elements, N, t, u)
        queue.submit(neighbours, N, u, b)

    (computed,) = lists(submit).plan.recomputed
    assert (computed.buffer, computed.stored) == ("u", True)  # its elements keep what was there


def test_halos_add_up(lists):
    def submit(queue, a, b, t, u, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, u)
        queue.submit(neighbours, N, u, b)

    report = lists(submit)
    assert [r.buffer for r in report.plan.recomputed] == ["t", "u"]
    assert [stage.submissions for stage in report.stages] == [(0, 1, 2)]


def test_a_temporary_that_two_submissions_read(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)
        queue.submit(shifted, N, t, c, 2)

    report = lists(submit)
    assert report.plan.recomputed[0].consumers == (1, 2)


def test_a_distance_that_a_scalar_says(lists):
    for by in (1, -2, 3):
        assert lists(chain(double, shifted, N, by)).strategy == "overlap"


def test_another_dtype_is_converted_as_it_is_when_stored(reference_queue):
    def submit(queue, a, b, **_):
        a.write(np.arange(N) * 7)  # twice that is more than int8 holds
        narrow = fq.Buffer(np.zeros(N, np.int8), internal=True)
        queue.submit(double, N, a, narrow)
        queue.submit(neighbours, N, narrow, b)

    assert Lists(reference_queue)(submit).strategy == "overlap"


@fq.kernel
def from_a_scalar_on(item: fq.Item, a, t, by):
    i = item.get_id(0) + by
    if i < t.shape[0]:
        t[i] = a[i] + by


def test_a_store_at_a_distance_that_a_scalar_says(lists):
    for by in (np.int32(0), np.uint8(0), 0, np.int64(0)):

        def submit(queue, a, b, t, by=by, **_):
            queue.submit(from_a_scalar_on, N, a, t, by)
            queue.submit(neighbours, N, t, b)

        assert lists(submit).strategy == "overlap"


def test_what_cannot_be_inlined_is_computed_by_work_groups_or_stays(lists, way):
    def submit(queue, a, b, t, u, **_):
        queue.submit(double, N, a, t)
        queue.submit(while_positive, N, t, u)
        queue.submit(neighbours, N, u, b)

    report = lists(submit)
    if way == "tiled":
        assert [r.buffer for r in report.plan.recomputed] == ["t", "u"]
        return
    assert [r.buffer for r in report.plan.recomputed] == ["u"]
    (kept,) = (p for p in report.promotions if p.buffer == "t")
    assert kept.scope == "local"  # its neighbours' elements are read where u is computed anew


# ------------------------------------------------------------------------------ plans, caches
@pytest.mark.slow
def test_other_sizes_and_scalars_take_their_own_proofs(reference_queue):
    def run(n, by):
        a, b = fq.Buffer(np.arange(n)), fq.Buffer(n, np.int64)
        t = fq.Buffer(n, np.int64, internal=True)
        with fq.fusion(reference_queue, strategy="overlap", promote="internal") as f:
            reference_queue.submit(double, n, a, t)
            reference_queue.submit(shifted, n, t, b, by)
        expected = np.zeros(n, np.int64)
        for i in range(n):
            if 0 <= i + by < n:
                expected[i] = 2 * (i + by) + 2 * i
        np.testing.assert_array_equal(b.numpy(), expected)
        return f.report.strategy

    assert {run(n, by) for n in (N, 5, 2, 1, 100) for by in (1, -1, 2, 4)} <= {"overlap", "fused"}


@fq.kernel
def laplace(item: fq.Item, a, lap):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        lap[i, j] = a[i, j] * 4 - (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    else:
        lap[i, j] = 0


@fq.kernel
def flux(item: fq.Item, lap, fx):
    i, j = item.get_id(0), item.get_id(1)
    if j < lap.shape[1] - 1:
        fx[i, j] = max(lap[i, j + 1] - lap[i, j], 0)
    else:
        fx[i, j] = 0


@fq.kernel
def update(item: fq.Item, a, fx, out):
    i, j = item.get_id(0), item.get_id(1)
    if j > 0:
        out[i, j] = a[i, j] - (fx[i, j] - fx[i, j - 1])
    else:
        out[i, j] = a[i, j]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(13, 18), (1, 7), (64, 65)])
def test_two_dimensions_on_the_device(sycl_queue, shape):
    data = np.random.default_rng(0).random(shape).astype(np.float32)
    results = []
    for strategy in ("unfused", "overlap"):
        a, out = fq.Buffer(data), fq.Buffer(shape, np.float32)
        lap, fx = (fq.Buffer(shape, np.float32, internal=True) for _ in range(2))
        with fq.fusion(sycl_queue, strategy=strategy, promote="internal") as f:
            sycl_queue.submit(laplace, shape, a, lap)
            sycl_queue.submit(flux, shape, lap, fx)
            sycl_queue.submit(update, shape, a, fx, out)
        results.append(out.numpy().copy())
        if strategy == "overlap" and shape[0] > 1:
            assert f.report.strategy == "overlap"
            assert len(f.report.stages) == 1
            assert [tuple(r.halo) for r in f.report.plan.recomputed] == [((1, 2),), ((1, 2),)]
            f.replay()
            np.testing.assert_array_equal(out.numpy(), results[-1])
    np.testing.assert_array_equal(results[1], results[0])


@fq.kernel
def mean_of_six(item: fq.Item, a, out, n, m, o):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    if i == 0 or i == n - 1 or j == 0 or j == m - 1 or k == 0 or k == o - 1:
        out[i, j, k] = a[i, j, k]
    else:
        below = a[i - 1, j, k] + a[i, j - 1, k] + a[i, j, k - 1]
        out[i, j, k] = (below + a[i + 1, j, k] + a[i, j + 1, k] + a[i, j, k + 1]) / 6


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("shape", [(9, 10, 37), (1, 3, 2), (4, 1, 40)])
@pytest.mark.parametrize("steps", [2, 3])
def test_a_box_whose_sides_are_left_out_by_or(sycl_queue, shape, steps):
    data = np.random.default_rng(1).random(shape).astype(np.float32)
    results = []
    for strategy in ("unfused", "overlap"):
        buffers = [fq.Buffer(shape, np.float32, internal=True) for _ in range(steps - 1)]
        buffers = [fq.Buffer(data), *buffers, fq.Buffer(shape, np.float32)]
        with fq.fusion(sycl_queue, strategy=strategy, promote="internal") as f:
            for a, b in pairwise(buffers):
                sycl_queue.submit(mean_of_six, shape, a, b, *shape)
        results.append(buffers[-1].numpy().copy())
    np.testing.assert_array_equal(results[1], results[0])
    if min(shape) > 2:
        assert f.report.strategy == "overlap"
        assert len(f.report.stages) == 1
        assert len(f.report.plan.recomputed) == steps - 1


@fq.kernel
def clamped_mean(item: fq.Item, a, out, n, m, o):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    below = a[max(i - 1, 0), j, k] + a[i, max(j - 1, 0), k] + a[i, j, max(k - 1, 0)]
    above = a[min(i + 1, n - 1), j, k] + a[i, min(j + 1, m - 1), k] + a[i, j, min(k + 1, o - 1)]
    out[i, j, k] = (below + above) / 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "edges"),
    [((12, 13, 40), (12, 13, 40)), ((9, 12, 33), (9, 12, 33)), ((9, 12, 33), (4, 12, 20))],
)
def test_indices_clamped_to_scalars_in_three_dimensions(sycl_queue, shape, edges):
    """One plan serves sizes that the scalars are, another one those that they are not."""
    data = np.random.default_rng(1).random(shape).astype(np.float32)
    results = []
    for strategy in ("unfused", "overlap"):
        a, t, out = fq.Buffer(data), fq.Buffer(shape, np.float32, internal=True), fq.Buffer(data)
        with fq.fusion(sycl_queue, strategy=strategy, promote="internal") as f:
            sycl_queue.submit(clamped_mean, shape, a, t, *edges)
            sycl_queue.submit(clamped_mean, shape, t, out, *edges)
        results.append(out.numpy().copy())
    np.testing.assert_array_equal(results[1], results[0])
    assert (f.report.strategy == "overlap") == (shape == edges)
