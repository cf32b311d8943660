"""Halos computed anew in local memory, by overlapped tiles: always the unfused result."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.registry import backend_for
from fusionq.cache.plan_cache import PLANS
from fusionq.codegen.interior import MOST_NODES, nodes_of
from fusionq.ir.nodes import Call, Load, Store
from fusionq.ir.walk import expressions, statements, subexpressions
from fusionq.planning import overlap
from fusionq.planning.tile_shape import Growth, TileCosts, best_tile
from tests.unit.targets import TWO_CORES

DEVICE = backend_for("reference").target


@fq.kernel
def rows(item: fq.Item, a, t):
    i, j = item.get_id(0), item.get_id(1)
    n = a.shape[1]
    t[i, j] = a[i, max(j - 2, 0)] + a[i, j] * 3 - a[i, min(j + 1, n - 1)]


@fq.kernel
def columns(item: fq.Item, t, u):
    i, j = item.get_id(0), item.get_id(1)
    s = t[i, j] * 2
    for k in range(-2, 3):
        if i + k >= 0 and i + k < t.shape[0]:
            s += t[i + k, j] * k
    u[i, j] = s


@fq.kernel
def combined(item: fq.Item, a, u, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] - u[i, j]
    if i > 0 and j > 0:
        out[i, j] += u[i - 1, j - 1]


@fq.kernel
def summed(item: fq.Item, t, out):
    i, j = item.get_id(0), item.get_id(1)
    if 0 < j < t.shape[1] - 1:
        out[i, j] += t[i, j - 1] + t[i, j + 1]


@fq.kernel
def line(item: fq.Item, a, t):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        t[i] = a[i - 1] - 2 * a[i] + a[i + 1]
    else:
        t[i] = a[i]


@fq.kernel
def backwards(item: fq.Item, a, t):
    i = item.get_id(0)
    t[t.shape[0] - 1 - i] = a[i] * 2 + a[max(i - 1, 0)]


@fq.kernel
def from_the_end(item: fq.Item, a, t):
    i = item.get_id(0)
    n = t.shape[0]
    t[i] = a[n - 1 - i] + a[max(n - 2 - i, 0)]


@fq.kernel
def halved(item: fq.Item, t, b):
    i = item.get_id(0)
    b[i] = t[i // 2] + t[min(i // 2 + 1, t.shape[0] - 1)]


@fq.kernel
def every_other(item: fq.Item, t, b):
    i = item.get_id(0)
    if 2 * i + 1 < t.shape[0]:
        b[i] = t[2 * i] - t[2 * i + 1]
    else:
        b[i] = 5


@fq.kernel
def early(item: fq.Item, a, t):
    i = item.get_id(0)
    if i == 0:
        t[i] = 7
        return
    s = a[i]
    for k in range(4):
        if s > 20:
            break
        s += a[i - 1] * k
    t[i] = s


@fq.kernel
def fields_of_line(item: fq.Item, a, t):
    k, i = item.get_id(0), item.get_id(1)
    t[k, i] = a[max(i - k, 0)] * (k + 2)


@fq.kernel
def line_of_fields(item: fq.Item, t, u):
    i = item.get_id(0)
    n = t.shape[1]
    u[i] = t[0, i] - t[1, max(i - 1, 0)] + t[2, min(i + 2, n - 1)]


@fq.kernel
def planes_of_image(item: fq.Item, a, t):
    k, i, j = item.get_id(0), item.get_id(1), item.get_id(2)
    t[k, i, j] = a[i, max(j - k, 0)] * 3 - a[max(i - 1, 0), j] * k


@fq.kernel
def image_of_planes(item: fq.Item, t, u):
    i, j = item.get_id(0), item.get_id(1)
    u[i, j] = t[0, i, j] + t[1, min(i + 1, t.shape[1] - 1), max(j - 1, 0)]


@fq.kernel
def scaled_by_row(item: fq.Item, r, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] * r[i] - r[max(i - 1, 0)]


@fq.kernel
def cube(item: fq.Item, a, t):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    s = a[i, j, k] * 6
    if i > 0:
        s -= a[i - 1, j, k]
    if j + 1 < a.shape[1]:
        s -= a[i, j + 1, k]
    if k > 1:
        s -= a[i, j, k - 2]
    t[i, j, k] = s


@fq.kernel
def copied(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = a[i]


@fq.kernel
def added(item: fq.Item, a, b):
    i = item.get_id(0)
    fq.AtomicRef(b, i).fetch_add(a[i])


@fq.kernel
def exchanged(item: fq.NdItem, t, b):
    i = item.get_global_id(0)
    b[i] = t[i] + t[max(i - 1, 0)]


@fq.kernel
def by_neighbour(item: fq.Item, b, c):
    i = item.get_id(0)
    c[i] = b[i - i % 2]


@fq.kernel
def gathered(item: fq.Item, t, places, b):
    i = item.get_id(0)
    b[i] = t[max(i - 1, 0)] + t[places[i]]


def tiled_everywhere(monkeypatch):
    """Have temporaries computed by tiles wherever that is possible."""
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    monkeypatch.setattr(PLANS, "_plans", OrderedDict())
    monkeypatch.setattr(overlap, "WAYS", ("tiled",))


@pytest.fixture(params=["reference", None])
def queue(request, monkeypatch):
    """A queue whose temporaries are computed by tiles wherever that is possible."""
    if request.param is None:
        request.getfixturevalue("sycl_queue")
    tiled_everywhere(monkeypatch)
    with fq.FusionQueue(request.param) as queue:
        yield queue


@pytest.fixture
def reference_queue(monkeypatch):
    tiled_everywhere(monkeypatch)
    with fq.FusionQueue("reference") as queue:
        yield queue


def numbers(shape, dtype=np.int64):
    return np.random.default_rng(3).integers(-9, 10, shape).astype(dtype)


def temporary(shape, dtype=np.int64):
    return fq.Buffer(np.full(shape, 77, dtype), internal=True)


def compared(queue, submit, **options):
    """The report of the list that ``submit`` submits, and what it leaves, which is what it leaves
    unfused."""
    left = []
    for strategy in ("unfused", "overlap"):
        asked = options if strategy == "overlap" else {}
        with fq.fusion(queue, strategy=strategy, promote="internal", **asked) as f:
            arrays = submit(queue)
        left.append([a.numpy().copy() for a in arrays])
    for one, other in zip(*left, strict=True):
        np.testing.assert_array_equal(one, other)
    return f.report


def tiles(report):
    """The tilings of the launches that have one."""
    return [stage.tiling for stage in report.plan.stages if stage.tiling is not None]


def image(shape, dtypes=(np.int64,) * 3):
    def submit(queue):
        a, out = fq.Buffer(numbers(shape, dtypes[0])), fq.Buffer(shape, np.int64)
        t, u = temporary(shape, dtypes[1]), temporary(shape, dtypes[2])
        queue.submit(rows, shape, a, t)
        queue.submit(columns, shape, t, u)
        queue.submit(combined, shape, a, u, out)
        return [a, out]

    return submit


@pytest.mark.in_turn
@pytest.mark.parametrize("shape", [(37, 83), (3, 200), (70, 5), (64, 64)])
def test_chains_of_stencils(queue, shape):
    report = compared(queue, image(shape))
    (tiling,) = tiles(report)
    first, second, last = tiling.parts
    assert last.items == tiling.tile
    assert second.items == (tiling.tile[0] + 1, tiling.tile[1] + 1)
    assert first.items == (tiling.tile[0] + 5, tiling.tile[1] + 1)
    assert [(r.buffer, r.computed) for r in report.recomputed] == [
        ("t", first.items), ("u", second.items),
    ]  # fmt: skip
    assert {p.buffer: p.scope for p in report.promotions} == {"t": "local", "u": "local"}
    assert [p.name for p in report.plan.stages[0].kernel.params if hasattr(p, "ndim")] == [
        "a", "out",
    ]  # fmt: skip


def test_temporaries_of_several_types(queue):
    compared(queue, image((21, 45), (np.float64, np.int16, np.float32)))


@pytest.mark.in_turn
@pytest.mark.parametrize("first", [line, backwards, from_the_end, early])
@pytest.mark.parametrize("second", [line, halved, every_other, backwards])
def test_pairs_of_kernels(reference_queue, first, second):
    """Elements in reverse, at half and twice the distance; loops and early returns."""
    n = 101

    def submit(queue):
        a, b, t = fq.Buffer(numbers(n)), fq.Buffer(n, np.int64), temporary(n)
        queue.submit(first, n, a, t)
        queue.submit(second, n, t, b)
        return [a, b]

    assert tiles(compared(reference_queue, submit))


@fq.kernel
def gradients(item: fq.Item, a, xx, xy, yy):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and j > 0 and i < a.shape[0] - 1 and j < a.shape[1] - 1:
        x = a[i - 1, j] - a[i + 1, j]
        y = a[i, j - 1] - a[i, j + 1]
        xx[i, j], xy[i, j], yy[i, j] = x * x, x * y, y * y
    else:
        xx[i, j], xy[i, j], yy[i, j] = 1, 2, 3


@fq.kernel
def boxes(item: fq.Item, xx, xy, yy, out):
    i, j = item.get_id(0), item.get_id(1)
    if i > 1 and j > 1 and i < out.shape[0] - 2 and j < out.shape[1] - 2:
        out[i, j] = (
            xx[i - 1, j - 1] + xx[i - 1, j] + xx[i - 1, j + 1] + xx[i, j - 1] + xx[i, j]
            + xx[i, j + 1] + xx[i + 1, j - 1] + xx[i + 1, j] + xx[i + 1, j + 1]
            + xy[i - 1, j - 1] + xy[i - 1, j] + xy[i - 1, j + 1] + xy[i, j - 1] + xy[i, j]
            + xy[i, j + 1] + xy[i + 1, j - 1] + xy[i + 1, j] + xy[i + 1, j + 1]
            + yy[i - 1, j - 1] + yy[i - 1, j] + yy[i - 1, j + 1] + yy[i, j - 1] + yy[i, j]
            + yy[i, j + 1] + yy[i + 1, j - 1] + yy[i + 1, j] + yy[i + 1, j + 1]
        )  # fmt: skip


def test_conditions_at_edges_are_decided_inside(reference_queue):
    """Of the copies of a row's code, those at the edges clamp their indices: one for a vector, and
    where it may be run twice one for single items."""
    report = compared(reference_queue, image((37, 83)))
    loads = [
        any(isinstance(e, Call) for index in load.indices for e in subexpressions(index))
        for load in expressions(report.plan.stages[0].kernel.body)
        if isinstance(load, Load) and load.array == "a"
    ]
    assert loads.count(True) == 2 * 2
    assert loads.count(False) == 11 - 4  # three in `rows`, thrice, and one in `combined`, twice


@pytest.mark.in_turn
@pytest.mark.parametrize("columns_", [16, 17, 31, 33, 50, 83])
def test_what_reads_what_it_writes_is_done_once(queue, columns_):
    """Steps of whole vectors meet at the end of a row only where nothing is added up."""

    def submit(queue):
        shape = (9, columns_)
        a, out = (fq.Buffer(numbers(shape)) for _ in range(2))
        t = temporary(shape)
        queue.submit(rows, shape, a, t)
        queue.submit(summed, shape, t, out)
        return [a, out]

    assert tiles(compared(queue, submit))


def test_where_temporaries_lie_does_not_count_as_code(reference_queue):
    """Large kernels have no code of their own for the inside, but by what their authors wrote."""

    def submit(queue):
        shape = (41, 90)
        a, out = fq.Buffer(numbers(shape)), fq.Buffer(shape, np.int64)
        xx, xy, yy = (temporary(shape) for _ in range(3))
        queue.submit(gradients, shape, a, xx, xy, yy)
        queue.submit(boxes, shape, xx, xy, yy, out)
        return [a, out]

    report = compared(reference_queue, submit)
    *_, last = report.plan.stages[0].kernel.body
    stores = [s for s in statements((last,)) if isinstance(s, Store) and s.array == "out"]
    assert len(stores) == 3
    assert nodes_of((last,)) > 3 * MOST_NODES


def test_three_dimensions(queue):
    shape = (5, 9, 21)

    def submit(queue):
        a, b, t = fq.Buffer(numbers(shape)), fq.Buffer(shape, np.int64), temporary(shape)
        queue.submit(cube, shape, a, t)
        queue.submit(cube, shape, t, b)
        return [a, b]

    assert len(tiles(compared(queue, submit))) == 1


def test_a_producer_of_other_dimensions(queue):
    shape = (19, 33)

    def submit(queue):
        v, a = fq.Buffer(numbers(shape[0])), fq.Buffer(numbers(shape))
        r, out = temporary(shape[0]), fq.Buffer(shape, np.int64)
        queue.submit(line, shape[0], v, r)
        queue.submit(scaled_by_row, shape, r, a, out)
        return [v, a, out]

    (tiling,) = tiles(compared(queue, submit))
    assert len(tiling.parts[0].items) == 1


def test_what_other_submissions_write_is_there_before(reference_queue):
    """A producer reads for its neighbours what another submission adds to, and what it reads is
    written after its consumers."""
    n = 1100

    def submit(queue):
        v, a, b = fq.Buffer(numbers(n)), fq.Buffer(n, np.int64), fq.Buffer(n, np.int64)
        t = temporary(n)
        queue.submit(added, n, v, a)
        queue.submit(line, n, a, t)
        queue.submit(line, n, t, b)
        queue.submit(copied, n, b, a)
        return [v, a, b]

    report = compared(reference_queue, submit)
    assert [stage.submissions for stage in report.stages] == [(0,), (1, 2), (3,)]
    assert len(tiles(report)) == 1


def test_several_consumers_in_one_launch(queue):
    n = 301

    def submit(queue):
        a, b, c = (fq.Buffer(numbers(n)) for _ in range(3))
        t = temporary(n)
        queue.submit(line, n, a, t)
        queue.submit(line, n, t, b)
        queue.submit(every_other, n, t, c)
        return [a, b, c]

    report = compared(queue, submit)
    assert [stage.submissions for stage in report.stages] == [(0, 1, 2)]


def test_a_range_that_is_not_the_array_s(reference_queue):
    def submit(queue):
        a, b, t = fq.Buffer(numbers(90)), fq.Buffer(numbers(90)), temporary(90)
        queue.submit(line, 90, a, t)
        queue.submit(line, 50, t, b)
        return [a, b]

    assert tiles(compared(reference_queue, submit))


@pytest.mark.parametrize("reason", ["group", "exchange", "places", "empty", "none", "all"])
def test_what_tiles_are_not_made_for(reference_queue, reason):
    n = 0 if reason == "empty" else 64

    def submit(queue):
        a, b, c = fq.Buffer(numbers(n)), fq.Buffer(n, np.int64), fq.Buffer(n, np.int64)
        t = temporary(n)
        queue.submit(copied if n == 0 else line, n, a, t)
        if reason == "group":
            queue.submit(exchanged, fq.NdRange(n, 32), t, b)
        elif reason == "places":
            queue.submit(gathered, n, t, np.arange(n)[::-1].copy(), b)
        else:
            queue.submit(line, n, t, b)
        if reason == "exchange":
            queue.submit(added, n, t, b)
            queue.submit(by_neighbour, n, b, c)
        return [a, b, c]

    options = {"barriers": reason} if reason in ("none", "all") else {}
    assert not tiles(compared(reference_queue, submit, **options))


@pytest.mark.parametrize("n", [1, 47, 2100])
def test_producers_of_more_dimensions_than_the_work_groups(queue, n):
    """Fields of cells, one in each row, for a range of cells alone."""

    def submit(queue):
        a, out = fq.Buffer(numbers((n,))), fq.Buffer(n, np.int64)
        t, u = temporary((3, n)), temporary((n,))
        queue.submit(fields_of_line, (3, n), a, t)
        queue.submit(line_of_fields, n, t, u)
        queue.submit(line, n, u, out)
        return [a, out]

    report = compared(queue, submit)
    if n > 1:
        ((first, *_),) = [tiling.parts for tiling in tiles(report)]
        assert len(first.items) == 2


def test_planes_for_images(queue):
    def submit(queue):
        a, out = fq.Buffer(numbers((19, 70))), fq.Buffer((19, 70), np.int64)
        t = temporary((2, 19, 70))
        queue.submit(planes_of_image, (2, 19, 70), a, t)
        queue.submit(image_of_planes, (19, 70), t, out)
        return [a, out]

    report = compared(queue, submit)
    assert [len(part.items) for tiling in tiles(report) for part in tiling.parts] == [3, 2]


@pytest.mark.parametrize("extents", [(40,), (16_777_216,), (3, 5_000_000), (2, 3, 70)])
def test_a_tile_for_any_range(extents):
    """Also where a row in a few parts is more than local memory holds."""
    lanes = DEVICE.worker_size
    grown = [(*(n + 2 for n in tile[:-1]), tile[-1] + 2) for tile in [(4,) * len(extents)] * 2]
    first, second = (4,) * len(extents), (8,) * len(extents)
    box = Growth((first, grown[0]), (second, tuple(n + 2 for n in second)))
    costs = TileCosts([(box, 1e-9), (None, 1e-9)], [(box, 8)])
    found = best_tile(extents, costs, [(*(1 for _ in extents[1:]), lanes)], DEVICE)
    assert found is not None
    assert found.tile[-1] % lanes == 0
    assert 8 * np.prod(box.at(found.tile)) <= DEVICE.device.local_memory_bytes


def test_rows_are_long_where_each_takes_time():
    """Of tiles with about as much to compute anew, the one with fewer rows."""
    box = Growth(((4, 4, 16), (6, 6, 18)), ((8, 8, 32), (10, 10, 34)))
    costs = TileCosts([(box, 5e-10), (None, 5e-10)], [(box, 4)])
    found = best_tile((256, 256, 256), costs, [(1, 1, 16)], TWO_CORES)
    assert found is not None
    rows, others, row = found.tile
    assert row == 256
    assert rows * others >= 64


def test_a_plan_serves_other_sizes(reference_queue):
    """Of lists that are too long for one work-group."""
    for n in (5000, 5001, 4999):

        def submit(queue, n=n):
            a, b, t = fq.Buffer(numbers(n)), fq.Buffer(n, np.int64), temporary(n)
            queue.submit(line, n, a, t)
            queue.submit(line, n, t, b)
            return [a, b]

        report = compared(reference_queue, submit)
        assert tiles(report)
    assert report.cache == "memory"


def test_replays_and_plans_that_were_kept(sycl_queue, monkeypatch, disk_cache):
    monkeypatch.setattr(overlap, "WAYS", ("tiled",))
    shape = (45, 67)
    a, out = fq.Buffer(numbers(shape)), fq.Buffer(shape, np.int64)
    t, u = temporary(shape), temporary(shape)
    for _ in range(2):  # the second plan comes from disk
        monkeypatch.setattr(PLANS, "_plans", OrderedDict())
        with fq.FusionQueue() as queue:
            with fq.fusion(queue, strategy="overlap", promote="internal") as f:
                queue.submit(rows, shape, a, t)
                queue.submit(columns, shape, t, u)
                queue.submit(combined, shape, a, u, out)
            first = out.numpy().copy()
            a.write(a.numpy() * 2)
            f.replay()
            np.testing.assert_array_equal(out.numpy(), 2 * first)
            assert tiles(f.report)
    assert f.report.cache == "disk"


def test_temporaries_are_not_allocated(sycl_queue, monkeypatch):
    """Of a temporary that nothing has touched yet the device gets no memory."""
    monkeypatch.setattr(overlap, "WAYS", ("tiled",))
    n = 5000
    a, b = fq.Buffer(numbers(n)), fq.Buffer(n, np.int64)
    t = fq.Buffer(n, np.int64, internal=True)
    with fq.FusionQueue() as queue:
        with fq.fusion(queue, strategy="overlap", promote="internal") as f:
            queue.submit(line, n, a, t)
            queue.submit(line, n, t, b)
        queue.wait()
    assert tiles(f.report)
    assert not t.is_allocated
