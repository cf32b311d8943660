"""The steady state: what is found again, what is not, and that nothing is kept alive."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.cache.plan_cache import PLANS
from fusionq.planning import planner
from fusionq.runtime.queue_cache import QueueCache
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment, put, scale, shift


@pytest.fixture
def work(queue, monkeypatch):
    """Counts what the steady state must not do; starts with empty caches."""
    PLANS.clear()
    counts = {"plan": 0, "build": 0, "prepare": 0}
    backend = queue._state.launcher.backend
    originals = (planner.Planning, type(backend).build, type(backend).prepare)

    def counted(name, original):
        def call(*arguments):
            counts[name] += 1
            return original(*arguments)

        return call

    monkeypatch.setattr(planner, "Planning", counted("plan", originals[0]))
    monkeypatch.setattr(type(backend), "build", counted("build", originals[1]))
    monkeypatch.setattr(type(backend), "prepare", counted("prepare", originals[2]))
    return counts


def chain(queue, a, tmp, out, n=8, **options):
    with fq.fusion(queue, **options) as f:
        queue.submit(copy, n, a, tmp)
        queue.submit(add, n, tmp, a, out)
    f.event.wait()
    return f


def test_the_same_call_does_nothing_new(queue, work):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    first = chain(queue, a, tmp, out)
    assert first.report.cache == "miss"
    done = dict(work)
    assert done == {"plan": 1, "build": 1, "prepare": 1}
    second = chain(queue, a, tmp, out)
    assert work == done
    assert second.report.cache == "memory"
    assert np.array_equal(out.numpy(), a.numpy() * 2)


def test_the_report_is_the_same_from_the_cache(queue):
    PLANS.clear()
    a, tmp, out = floats(), empty(promote_private=True), empty()
    reports = [chain(queue, a, tmp, out).report for _ in range(2)]
    first, second = (r.to_dict() for r in reports)
    for key in ("cache", "timings_seconds"):
        assert first.pop(key) != second.pop(key)
    assert first == second
    assert {"frontend", "analysis", "passes", "codegen", "build", "prepare"} <= set(
        reports[0].timings
    )
    assert reports[1].timings == {}


def test_other_buffers_and_sizes_need_no_plan_and_no_build(queue, work):
    first = chain(queue, floats(), empty(promote_private=True), empty())
    done = dict(work)
    a, tmp, out = floats(19), empty(19, promote_private=True), empty(19)
    f = chain(queue, a, tmp, out, n=19)
    assert f.report.cache == "memory"
    assert (work["plan"], work["build"]) == (done["plan"], done["build"])
    assert np.array_equal(out.numpy(), a.numpy() * 2)
    assert [d.buffer for d in f.report.dependences] == [d.buffer for d in first.report.dependences]


def test_a_second_queue_shares_plans_and_programs(target, queue, work):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    chain(queue, a, tmp, out)
    done = dict(work)
    with fq.FusionQueue(target) as other:
        assert chain(other, a, tmp, out).report.cache == "memory"
    assert (work["plan"], work["build"]) == (done["plan"], done["build"])


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "unfused"},
        {"promote": "none"},
        {"fp": "fast"},
        {"strategy": "sequence"},
    ],
    ids=str,
)
def test_other_options_are_other_plans(queue, change):
    PLANS.clear()
    a, tmp, out = floats(), empty(promote_private=True), empty()
    chain(queue, a, tmp, out)
    assert chain(queue, a, tmp, out, **change).report.cache == "miss"
    assert chain(queue, a, tmp, out, **change).report.cache == "memory"


def test_other_flags_are_other_plans(queue):
    PLANS.clear()
    a, out = floats(), empty()
    chain(queue, a, empty(promote_private=True), out)
    tmp = empty()
    assert chain(queue, a, tmp, out).report.cache == "miss"
    assert np.array_equal(tmp.numpy(), a.numpy())


def test_other_aliasing_is_another_plan(queue):
    PLANS.clear()
    a, tmp, out = floats(), empty(), empty()
    chain(queue, a, tmp, out)
    assert chain(queue, a, tmp, tmp).report.cache == "miss"
    assert np.array_equal(tmp.numpy(), a.numpy() * 2)


def test_views_made_anew_are_found_again(queue, work):
    a, out = floats(), empty()
    for _ in range(3):
        queue.submit(copy, 4, a[::2], out[4:])
    assert work == {"plan": 1, "build": 1, "prepare": 1}
    queue.submit(copy, 4, a[1::2], out[4:])
    assert out.numpy()[4:].tolist() == [2, 4, 6, 8]


def test_numpy_arrays_are_found_by_their_memory(queue, work):
    a, b, out = np.arange(8.0), np.arange(8.0) * 10, np.zeros(8)
    for array in (a, a[:], b, a):
        queue.submit(copy, 8, array, out)
        queue.wait()
        assert np.array_equal(out, array)
    assert work["prepare"] == 2


# -------------------------------------------------------------------------------- scalars
def bits(value):
    return np.array(value).tobytes()


@pytest.mark.parametrize("fused", [False, True])
def test_every_value_reaches_the_kernel_bit_for_bit(queue, fused):
    out = fq.Buffer(1, np.float64)
    nan = float("nan")
    for value in (0.0, -0.0, 0.0, nan, -nan, nan, 1.0, math.inf, -0.0):
        if fused:
            with fq.fusion(queue):
                queue.submit(put, 1, value, out)
        else:
            queue.submit(put, 1, value, out)
        assert bits(out.numpy()[0]) == bits(value)


def test_values_that_compare_equal_keep_their_types(queue):
    a = fq.Buffer(np.array([3], np.int32))
    results = []
    for factor in (True, 1, 1.0, np.float32(1), np.int8(1), True, 1):
        out = fq.Buffer(1, np.float64)
        queue.submit(scale, 1, a, factor, out)
        results.append((out.numpy()[0], queue._state.launcher.cache.known.__len__()))
    assert [r[0] for r in results] == [3] * 7
    assert len({type(k[4]) for k in queue._state.launcher.cache.known if k[0] is scale}) == 1
    assert {k[4] for k in queue._state.launcher.cache.known if k[0] is scale} == {
        bool, int, float, np.float32, np.int8,
    }  # fmt: skip


def test_float_scalars_change_without_a_plan(queue, work):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    for factor in (2.0, 3.0, 0.5, 3.0):
        with fq.fusion(queue) as f:
            queue.submit(scale, 8, a, factor, tmp)
            queue.submit(scale, 8, tmp, factor, out)
        assert np.array_equal(out.numpy(), a.numpy() * np.float32(factor) ** 2)
    assert work == {"plan": 1, "build": 1, "prepare": 1}
    assert f.report.cache == "memory"


def test_int_scalars_that_the_plan_depends_on_are_checked(queue):
    a = floats()
    for distance in (0, 3, 0, 1, 3, 7):
        tmp, out = empty(), empty()
        with fq.fusion(queue):
            queue.submit(copy, 8, a, tmp)
            queue.submit(shift, 8, tmp, distance, out)
        assert np.array_equal(out.numpy()[: 8 - distance], a.numpy()[distance:]), distance


def test_int_scalars_change_with_the_same_buffers(queue):
    a, tmp, out = floats(), empty(), empty()
    for distance in (0, 3, 0, 1, 3, 7):
        out.write(np.zeros(8, np.float32))
        with fq.fusion(queue):
            queue.submit(copy, 8, a, tmp)
            queue.submit(shift, 8, tmp, distance, out)
        assert np.array_equal(out.numpy()[: 8 - distance], a.numpy()[distance:]), distance
        assert not out.numpy()[8 - distance :].any()


@fq.kernel
def starts_of_blocks(item: fq.Item, width, a, out):
    i = item.get_id(0)
    out[i] = a[i // width * width]


def test_a_submission_alone_has_one_plan_for_all_scalars(queue, work):
    """Even for a divisor, which an analysis could only take at its present value: nothing is
    decided between submissions, so more values than a structure keeps plans for need no other."""
    a, out = fq.Buffer(np.arange(40)), fq.Buffer(40, np.int64)
    for width in range(1, 41):
        queue.submit(starts_of_blocks, 40, width, a, out)
        assert np.array_equal(out.numpy(), np.arange(40) // width * width)
    assert work["plan"] == work["build"] == work["prepare"] == 1


def test_an_int_that_does_not_fit_is_refused_on_the_fast_path(queue):
    small = fq.Buffer(np.zeros(4, np.int8))
    for _ in range(2):
        queue.submit(scale, 4, small, 5, small)
    with fq.fusion(queue) as f:
        queue.submit(scale, 4, small, 5, small)
        with pytest.raises(fq.ArgumentError, match="300"):
            queue.submit(scale, 4, small, 300, small)
    assert len(f.report.submissions) == 1


# --------------------------------------------------------------------------------- replay
def test_replay_repeats_the_launches(queue, work):
    total = fq.Buffer(np.zeros(4, np.int64))
    with fq.fusion(queue) as f:
        queue.submit(increment, 4, total)
        queue.submit(increment, 4, total)
    done = dict(work)
    event = f.replay()
    f.replay().wait()
    assert event.is_complete
    assert total.numpy().tolist() == [6] * 4
    assert work == done


def test_replay_with_other_scalars_for_this_time(queue):
    a, out = floats(), empty()
    factor = 2.0
    with fq.fusion(queue) as f:
        queue.submit(scale, 8, a, factor, out)
        queue.submit(scale, 8, out, 10.0, out)
    for change, product in (({}, 20), ({"factor": 3.0}, 30), ({}, 20)):
        f.replay(**change).wait()
        assert np.array_equal(out.numpy(), a.numpy() * product)


def test_replay_with_an_int_that_the_plan_depends_on(queue):
    a, tmp, out = floats(), empty(), empty()
    distance = 0
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, tmp)
        queue.submit(shift, 8, tmp, distance, out)
    for value in (3, 0, 5):
        f.replay(distance=value).wait()
        assert np.array_equal(out.numpy()[: 8 - value], a.numpy()[value:])
    f.replay().wait()
    assert np.array_equal(out.numpy(), a.numpy())


def test_replay_after_other_blocks_have_changed_the_scalars(queue):
    a, out = floats(), empty()

    def block(factor):
        with fq.fusion(queue) as f:
            queue.submit(scale, 8, a, factor, out)
        return f

    two, _ = block(2.0), block(3.0)
    two.replay().wait()
    assert np.array_equal(out.numpy(), a.numpy() * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"other": 1.0}, "no scalar argument 'other'.*factor"),
        ({"a": 1.0}, "no scalar argument 'a'"),
        ({"first": 1}, "takes a float.*not int"),
        ({"factor": 1.0}, "first of submission 0, second of submission 1"),
    ],
)
def test_replay_refuses_what_it_cannot_place(queue, change, message):
    a, out = floats(), empty()
    first, second = 2.0, 3.0
    with fq.fusion(queue) as f:
        queue.submit(scale, 8, a, first, out)
        queue.submit(scale, 8, out, second, out)
    with pytest.raises(fq.ArgumentError, match=message):
        f.replay(**change)


def test_replay_before_the_end_of_the_block(queue):
    a, out = floats(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
        with pytest.raises(fq.FusionStateError, match="replay"):
            f.replay()
        with pytest.raises(fq.FusionStateError, match="report"):
            f.report  # noqa: B018


def test_replay_after_a_buffer_was_deleted(queue):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    f = chain(queue, a, tmp, out)
    del tmp
    gc.collect()
    f.replay().wait()
    out.write(np.zeros(8, np.float32))
    del a
    gc.collect()
    f.replay().wait()
    assert (out.numpy() == 2 * np.arange(1, 9)).all()


def test_replay_ends_another_queues_list_that_it_depends_on(queue):
    a, b, out = floats(), empty(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
    with fq.FusionQueue(queue.device.filter_string) as second, fq.fusion(second) as other:
        second.submit(copy, 8, out, b)
        with pytest.warns(fq.FusionAborted):
            f.replay()
    assert other.report.strategy == "unfused"


def test_replay_keeps_numpy_arrays(queue):
    a, out = np.arange(8.0), np.zeros(8)
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
    alive = weakref.ref(a)
    del a
    gc.collect()
    out[...] = 0
    f.replay().wait()
    assert alive() is not None
    assert out[7] == 7


# ----------------------------------------------------------------------------------- life
def test_what_belongs_to_dead_buffers_is_dropped(queue):
    cache = queue._state.launcher.cache
    a = floats()
    for _ in range(5):
        chain(queue, a, empty(promote_private=True), empty())
        gc.collect()
    chain(queue, a, empty(promote_private=True), empty())
    assert len(cache.runs) <= 2
    assert len(cache.known) <= 4


def test_a_promoted_buffer_that_is_allocated_later_is_seen(queue):
    """Its memory may be handed to a kernel as a NumPy array, next to the Buffer itself."""
    tmp, out = empty(promote_private=True), empty()
    foreign = np.arange(8, dtype=np.float32)
    for _ in range(2):
        with fq.fusion(queue) as f:
            queue.submit(copy, 8, foreign, tmp)
            queue.submit(copy, 8, tmp, out)
        assert not tmp.is_allocated
    tmp.write(foreign)
    runs = len(queue._state.launcher.cache.runs)
    with fq.fusion(queue):
        queue.submit(copy, 8, foreign, out)
        queue.submit(increment, 8, out)
    assert len(queue._state.launcher.cache.runs) == runs
    assert f.report.strategy == "fused"


def test_numpy_arrays_are_let_go_of(queue):
    a, out = np.arange(8.0), np.zeros(8)
    references = weakref.ref(a), weakref.ref(out)
    queue.submit(copy, 8, a, out)
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
    f.event.wait()
    queue.wait()
    del a, out, f
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_buffers_may_die_while_kernels_run(sycl_queue):
    from tests.unit.runtime.kernels import slow

    a, out = floats(20_000), empty(20_000)
    sycl_queue.submit(slow, 20_000, a, 2_000, out)
    alive = weakref.ref(a._storage)
    del a
    assert alive() is None
    sycl_queue.submit(slow, 20_000, out, 2_000, out)
    array = np.ones(20_000, np.float32)
    sycl_queue.submit(slow, 20_000, array, 1_000, array)
    view = array[:1]
    del array
    gc.collect()
    sycl_queue.wait()
    assert view[0] > 1
    assert out.numpy()[0] > 1


def test_a_queue_may_die_while_kernels_run(target):
    queue = fq.FusionQueue(target)
    a, out = np.arange(8.0), np.zeros(8)
    queue.submit(copy, 8, a, out)
    alive = weakref.ref(queue)
    del queue, a
    gc.collect()
    assert alive() is None
    assert out[7] == 7


def test_events_and_reports_keep_no_buffers(queue):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    with fq.fusion(queue) as f:
        events = [queue.submit(copy, 8, a, tmp), queue.submit(copy, 8, tmp, out)]
    report = f.report
    references = [weakref.ref(b._storage) for b in (a, tmp, out)]
    del a, tmp, out, f
    gc.collect()
    assert [r() for r in references] == [None] * 3
    assert events
    assert report.strategy == "fused"


class Used:
    def __init__(self, last_use):
        self.last_use = last_use


def test_the_least_recently_used_go_first():
    cache = QueueCache(capacity=4)
    for k in range(4):
        cache.add_known(k, Used(10 - k))
    cache.add_known("new", Used(20))
    assert set(cache.known) == {0, 1, 2, "new"}


def test_a_kernel_that_cannot_be_built_fused_runs_unfused(queue, monkeypatch):
    PLANS.clear()
    backend = queue._state.launcher.backend
    build = type(backend).build
    built = []

    def failing(self, kernel, fp):
        built.append(kernel.name)
        if len(built) == 1:
            raise fq.DeviceError("out of registers")
        return build(self, kernel, fp)

    monkeypatch.setattr(type(backend), "build", failing)
    a, tmp, out = floats(), empty(promote_private=True), empty()
    with pytest.warns(fq.FusionAborted, match="out of registers"):
        f = chain(queue, a, tmp, out)
    assert np.array_equal(out.numpy(), a.numpy() * 2)
    assert f.report.strategy == "unfused"
    assert "out of registers" in f.report.fallback
    count = len(built)
    again = chain(queue, a, tmp, out)
    assert len(built) == count
    assert again.report.fallback == f.report.fallback


def test_require_raises_where_the_fused_kernel_cannot_be_built(queue, monkeypatch):
    PLANS.clear()
    build = type(queue._state.launcher.backend).build
    calls = []

    def failing(self, kernel, fp):
        calls.append(kernel)
        if len(calls) == 1:
            raise fq.DeviceError("out of registers")
        return build(self, kernel, fp)

    monkeypatch.setattr(type(queue._state.launcher.backend), "build", failing)
    a, tmp, out = floats(), empty(), empty()
    with pytest.raises(fq.FusionRefused, match="out of registers"):
        chain(queue, a, tmp, out, require=True)
    assert np.array_equal(out.numpy(), a.numpy() * 2)


def test_a_list_that_cannot_run_at_all_says_so_to_all_who_ask(queue, monkeypatch):
    PLANS.clear()
    monkeypatch.setattr(
        type(queue._state.launcher.backend),
        "build",
        lambda *_: (_ for _ in ()).throw(fq.DeviceError("no")),
    )
    a, out = floats(), empty()
    with pytest.raises(fq.DeviceError, match="no"), fq.fusion(queue):
        event = queue.submit(copy, 8, a, out)
    assert not queue.is_in_fusion_mode()
    with pytest.raises(fq.DeviceError, match="no"):
        event.wait()
    queue.start_fusion()
    event = queue.submit(copy, 8, a, out)
    with pytest.warns(fq.FusionAborted), pytest.raises(fq.DeviceError, match="no"):
        event.wait()
    with pytest.raises(fq.DeviceError, match="no"):
        queue.complete_fusion()
    assert "no" in queue.last_report.fallback
    monkeypatch.undo()
    queue.submit(copy, 8, a, out).wait()


def test_a_kernel_that_fails_while_it_runs(monkeypatch):
    with fq.FusionQueue("reference") as queue:
        out = empty()
        index = fq.Buffer(np.array([0, 1, 99, 3]))
        from tests.unit.runtime.kernels import gather

        with pytest.raises(fq.DeviceError, match="99"):
            queue.submit(gather, 4, floats(), index, out)
        with pytest.raises(fq.DeviceError, match="99"), fq.fusion(queue):
            queue.submit(increment, 8, out)
            queue.submit(gather, 4, floats_kept, index, out)
        queue.submit(increment, 8, out).wait()


floats_kept = floats()


def test_reference_backends_share_programs():
    assert ReferenceBackend().target == ReferenceBackend().target


def filled_with(value):
    @fq.kernel
    def put(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[i] * value

    return put


@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
def test_zeros_of_two_signs_are_two_constants(queue, strategy):
    """They compare equal, in Python and where programs and bodies of stages are looked up."""
    kernels = [filled_with(value) for value in (0.0, -0.0, math.nan)]
    ones, outs = fq.Buffer(np.ones(8)), [fq.Buffer(8, np.float64) for _ in kernels]
    with fq.fusion(queue, strategy=strategy):
        for kernel, out in zip(kernels, outs, strict=True):
            queue.submit(kernel, 8, ones, out)
    for kernel, out in zip(kernels, outs, strict=True):
        alone = fq.Buffer(8, np.float64)
        queue.submit(kernel, 8, ones, alone)
        assert np.array_equal(alone.numpy().view(np.int64), out.numpy().view(np.int64))
    zero, negative, nan = (out.numpy() for out in outs)
    assert not np.signbit(zero).any()
    assert np.signbit(negative).all()
    assert np.isnan(nan).all()


def smoothed_by(value):
    @fq.kernel
    def step(item: fq.Item, a, out):
        i = item.get_id(0)
        if i > 0 and i < a.shape[0] - 1:
            out[i] = (a[i - 1] + a[i + 1]) * value

    return step


def test_stages_that_differ_in_the_sign_of_a_zero_do_not_share_a_body(queue):
    buffers = [fq.Buffer(np.ones(20_000)) for _ in range(4)]
    steps = [smoothed_by(value) for value in (0.0, -0.0, -0.0)]
    with fq.fusion(queue, strategy="megakernel") as f:
        for step, a, out in zip(steps, buffers, buffers[1:], strict=False):
            queue.submit(step, 20_000, a, out)
    assert f.report.strategy == "megakernel"
    signs = [np.signbit(b.numpy()[3:-3]) for b in buffers]
    assert [sign.all() for sign in signs] == [False, False, True, False]
    assert [sign.any() for sign in signs] == [False, False, True, False]
