"""What is found again keeps nothing alive; what cannot be built or run."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.cache.plan_cache import PLANS
from fusionq.runtime.queue_cache import QueueCache
from tests.unit.runtime.chains import chain
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import copy, increment


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


@pytest.mark.slow
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
    used = [Used(10 - k) for k in range(4)]
    for k, one in enumerate(used):
        cache.add_known(k, one)
    cache.add_known("new", Used(20))
    assert set(cache.known) == {0, 1, 2, "new"}
    assert [one.is_kept for one in used] == [True, True, True, False]


def test_what_a_full_table_forgot_is_not_run_by_what_was_known_of_its_buffers(queue):
    """A list's launches do without a buffer until it is allocated, whose submissions the queue may
    have forgotten by then."""
    queue._state.launcher.cache.capacity = 8
    a, tmp, out = floats(), empty(promote_private=True), empty()
    f = chain(queue, a, tmp, out)
    f = chain(queue, a, tmp, out)
    assert not tmp.is_allocated
    others = [(floats(), empty()) for _ in range(12)]
    for other in others:
        queue.submit(copy, 8, *other)
    tmp.write(np.zeros(8, np.float32))
    f.replay().wait()
    chain(queue, a, tmp, out)
    assert np.array_equal(out.numpy(), a.numpy() * 2)
    cache = queue._state.launcher.cache
    cache.drop_stale()
    assert all(entry.is_kept for key in cache.runs for entry in key[1:])


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


@pytest.mark.slow
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
