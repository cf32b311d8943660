"""Overlapped tiles whose local memory is a ring of planes: always the unfused result.

Mostly on the reference backend, whose work-items take turns at barriers only, so that what is
overwritten too early, or not computed, is seen.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fusionq as fq
from fusionq.passes.sliding_window import ring_of
from fusionq.planning import overlapped_tiles
from fusionq.planning.tile_shape import Growth, TileCosts, TileShape, best_tile
from tests.e2e.test_overlapped_tiles import (
    columns,
    combined,
    compared,
    cube,
    image,
    image_of_planes,
    line,
    numbers,
    planes_of_image,
    queue,
    reference_queue,
    rows,
    scaled_by_row,
    summed,
    temporary,
    tiles,
)
from tests.in_turn import is_whole
from tests.property.windows import slides
from tests.unit.targets import TWO_CORES

__all__ = ["queue", "reference_queue"]


@fq.kernel
def star(item: fq.Item, a, t):
    k, j, i = item.get_id(0) + 1, item.get_id(1) + 1, item.get_id(2) + 1
    s = a[k - 1, j, i] - 2 * a[k + 1, j, i] + a[k, j - 1, i] * 3
    t[k, j, i] = s - a[k, j + 1, i] + a[k, j, i - 1] + 5 * a[k, j, i + 1]


@fq.kernel
def far_apart(item: fq.Item, t, u):
    i, j = item.get_id(0), item.get_id(1)
    n = t.shape[0]
    u[i, j] = t[max(i - 5, 0), j] - t[min(i + 7, n - 1), max(j - 1, 0)] * 2


@fq.kernel
def upside_down(item: fq.Item, a, t):
    i, j = item.get_id(0), item.get_id(1)
    t[t.shape[0] - 1 - i, j] = a[i, j] * 2 - a[max(i - 1, 0), j]


@fq.kernel
def from_below(item: fq.Item, t, u):
    i, j = item.get_id(0), item.get_id(1)
    n = t.shape[0]
    u[i, j] = t[n - 1 - i, j] + t[max(n - 2 - i, 0), j]


@fq.kernel
def turned(item: fq.Item, a, t):
    i, j = item.get_id(0), item.get_id(1)
    t[j, i] = a[i, j] + a[max(i - 1, 0), j]


@fq.kernel
def turned_back(item: fq.Item, t, u):
    i, j = item.get_id(0), item.get_id(1)
    u[i, j] = t[j, i] - t[j, max(i - 1, 0)]


@fq.kernel
def halved_rows(item: fq.Item, t, u):
    i, j = item.get_id(0), item.get_id(1)
    u[i, j] = t[i // 2, j] + t[min(i // 2 + 1, t.shape[0] - 1), j] * 3


@fq.kernel
def every_other_row(item: fq.Item, t, u):
    i, j = item.get_id(0), item.get_id(1)
    if 2 * i + 1 < t.shape[0]:
        u[i, j] = t[2 * i, j] - t[2 * i + 1, j]


@fq.kernel
def diagonal(item: fq.Item, a, t):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and j >= i % 3:
        t[i, j] = a[i - 1, j] + i
    else:
        t[i, j] = a[i, j] - j


@fq.kernel
def negated(item: fq.Item, t, b, c):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = -t[max(i - 1, 0), j]
    c[i, j] = c[i, j] * 2 + t[i, j]


WINDOWS = [(1, 16), (2, 8), (3, 9)]


def pytest_generate_tests(metafunc):
    """Tests have one of the windows in turn, those that are marked all of them, and so have all in
    the profile ``nightly``."""
    marks = metafunc.definition.iter_markers("parametrize")
    if not any(mark.args[0] == "window" for mark in marks):
        in_turn = metafunc.definition.get_closest_marker("in_turn")
        chosen = WINDOWS if in_turn or is_whole() else [WINDOWS[next(TURNS) % len(WINDOWS)]]
        metafunc.parametrize("window", chosen, indirect=True)


TURNS = itertools.count()


@pytest.fixture(autouse=True)
def window(request, monkeypatch):
    """The planes by which windows go on, and those of a tile: wherever a tile may be one."""

    def chosen(extents, costs, groups, target):
        if not costs.slides:
            return best_tile(extents, costs, groups, target)
        planes, tile = request.param
        lanes = groups[0][-1]
        return TileShape((tile, *(3 for _ in extents[1:-1]), 2 * lanes), groups[0], planes)

    monkeypatch.setattr(overlapped_tiles, "best_tile", chosen)
    return request.param


def windows(report):
    """The launches whose work-groups do windows."""
    return [stage for stage in report.plan.stages if slides(stage)]


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("shape", [(37, 83), (3, 200), (70, 5), (2, 40), (64, 64)])
def test_chains_of_stencils(queue, shape, window):
    planes, tile = window
    report = compared(queue, image(shape))
    assert len(windows(report)) == 1
    (tiling,) = tiles(report)
    first, second, last = tiling.parts
    assert last.items == tiling.tile == (tile, tiling.tile[1])
    assert (first.items[0], second.items[0]) == (tile + 5, tile + 1)
    local = {a.name: a.shape[0] for a in report.plan.stages[0].kernel.arrays}
    assert local == {"t": ring_of(planes + 5), "u": ring_of(planes + 1)}


@pytest.mark.slow
@pytest.mark.in_turn
def test_temporaries_of_several_types(queue):
    assert tiles(compared(queue, image((29, 45), (np.float64, np.int16, np.float32))))


@pytest.mark.in_turn
@pytest.mark.parametrize("shape", [(12, 9, 21), (5, 3, 70)])
def test_three_dimensions(reference_queue, shape):
    def submit(queue):
        a, b = fq.Buffer(numbers(shape)), fq.Buffer(numbers(shape))
        t, u = temporary(shape), temporary(shape)
        queue.submit(cube, shape, a, t)
        queue.submit(cube, shape, t, u)
        queue.submit(cube, shape, u, b)
        return [a, b]

    assert len(tiles(compared(reference_queue, submit))) == 1


def insides_of_boxes(n):
    """Steps of which each leaves the faces as they were before."""
    shape = (n + 2, 7, 37)

    def submit(queue):
        a, b = fq.Buffer(numbers(shape)), fq.Buffer(numbers(shape) * 2, internal=True)
        for _ in range(2):
            queue.submit(star, (n, 5, 35), a, b)
            queue.submit(star, (n, 5, 35), b, a)
        return [a]

    return submit


@pytest.mark.slow
def test_insides_of_boxes_that_take_turns(queue):
    assert len(windows(compared(queue, insides_of_boxes(18)))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("window", [(3, 9)], indirect=True)
@pytest.mark.parametrize("n", [2, 3])
def test_insides_of_boxes_of_fewer_planes_than_a_window(reference_queue, n):
    assert len(windows(compared(reference_queue, insides_of_boxes(n)))) == 1


def test_an_empty_range(reference_queue):
    def submit(queue):
        a, b, t = fq.Buffer(numbers((9, 0))), fq.Buffer((9, 0), np.int64), temporary((9, 0))
        queue.submit(rows, (9, 0), a, t)
        queue.submit(columns, (9, 0), t, b)
        return [a, b]

    compared(reference_queue, submit)


@pytest.mark.slow
def test_planes_that_are_read_far_apart(reference_queue):
    def submit(queue):
        a, b, t = fq.Buffer(numbers((61, 40))), fq.Buffer((61, 40), np.int64), temporary((61, 40))
        queue.submit(diagonal, (61, 40), a, t)
        queue.submit(far_apart, (61, 40), t, b)
        return [a, b]

    assert tiles(compared(reference_queue, submit))


def test_a_producer_of_other_dimensions(reference_queue):
    shape = (19, 33)

    def submit(queue):
        v, a = fq.Buffer(numbers(shape[0])), fq.Buffer(numbers(shape))
        r, out = temporary(shape[0]), fq.Buffer(shape, np.int64)
        queue.submit(line, shape[0], v, r)
        queue.submit(scaled_by_row, shape, r, a, out)
        return [v, a, out]

    assert len(windows(compared(reference_queue, submit))) == 1


@pytest.mark.slow
def test_ranges_that_differ(reference_queue):
    def submit(queue):
        a, b = fq.Buffer(numbers((40, 50))), fq.Buffer(numbers((40, 50)))
        c, t = fq.Buffer(numbers((40, 50))), temporary((40, 50))
        queue.submit(diagonal, (40, 50), a, t)
        queue.submit(columns, (23, 31), t, b)
        queue.submit(combined, (40, 37), a, t, c)
        return [a, b, c]

    assert tiles(compared(reference_queue, submit))


@pytest.mark.slow
def test_what_is_added_to_is_done_once(reference_queue):
    def submit(queue):
        a, out = fq.Buffer(numbers((33, 50))), fq.Buffer(numbers((33, 50)))
        b, t, u = fq.Buffer((33, 50), np.int64), temporary((33, 50)), temporary((33, 50))
        queue.submit(rows, (33, 50), a, t)
        queue.submit(columns, (33, 50), t, u)
        queue.submit(summed, (33, 50), u, out)
        queue.submit(negated, (33, 50), t, b, out)
        return [a, b, out]

    assert tiles(compared(reference_queue, submit))


def test_what_is_read_is_not_overwritten_before(reference_queue):
    """The last submission writes what the first reads: of other tiles, too."""

    def submit(queue):
        a, t = fq.Buffer(numbers((33, 50))), temporary((33, 50))
        queue.submit(rows, (33, 50), a, t)
        queue.submit(columns, (33, 50), t, a)
        return [a]

    assert not tiles(compared(reference_queue, submit))


@pytest.mark.parametrize("window", [(1, 16)], indirect=True)
@pytest.mark.parametrize(
    ("first", "second", "shrunk", "slides"),
    [
        (rows, far_apart, 1, True),
        (rows, every_other_row, 2, True),
        (rows, halved_rows, 1, None),
        (upside_down, columns, 1, False),
        (upside_down, from_below, 1, None),
        (turned, turned_back, 1, False),
        (rows, from_below, 1, False),
    ],
)  # fmt: skip
def test_which_boxes_slide(reference_queue, first, second, shrunk, slides):
    """Not those that go the other way, or along another dimension."""
    shape = (45, 45)

    def submit(queue):
        a, t = fq.Buffer(numbers(shape)), temporary(shape)
        out = fq.Buffer(numbers((45 // shrunk, 45)))
        queue.submit(first, shape, a, t)
        queue.submit(second, (45 // shrunk, 45), t, out)
        return [a, out]

    report = compared(reference_queue, submit)
    if slides is not None:
        assert len(windows(report)) == slides


def test_planes_for_images_do_not_slide(reference_queue):
    def submit(queue):
        a, out = fq.Buffer(numbers((19, 70))), fq.Buffer((19, 70), np.int64)
        t = temporary((2, 19, 70))
        queue.submit(planes_of_image, (2, 19, 70), a, t)
        queue.submit(image_of_planes, (19, 70), t, out)
        return [a, out]

    report = compared(reference_queue, submit)
    assert tiles(report)
    assert not windows(report)


@pytest.mark.slow
@pytest.mark.parametrize("window", [(2, 8)], indirect=True)
def test_a_plan_serves_other_sizes(reference_queue):
    for shape in [(37, 83), (70, 40), (8, 33), (9, 300)]:
        compared(reference_queue, image(shape))


def test_windows_are_for_wide_tiles_with_halos_in_the_first_dimension():
    """Three steps of a 7-point mean: less of a ring of wide planes is halo than of small boxes."""
    boxes = [
        Growth(((4, 4, 64), (4 + n, 4 + n, 64 + n)), ((8, 8, 128), (8 + n, 8 + n, 128 + n)))
        for n in (4, 2)
    ]
    items = [*((box, 1e-9) for box in boxes), (None, 1e-9)]
    shapes = [
        best_tile(
            (254, 254, 254),
            TileCosts(items, [(box, 4) for box in boxes], slides=slides),
            [(1, 1, 16)],
            TWO_CORES,
        )
        for slides in (False, True)
    ]
    boxed, slid = shapes
    assert boxed is not None and slid is not None
    assert boxed.window is None
    assert slid.window is not None
    assert np.prod(slid.tile[1:]) > np.prod(boxed.tile[1:])
    assert slid.at_once == (slid.window, *slid.tile[1:])
