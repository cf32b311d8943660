"""Lists that are known to run unfused are launched while they are recorded; nobody sees that."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import Mock

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import DeviceError
from fusionq.base.options import FusionOptions
from fusionq.runtime import eager_launches
from fusionq.submission.known import UnfusedList
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import copy, increment, put, reverse, scale

IS_TOLD, IS_IDLE = eager_launches.is_told_early, eager_launches.is_idle


@pytest.fixture(autouse=True)
def soon(request, monkeypatch):
    """From the second submission on each is launched at once, in any list that runs unfused."""
    monkeypatch.setattr(UnfusedList, "gains", lambda self: self.run is not None)
    monkeypatch.setattr(eager_launches, "FIRST", 2)
    monkeypatch.setattr(eager_launches, "NEXT", 1)
    monkeypatch.setattr(eager_launches, "is_told_early", lambda backend: True)
    monkeypatch.setattr(eager_launches, "is_idle", lambda launcher: True)


def _launched(queue: fq.FusionQueue) -> int:
    """How many submissions of the list that is recorded have been launched."""
    return len(queue._state.list.launched)


def _steps(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer) -> list[fq.Event]:
    """No two of these may run in one kernel of several work-groups, and none twice."""
    first = queue.submit(reverse, 8, a, b)
    return [first, queue.submit(increment, 8, b), queue.submit(reverse, 8, b, a)]


def _known(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer) -> None:
    """A list of ``_steps`` is known to run unfused; ``a`` is greater by two then."""
    for _ in range(2):
        with fq.fusion(queue, strategy="unfused"):
            _steps(queue, a, b)


def test_a_known_list_is_launched_before_its_end(queue):
    a, b = floats(), empty()
    _known(queue, a, b)
    with fq.fusion(queue, strategy="unfused") as f:
        events = _steps(queue, a, b)
        assert _launched(queue) == 3
        assert not any(event.is_complete or event.native for event in events)
    for event in (*events, f.event):
        event.wait()
        assert event.is_complete
    assert a.numpy().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    assert f.report.strategy == "unfused"
    assert [stage.submissions for stage in f.report.stages] == [(0,), (1,), (2,)]
    f.replay().wait()
    assert a.numpy().tolist() == [5, 6, 7, 8, 9, 10, 11, 12]


def test_a_few_are_launched_together(queue, monkeypatch):
    monkeypatch.setattr(eager_launches, "FIRST", 4)
    monkeypatch.setattr(eager_launches, "NEXT", 8)
    a, expected = floats(), np.arange(1, 9)
    for _ in range(3):
        counts = []
        with fq.fusion(queue, strategy="unfused"):
            for _ in range(15):
                queue.submit(increment, 8, a)
                counts.append(_launched(queue))
        expected += 15
        assert np.array_equal(a.numpy(), expected)
    assert counts == [0] * 3 + [4] * 8 + [12] * 4


def test_the_hosts_own_processors_are_not_told_early(queue):
    queue._state.begins_early = IS_TOLD(queue._state.launcher.backend)
    a, b = floats(), empty()
    _known(queue, a, b)
    with fq.fusion(queue, strategy="unfused"):
        _steps(queue, a, b)
        assert (_launched(queue) > 0) == (queue.device.kind != "cpu")
    assert a.numpy().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


def test_where_the_device_is_behind_a_list_is_launched_at_its_end(queue, monkeypatch):
    monkeypatch.setattr(eager_launches, "is_idle", IS_IDLE)
    a, b = floats(), empty()
    _known(queue, a, b)
    assert IS_IDLE(Mock(last_event=None))
    queue._state.launcher.last_event = Mock(complete=False)
    with fq.fusion(queue, strategy="unfused") as f:
        _steps(queue, a, b)
        assert _launched(queue) == 0
    assert f.report.strategy == "unfused"
    assert a.numpy().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


def test_what_gains(monkeypatch):
    monkeypatch.undo()
    run, entry = Mock(is_trial=False), Mock(stores=(), scalars=0)
    run.adaptive.untimed, run.adaptive.seconds = 3, 70e-6
    assert UnfusedList(FusionOptions(), (entry,) * 4, run, 10e-6).gains()
    assert not UnfusedList(FusionOptions(), (entry,) * 4, run, 20e-6).gains()
    known = UnfusedList(FusionOptions(), (entry,) * 4, run, 10e-6)
    run.adaptive.untimed = 0
    assert not known.gains(), "its time is wanted"
    run.adaptive.untimed, run.is_trial = 3, True
    assert not known.gains(), "another may be next"
    run.adaptive, run.is_trial = None, False
    assert not known.gains(), "nobody knows what it takes"
    assert not UnfusedList(FusionOptions()).gains()


def test_what_cannot_join_is_launched_early_and_what_is_fused_is_not(queue):
    n = 2 * queue._state.target.largest_barrier_group
    a, b, out = floats(n), empty(n), empty(n)

    def apart() -> None:
        queue.submit(reverse, n, a, b)
        queue.submit(increment, n, b)
        queue.submit(scale, n, b, 1.0, a)
        queue.submit(reverse, n, a, b)
        queue.submit(copy, n, b, a)

    def joined() -> None:
        queue.submit(copy, n, a, out)
        queue.submit(increment, n, out)

    for launched in (0, 2):
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(reverse, n, a, b)
            queue.submit(reverse, n, b, a)
            assert _launched(queue) == launched
        assert len(f.report.stages) == 2
    for submits in (apart, joined):
        for _ in range(2):
            with fq.fusion(queue, strategy="sequence"):
                submits()
                assert _launched(queue) <= (submits is apart)
    with fq.fusion(queue, strategy="auto"):  # which may choose anything
        apart()
        assert _launched(queue) == 0
    queue.start_fusion()  # whose options come at the end
    apart()
    assert _launched(queue) == 0
    queue.complete_fusion(strategy="sequence")
    assert np.array_equal(a.numpy(), np.arange(1, n + 1) + 4)
    assert np.array_equal(out.numpy(), np.arange(1, n + 1) + 3)


def test_a_list_that_goes_on_otherwise_runs_unfused_once(queue):
    a, b = floats(), empty()
    _known(queue, a, b)
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(reverse, 8, a, b)
        queue.submit(increment, 8, b)
        queue.submit(scale, 8, b, 2.0, b)
        assert _launched(queue) == 2
        queue.submit(reverse, 8, b, a)
    assert a.numpy().tolist() == [8, 10, 12, 14, 16, 18, 20, 22]
    assert "went on in another way" in str(f.report)
    for _ in range(2):
        with fq.fusion(queue, strategy="unfused") as f:
            _steps(queue, a, b)
            assert _launched(queue) == 0
    assert "another way" not in str(f.report)
    assert a.numpy().tolist() == [10, 12, 14, 16, 18, 20, 22, 24]


def test_a_list_that_is_shorter(queue):
    a, b = floats(), empty()
    _known(queue, a, b)
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(reverse, 8, a, b)
        queue.submit(increment, 8, b)
        assert _launched(queue) == 2
    f.event.wait()
    assert b.numpy().tolist() == [11, 10, 9, 8, 7, 6, 5, 4]
    assert "went on in another way" in str(f.report)
    f.replay().wait()
    assert b.numpy().tolist() == [11, 10, 9, 8, 7, 6, 5, 4]


def test_every_submission_runs_once_however_the_list_ends(queue):
    a, b = floats(), empty()
    _known(queue, a, b)
    ends: dict[str, Callable[[fq.Event], object]] = {
        "Event.wait": lambda event: event.wait(),
        "numpy": lambda event: b.numpy(),
        "FusionQueue.wait": lambda event: queue.wait(),
    }
    expected = np.array(a.numpy())
    for text, end in ends.items():
        with pytest.warns(fq.FusionAborted, match=text), fq.fusion(queue, strategy="unfused"):
            events = _steps(queue, a, b)
            assert _launched(queue) == 3
            end(events[1])
            assert not queue.is_in_fusion_mode()
        expected += 1
        assert np.array_equal(a.numpy(), expected), text
    with pytest.raises(ZeroDivisionError), fq.fusion(queue, strategy="unfused") as f:
        events = _steps(queue, a, b)[:2]
        raise ZeroDivisionError
    for event in events:
        event.wait()
    assert np.array_equal(a.numpy(), expected + 1)
    assert "ZeroDivisionError" in str(f.report)
    with fq.fusion(queue, strategy="unfused"):
        _steps(queue, a, b)
        queue.cancel_fusion()
    assert np.array_equal(a.numpy(), expected + 2)


def test_scalars_dependences_barriers_and_replays(queue):
    a, b = floats(), floats()
    expected = np.arange(1, 9, dtype=np.float32)
    with fq.FusionQueue(None if queue.sycl_queue is not None else "reference") as other:

        def run(factor: float, waits: bool, barrier: bool) -> None:
            nonlocal expected
            with fq.fusion(queue, strategy="unfused") as f:
                queue.submit(scale, 8, a, factor, a)
                event = other.submit(increment, 8, b)
                queue.submit(increment, 8, a, depends_on=event if waits else ())
                launched.append(_launched(queue))
                if barrier:
                    queue.barrier(event)
                queue.submit(scale, 8, a, 1 / factor, a)
                launched.append(_launched(queue))
            expected = (expected * factor + 1) / factor
            assert np.array_equal(a.numpy(), expected)
            assert f.event.is_complete

        launched: list[int] = []
        for waits, barrier in ((0, 0), (0, 0), (0, 0), (1, 0), (0, 1), (0, 0)):
            run(2.0 ** len(launched), bool(waits), bool(barrier))
        assert launched == [0, 0, 2, 3, 2, 3, 0, 0, 2, 2, 2, 3]
        assert b.numpy()[0] == 7
    for _ in range(2):
        with fq.fusion(queue, strategy="unfused") as f:
            queue.submit(increment, 8, b)
            queue.submit(increment, 8, a)
    with fq.fusion(queue, strategy="unfused"):
        queue.submit(increment, 8, b)
        queue.submit(increment, 8, a)
        assert _launched(queue) == 2
        f.replay()
        queue.submit(increment, 8, a)
        assert _launched(queue) == 2
    assert np.array_equal(a.numpy(), expected + 5)
    assert b.numpy()[0] == 11


def test_memory_of_others_waits_for_the_end(queue):
    a, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    b = floats()
    for _ in range(3):
        with fq.fusion(queue, strategy="unfused"):
            queue.submit(increment, 8, b)
            queue.submit(copy, 8, a, out)
            queue.submit(increment, 8, out)
            assert _launched(queue) == 0
        queue.wait()
        assert out.tolist() == [2] * 8
    assert b.numpy().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


def test_what_other_queues_have_recorded_before_runs_before(queue):
    a, b, seen = floats(), empty(), empty()
    _known(queue, a, b)
    with fq.FusionQueue(None if queue.sycl_queue is not None else "reference") as other:
        other.start_fusion()
        other.submit(copy, 8, a, seen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fq.FusionAborted)
            with fq.fusion(queue, strategy="unfused"):
                _steps(queue, a, b)
                assert _launched(queue) == 0
            other.complete_fusion()
        assert seen.numpy().tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
        with fq.fusion(queue, strategy="unfused"):
            queue.submit(reverse, 8, a, b)
            queue.submit(increment, 8, b)
            assert _launched(queue) == 2
            with pytest.warns(fq.FusionAborted, match="depends on it"):
                other.submit(copy, 8, b, seen).wait()
            queue.submit(reverse, 8, b, a)
        assert seen.numpy().tolist() == [12, 11, 10, 9, 8, 7, 6, 5]
        assert a.numpy().tolist() == [5, 6, 7, 8, 9, 10, 11, 12]


def test_what_cannot_be_launched_is_an_error_of_the_list(queue, monkeypatch):
    a, b = floats(), empty()
    _known(queue, a, b)
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(reverse, 8, a, b)
        queue.submit(increment, 8, b)
        with _failing(queue, monkeypatch, DeviceError("no launch today")):
            queue.submit(reverse, 8, b, a)
        assert _launched(queue) == 2
    f.event.wait()  # it could be launched in the end
    assert a.numpy().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    with pytest.raises(DeviceError, match="no launch today"):
        queue_list = fq.fusion(queue, strategy="unfused").__enter__()
        events = [queue.submit(reverse, 8, a, b), queue.submit(increment, 8, b)]
        with _failing(queue, monkeypatch, DeviceError("no launch today")):
            events.append(queue.submit(reverse, 8, b, a))
            queue_list.__exit__(None, None, None)
    for event in events[:2]:
        event.wait()
    with pytest.raises(DeviceError, match="no launch today"):
        events[2].wait()
    assert b.numpy().tolist() == [12, 11, 10, 9, 8, 7, 6, 5]


@contextmanager
def _failing(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> Iterator[None]:
    """No launch of the queue can be made inside."""

    def failing(self, depends=()):
        raise error

    launches = queue._state.list.entries[0].begins.run.launches
    with monkeypatch.context() as patch:
        patch.setattr(type(launches[0]), "launch", failing)
        yield


def test_an_interrupted_submission_is_not_in_the_list(queue, monkeypatch):
    a, b = floats(), empty()
    _known(queue, a, b)
    with fq.fusion(queue, strategy="unfused"):
        queue.submit(reverse, 8, a, b)
        queue.submit(increment, 8, b)
        failing = _failing(queue, monkeypatch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt), failing:
            queue.submit(reverse, 8, b, a)
        assert len(queue._state.list.entries) == _launched(queue) == 2
        queue.submit(reverse, 8, b, a)
    assert a.numpy().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


@pytest.mark.slow
def test_random_lists_that_begin_alike():
    """Whatever is known of lists, each submission runs once and in order."""
    chance = random.Random(7)
    early = 0
    with fq.FusionQueue("reference") as queue, fq.FusionQueue("reference") as other:
        buffers: list[fq.Buffer] = []
        present: list[np.ndarray] = []

        def step(kind: int) -> None:
            target, source = kind % 2, 1 - kind % 2
            if kind < 2:
                queue.submit(increment, 4, buffers[target])
                present[target] += 1
            elif kind < 4:
                queue.submit(reverse, 4, buffers[source], buffers[target])
                present[target] = present[source][::-1].copy()
            else:
                queue.submit(put, 4, float(kind), buffers[target])
                present[target][:] = kind

        for number in range(300):
            if number % 15 == 0:  # new submissions, of which nothing is known
                buffers = [floats(4, start) for start in (1.0, 5.0)]
                present = [np.array(buffer.numpy()) for buffer in buffers]
                usual = [chance.randrange(6) for _ in range(4)]
            kinds = list(usual)
            if chance.random() < 0.2:
                kinds[1:] = [chance.randrange(6) for _ in range(chance.randrange(5))]
            end = chance.choice(("complete", "complete", "raise", "look", "other"))
            strategy = chance.choice(("unfused", "auto"))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", fq.FusionAborted)
                try:
                    with fq.fusion(queue, strategy=strategy):
                        for kind in kinds:
                            step(kind)
                            if queue.is_in_fusion_mode():
                                early += _launched(queue) > 0
                            if chance.random() < 0.1 and end == "look":
                                assert np.array_equal(buffers[0].numpy(), present[0])
                            if chance.random() < 0.1 and end == "other":
                                other.submit(increment, 4, buffers[1])
                                present[1] += 1
                        if end == "raise":
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    pass
            if chance.random() < 0.3:
                for buffer, values in zip(buffers, present, strict=True):
                    assert np.array_equal(buffer.numpy(), values)
        assert early > 100
