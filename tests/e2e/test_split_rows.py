"""Launches along rows, of which the inside has code without conditions: nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.small_extents import SMALL_EXTENT
from fusionq.kernels.library import Array
from tests.in_turn import one_in, some_pairs

EXTREMES = (0, 1, -1, 5, 31, 64, 1 << 40, -(1 << 40), (1 << 63) - 1, -(1 << 63))
ROWS = ((1, 1), (1, 15), (2, 16), (3, 17), (1, 33), (5, 130), (40, 2), (33, 100))


@pytest.fixture
def queue(sycl_queue: fq.FusionQueue) -> Iterator[fq.FusionQueue]:
    """A queue of a CPU whose vectors have no registers for masks, all of whose rows are split that
    can be."""
    backend = sycl_queue._state.launcher.backend
    if backend.target.device.kind != "cpu":
        pytest.skip("rows are split on CPUs")
    info = replace(backend.target.device, splits_rows=True, masks_vectors=False)
    costs = replace(backend.target.costs, split_saved_seconds=0.0)
    backend.target = replace(
        backend.target, device=info, costs=costs, shortest_split_row=0, least_split_share=-np.inf
    )
    yield sycl_queue


def run(
    queue: fq.FusionQueue, kernel: Any, shape: tuple[int, ...], *more: Any, strategy: str = "auto"
) -> fq.Report:
    """The report of a kernel over ``shape``, once it has given what the reference backend gives."""
    rng = np.random.default_rng(3)
    a = rng.integers(-99, 99, shape).astype("float32")
    b = rng.integers(-99, 99, shape).astype("float32")
    expected = b.copy()
    with fq.FusionQueue("reference") as reference:
        reference.submit(kernel, fq.Range(*shape), a, expected, *more)
    out = b.copy()
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(kernel, fq.Range(*shape), a, out, *more)
    queue.wait()
    np.testing.assert_array_equal(out, expected)
    return f.report


def is_split(report: fq.Report) -> bool:
    (stage,) = report.plan.stages
    assert (stage.kernel.row_lanes is not None) == bool(report.stages[0].inside_rows)
    return stage.kernel.row_lanes is not None


# ----------------------------------------------------------------------------------- conditions
@fq.kernel
def with_else(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < i < a.shape[0] - 1 and 0 < j < a.shape[1] - 1:
        b[i, j] = a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j]
    else:
        b[i, j] = -a[i, j]


@fq.kernel
def beside_others(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[i, j] * 2
    if j >= 2 and j + 3 < a.shape[1]:
        b[i, j] = a[i, j - 2] + a[i, j + 3]
    if i == 0:
        b[i, j] = 7


@fq.kernel
def several(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i < a.shape[0] - 1 and j < a.shape[1] - 1:
        b[i, j] = a[i + 1, j] - a[i, j + 1]
    if i > 0 and j > 0:
        b[i, j] = b[i, j] + a[i - 1, j] + a[i, j - 1]


@fq.kernel
def clamped(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    last = a.shape[1] - 1
    b[i, j] = a[max(i - 1, 0), j] + a[i, max(j - 1, 0)] * 3 + a[i, min(j + 2, last)] * 5


@fq.kernel
def backwards(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    k = a.shape[1] - 1 - j
    b[i, k] = a[i, k] if 200 - j > 3 else a[i, j]


@fq.kernel
def around(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    m = a.shape[1]
    left = j - 1 if j > 0 else m - 1
    b[i, j] = a[i, left] + a[i, (j + 1) % m] * 2 + a[(i - 1) % a.shape[0], j] * 4


@fq.kernel
def in_place(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if j > 0:
        b[i, j] = b[i, j] * 2 + a[i, j - 1]
    else:
        b[i, j] += 1


@fq.kernel
def in_loops(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    total = a[i, j]
    for k in range(-3, 4):
        if 0 <= j + k < a.shape[1]:
            total += a[i, j + k] * k
    kept = fq.PrivateArray(2, np.float32, fill_zeros=True)
    kept[0] += total
    if j < a.shape[1] - 4:
        kept[1] = a[i, j + 4]
    b[i, j] = kept[0] - kept[1]


@fq.kernel
def on_data(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if j > 0 and a[i, j] > 0:
        b[i, j] = a[i, j - 1]
    elif a[i, j] < -50:
        b[i, j] = 0
    if j == 0:
        return
    b[i, j] += 1


@fq.kernel
def period_added(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    n, m = a.shape
    total = a[i, (j + (m - 2)) % m] * 3
    for k in range(-1, 2):
        for h in range(-1, 2):
            total += a[(i + k + n) % n, (j + h + m) % m] * (5 * k + h)
    b[i, j] = total


@fq.kernel
def left_out(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    total, count = a[i, j], np.int32(1)
    for k in range(-1, 2):
        for h in range(-1, 2):
            y, x = i + k, j + h
            if y < 0 or y >= a.shape[0] or x < 0 or x >= a.shape[1]:
                continue
            if a[y, x] < -90:
                break
            total += a[y, x] * (5 * k + h)
            count += 1
    b[i, j] = total * count


@fq.kernel
def narrow(item: fq.Item, a: Array, b: Array) -> None:
    i = np.int32(item.get_id(0))
    j = np.int32(item.get_id(1))
    last = np.int32(a.shape[1]) - 1
    factor = np.float32(3)
    if j > 0:
        left = j - 1
    else:
        left = np.int32(0)
        factor = np.float32(4)
    right = last if j >= last else j + 1
    b[i, j] = a[i, left] * factor + a[i, right]


@fq.kernel
def either_side(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    last = a.shape[1] - 1
    x = a[i, j] if j >= last else a[i, j + 1]
    y = 1.0 if last < j + 2 else a[i, j + 2]
    z = a[i, j - 1] if not j <= 0 else 2.0
    b[i, j] = x + y * 3 + z * 5


@fq.kernel
def strided(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    w = a.shape[1]
    total = a[i, j]
    for k in range(3):
        x = 2 * j + k - 1
        if x >= 0 and x < w:
            total += a[i, x] * k
    for k in range(max(3 * j - 2, 0), min(3 * j + 3, w)):
        total += a[i, k]
    if w - 1 - 2 * j >= 0:
        total -= a[i, w - 1 - j * 2]
    b[i, j] = total + a[i, min(5 * j + 1, w - 1)] + a[i, max(w - 3 * j - 3, 0)]


@fq.kernel
def strided_distance(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    w, h = a.shape[1], a.shape[0]
    x = i + (2 * j - 3) * -2
    y = (j + h) * 2 - i
    b[i, j] = (a[i, x] if 0 <= x < w else 2) + (a[i, y] if not (y < 0 or y >= w) else 5)


KERNELS = (
    with_else, beside_others, several, clamped, backwards, around, in_place, in_loops, on_data,
    period_added, left_out, narrow, either_side, strided,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_rows_of_all_lengths(queue: fq.FusionQueue, kernel: Any) -> None:
    for shape in one_in(4, ROWS, first=KERNELS.index(kernel) % 4):
        report = run(queue, kernel, shape)
        # Which bounds rows of few elements have is known when they are built.
        known = kernel in (beside_others, left_out) and shape[-1] <= SMALL_EXTENT
        of_points = bool(report.plan.stages[0].extents)  # rows of which are parts of a point
        assert is_split(report) or known or (of_points and shape[-1] <= SMALL_EXTENT), shape


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_tiles_of_rows_of_all_lengths(queue: fq.FusionQueue, kernel: Any) -> None:
    shapes = (*ROWS, (3, 18), (4, 20), (2, 22))
    for shape in one_in(5, shapes, first=KERNELS.index(kernel) % 5):
        rng = np.random.default_rng(3)
        given = [rng.integers(-99, 99, shape).astype("float32") for _ in range(2)]
        results = []
        for own in (queue, fq.FusionQueue("reference")):
            a, b = (fq.Buffer(array.copy()) for array in given)
            with fq.fusion(own, strategy="megakernel" if own is queue else "unfused"):
                for one, other in ((a, b), (b, a), (a, b)):
                    own.submit(kernel, fq.Range(*shape), one, other)
            results.append([a.numpy().copy(), b.numpy().copy()])
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


@fq.kernel
def by_arguments(item: fq.Item, a: Array, b: Array, s: np.int64, t: np.int64) -> None:
    i = item.get_id(0)
    if s < i and i + 1 < t:
        b[i] = a[i] * 3
    elif i - 3 >= t:
        b[i] = a[i] * 5
    else:
        b[i] = 1


def test_guards_by_arguments_that_hold_nowhere_everywhere_and_in_between(
    queue: fq.FusionQueue,
) -> None:
    for s, t in some_pairs(EXTREMES, EXTREMES):
        assert is_split(run(queue, by_arguments, (77,), s, t))


@fq.kernel
def at_distance(item: fq.Item, a: Array, b: Array, s: np.int64, t: np.int64) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    total = a[(i + s) % n] + a[min(max(i - s, 0), n - 1)] * 3 + a[max(min(t - 1 - i, n - 1), 0)] * 5
    if i + s < t and 3 - (i + t) != s:
        total += a[(2 - (s + i)) % n] * 7
    elif t - i >= s or 1 + i - t > s:
        total -= a[(t - i) % n]
    b[i] = total if s + i + 2 >= t - 4 else -total


@fq.kernel
def times_arguments(item: fq.Item, a: Array, b: Array, s: np.int64, t: np.int64) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    total = a[i]
    if 3 * i + s < t and 2 * i > s:
        total += a[(2 * i) % n]
    if 7 - 5 * i >= t:
        total -= 1
    b[i] = total if 4096 * i <= s - t else total * 3


@pytest.mark.parametrize("shape", [(40, 2), (40, 77), (3, 16), (5, 64)])
def test_multiples_at_a_distance(queue: fq.FusionQueue, shape: tuple[int, ...]) -> None:
    run(queue, strided_distance, shape)


def test_multiples_and_arguments(queue: fq.FusionQueue) -> None:
    firsts, seconds = (*EXTREMES, 3, 70, -76, 1 << 61, 1 << 62), (*EXTREMES, 2, 153, -80)
    for s, t in some_pairs(firsts, seconds):
        run(queue, times_arguments, (77,), s, t)


def test_distances_by_arguments(queue: fq.FusionQueue) -> None:
    firsts = (*EXTREMES, 3, 70, 77, -76, 1 << 61, (1 << 61) + 1, 1 << 62)
    for s, t in some_pairs(firsts, (*EXTREMES, 2, 76, -80)):
        run(queue, at_distance, (77,), s, t)
        run(queue, at_distance, (77,), t, s)


@fq.kernel
def in_windows(item: fq.Item, a: Array, b: Array, r: np.int64, s: np.int64) -> None:
    i = item.get_id(0)
    n = a.shape[0]
    total = a[i]
    for k in range(-r, r + 1):
        x = i + k
        if x >= 0 and x < n:
            total += a[x] * k
        total += a[min(max(i - k, 0), n - 1)]
    for k in range(s, s + 3):
        if 0 <= i + k - 1 < n:
            total -= a[i + k - 1]
        if 5 - (k - i) >= s or k == i:
            total += 3
    for k in range(r, -r, -2):
        total += a[(i + k - r + n) % n] * 2 if r < n else 1
    b[i] = total


def test_windows_by_arguments(queue: fq.FusionQueue) -> None:
    for r in (-3, 0, 1, 2, 7, 30, 100):
        assert is_split(run(queue, in_windows, (77,), r, 1))
    for s in EXTREMES:
        run(queue, in_windows, (77,), 2, s)


@pytest.mark.parametrize("strategy", ["megakernel", "overlap"])
def test_tiles_of_windows_by_arguments(queue: fq.FusionQueue, strategy: Any) -> None:
    given = np.random.default_rng(3).integers(-2, 3, 77).astype("float32")
    for r, s in ((0, 70), (2, -5), (5, 3), (40, 1 << 61), (-1, -(1 << 63)), (1, (1 << 63) - 1)):
        results = []
        for own in (queue, fq.FusionQueue("reference")):
            a, b = fq.Buffer(given.copy()), fq.Buffer(given.copy())
            with fq.fusion(own, strategy=strategy if own is queue else "unfused"):
                own.submit(in_windows, 77, a, b, r, s)
                own.submit(in_windows, 77, b, a, r, s)
            results.append([a.numpy().copy(), b.numpy().copy()])
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("strategy", ["megakernel", "overlap"])
def test_tiles_at_a_distance(queue: fq.FusionQueue, strategy: Any) -> None:
    given = np.random.default_rng(3).integers(-9, 9, 77).astype("float32")
    for s, t in ((3, 70), (-5, 80), (70, 3), (1 << 61, -1), (-(1 << 63), 5), (9, (1 << 63) - 1)):
        results = []
        for own in (queue, fq.FusionQueue("reference")):
            a, b = fq.Buffer(given.copy()), fq.Buffer(given.copy())
            with fq.fusion(own, strategy=strategy if own is queue else "unfused"):
                for _ in range(2):
                    own.submit(at_distance, 77, a, b, s, t)
                    own.submit(at_distance, 77, b, a, t, s)
            results.append([a.numpy().copy(), b.numpy().copy()])
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


def test_rows_are_split_at_a_distance(queue: fq.FusionQueue) -> None:
    for s in (0, 1, 5, -5, 76, 1 << 62):
        assert is_split(run(queue, moved_along, (3, 77), s))


@fq.kernel
def moved_along(item: fq.Item, a: Array, b: Array, s: np.int64) -> None:
    y, x = item.get_id(0), item.get_id(1)
    h, w = a.shape
    b[(y + s) % h, (x + s) % w] = a[y, max(x - s, 0) % w]


@fq.kernel
def by_periods(item: fq.Item, a: Array, b: Array, s: np.int64, t: np.int64) -> None:
    i = item.get_id(0)
    x = (i - 1 + s) % s
    y = (t + i + 3) % t
    z = (s + (i - t)) % s
    b[i] = a[x % 77] + a[y % 77] * 3 + (z % 1_000) * 5


def test_periods_that_are_added_and_wrap_around(queue: fq.FusionQueue) -> None:
    for s, t in some_pairs(EXTREMES, (*EXTREMES, 76, 77, 80)):
        run(queue, by_periods, (77,), s, t)


@fq.kernel
def in_space(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    k = item.get_id(2)
    inside = 0 < k < a.shape[2] - 1
    if 0 < i < a.shape[0] - 1 and j > 0 and inside:
        b[i, j, k] = a[i - 1, j, k] + a[i, j - 1, k] + a[i, j, k + 1] - a[i, j, k - 1]
    else:
        b[i, j, k] = 0


def test_three_dimensions(queue: fq.FusionQueue) -> None:
    for shape in ((1, 1, 1), (2, 3, 17), (4, 5, 40), (9, 1, 64)):
        assert is_split(run(queue, in_space, shape))


def test_ranges_without_work_items(queue: fq.FusionQueue) -> None:
    run(queue, with_else, (0, 40))
    run(queue, with_else, (40, 0))


@pytest.mark.parametrize("strategy", ["fused", "unfused"])
def test_lists_whose_guards_differ(queue: fq.FusionQueue, strategy: Any) -> None:
    rng = np.random.default_rng(7)
    given = [rng.integers(-9, 9, (21, 75)).astype("float32") for _ in range(4)]
    results = []
    for own in (queue, fq.FusionQueue("reference")):
        a, b, c, d = (fq.Buffer(array.copy()) for array in given)
        with fq.fusion(own, strategy=strategy) as f:
            own.submit(several, fq.Range(21, 75), a, b)
            own.submit(with_else, fq.Range(21, 75), a, c)
            own.submit(in_place, fq.Range(21, 75), a, d)
            own.submit(clamped, fq.Range(21, 75), a, b)
        results.append([buffer.numpy().copy() for buffer in (b, c, d)])
        if own is queue:
            kernels = [stage.kernel for stage in f.report.plan.stages]
            assert all(kernel.row_lanes is not None for kernel in kernels)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_views_that_overlap_and_strides(queue: fq.FusionQueue) -> None:
    """What is stored may be loaded by other names: rows are no longer repeatable."""
    whole = np.arange(64 * 80, dtype="float32").reshape(64, 80)
    views = (
        (whole[:, :60], whole[:, 20:]), (whole[::2, ::2], whole[1::2, 1::2]),
        (whole[::-1], whole[::-1].copy()), (whole.T[:50], np.zeros((50, 64), "float32")),
    )  # fmt: skip
    for a, b in views:
        given = whole.copy()
        other = b.copy()
        results = []
        for own in (queue, fq.FusionQueue("reference")):
            whole[...], b[...] = given, other
            own.submit(fused_rows, fq.Range(*b.shape), a, b)
            own.wait()
            results.append((whole.copy(), b.copy()))
        whole[...] = given
        for one, another in zip(*results, strict=True):
            np.testing.assert_array_equal(one, another)


@fq.kernel
def fused_rows(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < j < b.shape[1] - 1:
        b[i, j] = b[i, j] + 1
    else:
        b[i, j] = -b[i, j]


# ------------------------------------------------------------------------------------- the others
@fq.kernel
def bounded(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < j < a.shape[1] - 1:
        b[i, j] = a[i, j - 1]


@fq.kernel
def by_rows(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0:
        b[i, j] = a[i - 1, j]
    else:
        b[i, j] = 0


def test_what_is_no_mask_is_left_alone(queue: fq.FusionQueue) -> None:
    assert not is_split(run(queue, by_rows, (20, 70)))
    report = run(queue, bounded, (20, 70))
    assert not is_split(report)
    assert report.stages[0].loop_bounds == (
        "item.get_id(1) >= 1", "item.get_id(1) < a.shape[1] - 1",
    )  # fmt: skip
    assert "bounds of the loop over work-items: item.get_id(1) >= 1" in str(report)


def test_the_report_says_what_is_not_asked_inside(queue: fq.FusionQueue) -> None:
    report = run(queue, with_else, (20, 70))
    inside = ("0 < item.get_id(1)", "item.get_id(1) < a.shape[1] - 1")
    assert report.stages[0].inside_rows == inside
    assert f"not asked inside of rows: {', '.join(inside)}" in str(report)
    assert report.to_dict()["stages"][0]["inside_rows"] == list(inside)


@fq.kernel
def wrapping(item: fq.Item, a: Array, b: Array, r: np.int64) -> None:
    i, j = item.get_id(0), item.get_id(1)
    w = a.shape[1]
    left = j - 1 if j > 0 else j + w - 1
    right = j + 1 if j < w - 1 else j - w + 1
    x = a[i, j - r] if j >= r else a[i, 0]
    y = a[i, j] if j >= w - 2 else a[i, j + 2]
    b[i, j] = a[i, left] + a[i, right] * 3 + x * 5 + y * 7


def test_which_side_of_a_condition_is_the_inside(queue: fq.FusionQueue) -> None:
    for shape in ((3, 70), (2, 17), (2, 2), (1, 1)):
        report = run(queue, wrapping, shape, 2)
        if shape == (3, 70):
            (stage,) = report.stages
            assert {text.split(") ", 1)[1] for text in stage.inside_rows} == {
                "> 0", "< a.shape[1] - 1", ">= r", "< a.shape[1] - 2"
            }  # fmt: skip


def test_a_profile_runs_along_rows(queue: fq.FusionQueue) -> None:
    a = np.arange(40 * 70, dtype="float32").reshape(40, 70)
    expected, out = np.zeros_like(a), np.zeros_like(a)
    with fq.FusionQueue("reference") as reference:
        reference.submit(with_else, fq.Range(40, 70), a, expected)
    with fq.profile(queue, compare=False) as profile, fq.fusion(queue):
        queue.submit(with_else, fq.Range(40, 70), a, out)
    queue.wait()
    np.testing.assert_array_equal(out, expected)
    assert "with_else" in str(profile)


def test_checked_runs_ask_for_all(queue: fq.FusionQueue) -> None:
    a = np.arange(40 * 70, dtype="float32").reshape(40, 70)
    with pytest.raises(fq.ArgumentError), fq.fusion(queue, check=True):
        queue.submit(beyond, fq.Range(40, 70), a, np.zeros_like(a))


@fq.kernel
def beyond(item: fq.Item, a: Array, b: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    k = item.get_id(1) + a.shape[1] * (a[0, 0] == 0)
    b[i, j] = a[i, k] if j > 0 else a[i, j]


def test_rows_that_are_long_enough_are_split_whatever_was_there_before(
    queue: fq.FusionQueue,
) -> None:
    """The plan of rows of 40 is none for rows of 48, nor for others of their order."""
    backend = queue._state.launcher.backend
    backend.target = replace(backend.target, shortest_split_row=3)
    assert backend.target.sub_group_size == 16
    found = [is_split(run(queue, with_else, (9, row))) for row in (40, 47, 48, 250, 63, 41, 64)]
    assert found == [False, False, True, True, True, False, True]
    backend.target = replace(backend.target, shortest_split_row=8)
    found = [is_split(run(queue, several, (9, row))) for row in (100, 64, 128, 127, 200)]
    assert found == [False, False, True, False, True]
