"""The states of a queue, and the calls that do not fit them."""

from __future__ import annotations

import sys
import threading
import warnings

import numpy as np
import pytest

import fusionq as fq
from fusionq.memory.fusing_queues import QUEUES
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, gather, increment, put


def test_plain_submission_runs_at_once_and_in_order(queue):
    a, out = floats(), empty()
    for _ in range(3):
        event = queue.submit(increment, 8, a)
    queue.submit(copy, 8, a, out).wait()
    assert event.is_complete
    assert out.numpy().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


def test_start_submit_complete(queue):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    assert not queue.is_in_fusion_mode()
    queue.start_fusion()
    assert queue.is_in_fusion_mode()
    first = queue.submit(copy, 8, a, tmp)
    second = queue.submit(copy, 8, tmp, out)
    assert not first.is_complete
    assert first.native is None
    done = queue.complete_fusion()
    assert not queue.is_in_fusion_mode()
    assert done is not first
    for event in (first, second, done):
        event.wait()
        assert event.is_complete
    assert np.array_equal(out.numpy(), a.numpy())
    assert not tmp.is_allocated
    assert queue.last_report.strategy == "fused"


def test_the_context_manager_does_the_same(queue):
    a, out = floats(), empty()
    f = fq.fusion(queue)
    with f as entered:
        assert entered is f
        with pytest.raises(fq.FusionStateError, match="before the end"):
            _ = f.event
        assert queue.is_in_fusion_mode()
        queue.submit(copy, 8, a, out)
    assert not queue.is_in_fusion_mode()
    f.event.wait()
    assert np.array_equal(out.numpy(), a.numpy())
    assert f.report.strategy == "fused"


def test_start_while_fusing_is_an_error_and_the_list_stays(queue):
    a, out = floats(), empty()
    queue.start_fusion()
    queue.submit(copy, 8, a, out)
    with pytest.raises(fq.FusionStateError, match=r"test_fusion_state\.py:\d+.*already"):
        queue.start_fusion()
    assert queue.is_in_fusion_mode()
    queue.complete_fusion().wait()
    assert np.array_equal(out.numpy(), a.numpy())


def test_nested_blocks_are_an_error_and_the_outer_list_runs(queue):
    a, out = floats(), empty()
    with pytest.raises(fq.FusionStateError, match="nest"):  # noqa: SIM117
        with fq.fusion(queue) as outer:
            queue.submit(copy, 8, a, out)
            with fq.fusion(queue):
                pass
    assert not queue.is_in_fusion_mode()
    outer.event.wait()
    assert np.array_equal(out.numpy(), a.numpy())


def test_complete_without_start_is_an_error(queue):
    with pytest.raises(fq.FusionStateError, match="without start_fusion"):
        queue.complete_fusion()
    queue.start_fusion()
    with pytest.warns(fq.FusionAborted):
        queue.complete_fusion()
    with pytest.raises(fq.FusionStateError, match="without start_fusion"):
        queue.complete_fusion()


def test_an_empty_list_warns_and_gives_a_complete_event(queue):
    with pytest.warns(fq.FusionAborted, match="nothing was submitted"), fq.fusion(queue) as f:
        pass
    assert f.event.is_complete
    f.event.wait()
    assert f.report.stages == ()
    assert "nothing was submitted" in f.report.fallback
    assert str(f.report)
    assert f.replay().is_complete


def test_cancel_runs_the_list_unfused(queue):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    queue.start_fusion()
    first = queue.submit(copy, 8, a, tmp)
    queue.submit(copy, 8, tmp, out)
    done = queue.cancel_fusion()
    assert not queue.is_in_fusion_mode()
    done.wait()
    assert first.is_complete
    assert tmp.is_allocated
    assert np.array_equal(out.numpy(), a.numpy())
    assert queue.last_report.strategy == "unfused"
    assert "cancelled" in queue.last_report.fallback
    with pytest.raises(fq.FusionStateError):
        queue.complete_fusion()


def test_cancel_outside_fusion_mode_does_nothing(queue):
    assert queue.cancel_fusion().is_complete
    queue.start_fusion()
    assert queue.cancel_fusion().is_complete
    assert not queue.is_in_fusion_mode()


def test_a_queue_can_forbid_fusion(target):
    with fq.FusionQueue(target, fusion=False) as queue:
        with pytest.raises(fq.FusionStateError, match="fusion=False"):
            queue.start_fusion()
        with pytest.raises(fq.FusionStateError, match="fusion=False"), fq.fusion(queue):
            pass
        out = empty()
        queue.submit(put, 8, np.float32(3), out).wait()
        assert out.numpy().tolist() == [3] * 8


def test_an_exception_in_the_block_runs_what_there_is_and_goes_on(queue):
    a, out, never = floats(), empty(), empty()
    with (
        warnings.catch_warnings(),
        pytest.raises(ZeroDivisionError),
        fq.fusion(queue) as f,
    ):
        warnings.simplefilter("error")
        event = queue.submit(copy, 8, a, out)
        queue.submit(copy, 8, 1 // 0, never)
    assert not queue.is_in_fusion_mode()
    event.wait()
    f.event.wait()
    assert np.array_equal(out.numpy(), a.numpy())
    assert not never.is_allocated
    assert f.report.strategy == "unfused"
    assert "ZeroDivisionError" in f.report.fallback


def test_a_failed_submit_leaves_the_list_as_it_was(queue):
    a, out = floats(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
        with pytest.raises(fq.ArgumentError):
            queue.submit(copy, 8, a)
        with pytest.raises(fq.ArgumentError):
            queue.submit(copy, 8, a, out, out)
        assert queue.is_in_fusion_mode()
        queue.submit(increment, 8, out)
    f.event.wait()
    assert len(f.report.submissions) == 2
    assert np.array_equal(out.numpy(), a.numpy() + 1)


def test_closing_inside_the_block_by_hand(queue):
    a, out = floats(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
        queue.complete_fusion()
        queue.submit(increment, 8, out)
    f.event.wait()
    assert np.array_equal(out.numpy(), a.numpy() + 1)
    assert f.report.strategy == "fused"


def test_a_closed_queue_takes_nothing(target):
    queue = fq.FusionQueue(target)
    a, out = floats(), empty()
    queue.submit(copy, 8, a, out)
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, out)
    queue.close()
    queue.close()
    for call in (
        lambda: queue.submit(copy, 8, a, out),
        queue.start_fusion,
        lambda: queue.memcpy(out, a),
        lambda: queue.fill(out, 1.0),
        lambda: queue.host_task(print),
        f.replay,
    ):
        with pytest.raises(fq.FusionStateError):
            call()
    queue.wait()
    assert np.array_equal(out.numpy(), a.numpy())
    assert "closed" in repr(queue)


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "fuse"},
        {"barriers": "some"},
        {"promote": "all"},
        {"fp": "loose"},
        {"require": 2},
    ],
)
def test_unknown_options_are_refused_before_anything_is_submitted(queue, options):
    with pytest.raises(fq.ArgumentError, match=f"{next(iter(options))}=.*is not one of"):
        fq.fusion(queue, **options)
    assert not queue.is_in_fusion_mode()
    queue.start_fusion()
    with pytest.raises(fq.ArgumentError):
        queue.complete_fusion(**options)
    assert queue.is_in_fusion_mode()
    queue.cancel_fusion()


@pytest.mark.parametrize("strategy", ["auto", "fused", "sequence", "megakernel", "unfused"])
def test_every_strategy_gives_the_same(queue, strategy):
    a, tmp, out = floats(), empty(promote_private=True), empty()
    with fq.fusion(queue, strategy=strategy) as f:
        queue.submit(copy, 8, a, tmp)
        queue.submit(add, 8, tmp, a, out)
    assert np.array_equal(out.numpy(), a.numpy() * 2)
    assert f.report.strategy in ("fused", "sequence", "unfused")


def test_refused_with_require_runs_unfused_and_raises(queue):
    n = 1 << 13  # no work-group is as long
    a, tmp, out = floats(n), empty(n), empty(n)
    index = fq.Buffer(np.arange(n)[::-1].copy())
    with (
        pytest.raises(fq.FusionRefused, match=r"test_fusion_state\.py:\d+: require=True"),
        fq.fusion(queue, require=True) as f,
    ):
        queue.submit(copy, n, a, tmp)
        event = queue.submit(gather, n, tmp, index, out)
    assert not queue.is_in_fusion_mode()
    event.wait()
    f.event.wait()
    assert f.event.is_complete
    assert np.array_equal(out.numpy(), a.numpy()[::-1])
    assert f.report.strategy == "unfused"
    assert "require=True" in f.report.fallback
    with pytest.raises(fq.FusionStateError):
        queue.complete_fusion()


def test_two_threads_use_one_queue(queue):
    total = fq.Buffer(np.zeros(4, np.int64))
    errors = []

    def work():
        try:
            for _ in range(50):
                queue.submit(increment, 4, total)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert total.numpy().tolist() == [200] * 4


def test_two_threads_submit_to_one_list(queue):
    total = fq.Buffer(np.zeros(4, np.int64))
    with fq.fusion(queue) as f:
        threads = [
            threading.Thread(target=lambda: [queue.submit(increment, 4, total) for _ in range(5)])
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(f.report.submissions) == 15
    assert total.numpy().tolist() == [15] * 4


def test_no_queue_stays_in_the_list_of_fusing_queues(queue):
    out = empty()
    with fq.fusion(queue):
        assert list(QUEUES) == [queue._state]
        queue.submit(put, 1, 1.0, out)
    assert not QUEUES


# ---------------------------------------------------------------------------- profiling
def test_events_report_when_the_device_worked(target):
    a, out = floats(), empty()
    if target == "reference":
        with fq.FusionQueue(target) as plain, pytest.raises(fq.FusionStateError, match="no times"):
            _ = plain.submit(copy, 8, a, out).profiling
        return
    with fq.FusionQueue(target, profiling=True) as timed:
        start, end = timed.submit(copy, 8, a, out).profiling
        assert 0 < start <= end
        with fq.fusion(timed) as f:
            first = timed.submit(copy, 8, a, out)
            with pytest.raises(fq.FusionStateError, match="no times"):
                _ = first.profiling
            timed.submit(increment, 8, out)
        assert first.profiling == f.event.profiling
        assert first.profiling[0] >= end
    with fq.FusionQueue(target) as untimed, pytest.raises(fq.FusionStateError, match="no times"):
        _ = untimed.submit(copy, 8, a, out).profiling


def test_queues_are_made_while_other_threads_end_their_lists():
    """All queues in fusion mode are looked at when a list ends."""
    failures, kept = [], []
    before = sys.getswitchinterval()
    ended = threading.Event()

    def make():
        try:
            while not ended.is_set() and len(kept) < 20_000:
                kept.append(fq.FusionQueue("reference"))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=make)
    sys.setswitchinterval(1e-6)
    try:
        with fq.FusionQueue("reference") as queue, fq.FusionQueue("reference") as other:
            thread.start()
            other.start_fusion()
            out = empty()
            for _ in range(400):
                with fq.fusion(queue):
                    queue.submit(put, 8, 1.0, out)
            other.cancel_fusion()
    finally:
        sys.setswitchinterval(before)
        ended.set()
        thread.join()
    assert kept and not failures
