"""Halos computed anew: what is proved, what is refused and why, always the unfused result."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.planning import overlap

N = 37
FLAGS = {"private": {"promote_private": True}, "local": {"promote_local": True},
         "internal": {"internal": True}}  # fmt: skip


@fq.kernel
def double(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = a[i] * 2


@fq.kernel
def neighbours(item: fq.Item, t, b):
    i = item.get_id(0)
    if i > 0 and i < t.shape[0] - 1:
        b[i] = t[i - 1] - t[i + 1]
    else:
        b[i] = t[i]


@fq.kernel
def inside_only(item: fq.Item, a, t):
    i = item.get_id(0)
    if i > 0 and i < t.shape[0] - 1:
        t[i] = a[i - 1] + a[i + 1]


@fq.kernel
def from_the_inside(item: fq.Item, t, b):
    i = item.get_id(0)
    if i > 1 and i < t.shape[0] - 2:
        b[i] = t[i - 1] * t[i + 1]


@fq.kernel
def where_positive(item: fq.Item, a, t):
    i = item.get_id(0)
    if a[i] > 0:
        t[i] = a[i]


@fq.kernel
def offset_by_one(item: fq.Item, a, t):
    i = item.get_id(0) + 1
    t[i] = a[i] * 3


@fq.kernel
def reversed_(item: fq.Item, a, t):
    i = item.get_id(0)
    t[t.shape[0] - 1 - i] = a[i] + 1


@fq.kernel
def two_elements(item: fq.Item, a, t):
    i = item.get_id(0)
    t[2 * i] = a[i]
    t[2 * i + 1] = a[i] + 1


@fq.kernel
def every_second(item: fq.Item, a, t):
    t[2 * item.get_id(0)] = a[item.get_id(0)]


@fq.kernel
def same_element(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i % 4] = a[i]


@fq.kernel
def shifted(item: fq.Item, t, b, by):
    i = item.get_id(0)
    if i + by >= 0 and i + by < t.shape[0]:
        b[i] = t[i + by] + t[i]


@fq.kernel
def all_of_them(item: fq.Item, t, b):
    i = item.get_id(0)
    s = b[i]
    for k in range(t.shape[0]):
        s += t[k]
    b[i] = s


@fq.kernel
def lazily(item: fq.Item, t, b):
    i = item.get_id(0)
    last = i == t.shape[0] - 1
    b[i] = (t[i - 1] if i > 0 else 7) + (1 if not last and t[i + 1] > 0 else 0)


@fq.kernel
def while_positive(item: fq.Item, t, b):
    i = item.get_id(0)
    k = 0
    while k < 3 and t[i] > k:
        k += 1
    b[i] = k


@fq.kernel
def counted(item: fq.Item, a, t, total):
    i = item.get_id(0)
    t[i] = a[i]
    fq.AtomicRef(total, 0).fetch_add(1)


@fq.kernel
def also(item: fq.Item, a, t, c):
    i = item.get_id(0)
    t[i] = a[i] * 2
    c[i] = a[i]


@fq.kernel
def accumulated(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = 0
    for k in range(3):
        t[i] += a[i] * k


@fq.kernel
def by_range(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = a[item.get_range(0) - 1 - i]


class Lists:
    """Runs a list unfused and with ``strategy="overlap"``, and compares all that it leaves."""

    def __init__(self, queue, flag="internal", dtype=np.int64):
        rng = np.random.default_rng(1)
        self._queue = queue
        self._first = {name: rng.integers(-9, 10, N).astype(dtype) for name in "abcd"}
        self._flags = {"t": FLAGS[flag], "u": FLAGS[flag]}

    def __call__(self, submit, **options):
        results = []
        for strategy in ("unfused", "overlap"):
            buffers = {name: fq.Buffer(data) for name, data in self._first.items()}
            buffers |= {t: fq.Buffer(self._first["d"], **f) for t, f in self._flags.items()}
            asked = options if strategy == "overlap" else {}
            with fq.fusion(self._queue, strategy=strategy, promote="internal", **asked) as f:
                submit(self._queue, **buffers)
            results.append({name: buffers[name].numpy().copy() for name in "abcdtu"})
        promoted = {
            name
            for p in f.report.promotions
            if p.scope != "global"
            for name in p.buffer.split(" or ")
        }
        for name, expected in results[0].items():
            left = self._first["d"] if name in "tu" and name in promoted else expected
            np.testing.assert_array_equal(results[1][name], left, err_msg=name)
        return f.report


@fq.kernel
def into_odd_elements(item: fq.Item, t, u):
    i = item.get_id(0)
    if 2 * i + 1 < u.shape[0]:
        value = t[min(i + 1, t.shape[0] - 1)] - t[t.shape[0] - 1 - i]
        if i > 0:
            u[2 * i + 1] = value


@pytest.fixture(params=["inlined", "tiled"])
def way(request, monkeypatch):
    """How elements are computed anew where there are several ways."""
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    monkeypatch.setattr(PLANS, "_plans", OrderedDict())
    monkeypatch.setattr(overlap, "WAYS", (request.param,))
    return request.param


@pytest.fixture
def reference_queue(way):
    with fq.FusionQueue("reference") as queue:
        yield queue


@pytest.fixture
def lists(reference_queue):
    return Lists(reference_queue)


def chain(first, second, items=N, *scalars):
    def submit(queue, a, b, t, **_):
        queue.submit(first, items, a, t)
        queue.submit(second, N, t, b, *scalars)

    return submit


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

    assert lists(submit).plan.recomputed == ()  # elements of u keep what was there


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


# ----------------------------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("first", "second", "items", "reason"),
    [
        (where_positive, neighbours, N, "submission 0 writes"),
        (every_second, neighbours, N // 2, "not certain to be of an element that is written"),
        (double, neighbours, N - 1, "not certain to be of an element that is written"),
        (two_elements, neighbours, N // 2, "a work-item writes several elements of it"),
        (same_element, neighbours, 4, None),
        (double, all_of_them, N, "at no bounded distance"),
        (double, while_positive, N, None),
    ],
)
def test_what_is_not_proved_is_refused(lists, first, second, items, reason):
    report = lists(chain(first, second, items))
    assert report.plan.recomputed == ()
    if reason is not None:
        assert reason in report.fallback


def test_atomic_operations_run_once(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(counted, N, a, t, c)
        queue.submit(neighbours, N, t, b)

    assert "has the atomic operation" in lists(submit).fallback


def test_a_submission_that_writes_more(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(also, N, a, t, c)
        queue.submit(neighbours, N, t, b)

    (computed,) = lists(submit).plan.recomputed
    assert (computed.buffer, computed.stored) == ("t", False)


def test_an_input_that_the_consumer_overwrites(lists):
    def submit(queue, a, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, a)

    assert "submission 1 writes" in lists(submit).fallback


def test_an_input_that_is_overwritten_between(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(double, N, c, a)
        queue.submit(neighbours, N, t, b)

    assert "submission 1 writes" in lists(submit).fallback


def test_an_input_of_an_input_that_is_overwritten(lists):
    def submit(queue, a, b, c, t, u, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, u)
        queue.submit(double, N, c, a)
        queue.submit(neighbours, N, u, b)

    report = lists(submit)
    assert [r.buffer for r in report.plan.recomputed] == ["u"]
    assert [r.producer for r in report.plan.recomputed] == [1]


def test_an_input_that_is_overwritten_afterwards_is_waited_for(lists, way):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)
        queue.submit(double, N, c, a)

    report = lists(submit)
    assert report.strategy == "overlap"
    if way == "tiled":  # other work-groups' halos are made of it
        assert [stage.submissions for stage in report.stages] == [(0, 1), (2,)]
        return
    (stage,) = report.stages
    (barrier,) = stage.inserted
    assert barrier.reason == "WAR of a, which [0] reads in the same work-group"


def test_an_input_that_overlaps_what_is_written(reference_queue):
    memory = fq.Buffer(np.arange(2 * N))

    def submit(queue, t, **_):
        queue.submit(double, N, memory[:N], t)
        queue.submit(neighbours, N, t, memory[N // 2 : N // 2 + N])

    assert "submission 1 writes" in Lists(reference_queue)(submit).fallback


def test_a_temporary_that_is_written_twice(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)
        queue.submit(double, N, b, t)
        queue.submit(neighbours, N, t, c)

    report = lists(submit)
    made = [(r.buffer, r.producer) for r in report.plan.recomputed]
    assert made == [("t", 0), ("b", 1), ("t", 2)]


def test_a_temporary_that_is_read_first(lists):
    def submit(queue, a, b, c, t, **_):
        queue.submit(neighbours, N, t, c)
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t, b)

    report = lists(submit)
    assert [r.stored for r in report.plan.recomputed] == [True]
    (kept,) = (p for p in report.promotions if p.buffer == "t")
    assert kept.scope == "global"


def test_a_temporary_read_backwards(lists):
    def submit(queue, a, b, t, **_):
        queue.submit(double, N, a, t)
        queue.submit(neighbours, N, t[::-1], b)

    assert "views that differ" in lists(submit).fallback


def test_what_is_not_flagged_is_stored_too(reference_queue, way):
    lists = Lists(reference_queue)
    lists._flags = {"t": {}, "u": {}}
    report = lists(chain(double, neighbours))
    assert report.strategy == "overlap"
    assert report.promotions == ()
    assert [r.stored for r in report.plan.recomputed] == [True]
    (stage,) = report.plan.stages
    assert (stage.tiling is not None) == (way == "tiled")
    assert (0, 1) in [(s.submission, s.argument) for s in stage.sources if hasattr(s, "argument")]


def test_no_work_item_reads_what_another_one_writes(reference_queue):
    lists = Lists(reference_queue)
    lists._flags = {"t": {}, "u": {}}
    assert "no work-item reads what another one" in lists(chain(double, double)).fallback


def test_promote_none(lists):
    def run(promote):
        a, b = fq.Buffer(np.arange(N)), fq.Buffer(N, np.int64)
        t = fq.Buffer(N, np.int64, internal=True)
        with fq.fusion(lists._queue, strategy="overlap", promote=promote) as f:
            chain(double, neighbours)(lists._queue, a=a, b=b, t=t)
        return f.report

    for promote, stored in (("none", True), ("flagged", True), ("internal", False)):
        assert [r.stored for r in run(promote).plan.recomputed] == [stored]


def test_promote_none_keeps_what_is_flagged(lists):
    for flag in ("promote_private", "promote_local"):
        a, b = fq.Buffer(np.arange(N)), fq.Buffer(N, np.int64)
        t = fq.Buffer(N, np.int64, **{flag: True})
        with fq.fusion(lists._queue, strategy="overlap", promote="none") as f:
            chain(double, neighbours)(lists._queue, a=a, b=b, t=t)
        assert f.report.strategy == "overlap"
        assert t.numpy().tolist() == (2 * np.arange(N)).tolist()


def test_one_kernel_needs_nothing_computed_anew(lists):
    report = lists(chain(double, double))
    assert report.strategy == "fused"
    assert "nothing has to be computed anew" in report.fallback


def test_require_is_satisfied_by_one_launch(lists):
    assert lists(chain(double, neighbours), require=True).strategy == "overlap"


def test_require_refuses_what_is_not_proved(lists):
    with pytest.raises(fq.FusionRefused, match="not certain to be of an element"):
        lists(chain(double, neighbours, N - 1), require=True)


# ------------------------------------------------------------------------------ plans, caches
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
