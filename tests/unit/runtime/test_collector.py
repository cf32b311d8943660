"""Every public call while the collector runs at any point, and frees what pending lists use.

What a circle holds dies whenever the collector runs: Buffers around others' memory that lists use,
and queues in fusion mode, so that finalizers have something to do inside every call.
"""

from __future__ import annotations

import copy as copying
import gc
import json
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import pytest

import fusionq as fq
from fusionq.memory.fusing_queues import NOTED, QUEUES
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment, put

T = TypeVar("T")
ARRAY = np.arange(8, dtype=np.float32)
THRESHOLDS = (*range(1, 10), 11, 13, 17, 19, 23, 29, 37, 43, 50)
"""Of new objects, after which the collector runs: at any point of a call for the small ones, at
other points each time for the larger, which divide no count of objects."""


@fq.kernel
def exchange(item: fq.NdItem, tile, out):
    i, k = item.get_global_id(0), item.get_local_id(0)
    tile[k] = out[i]
    fq.group_barrier(item.get_group())
    out[i] = tile[3 - k]


def in_a_circle(value: T) -> T:
    """``value``, which only the collector can free."""
    circle: list[object] = [value]
    circle.append(circle)
    return value


def adopted() -> fq.Buffer:
    """A Buffer whose end ends the fusion mode of queues that use it."""
    return fq.Buffer(np.ones(8, np.float32), copy=False)


def a_queue_that_dies_in_fusion_mode(target: str | None) -> None:
    queue = in_a_circle(fq.FusionQueue(target))
    queue.start_fusion()
    queue.submit(increment, 8, in_a_circle(adopted()))


# -------------------------------------------------------------------------------- calls
def plain_submissions(queue: fq.FusionQueue, target: str | None) -> None:
    out = empty()
    event = queue.submit(copy, 8, in_a_circle(floats()), out)
    queue.submit(add, fq.Range(8), ARRAY, in_a_circle(adopted()), out, depends_on=event)
    queue.submit(exchange, fq.NdRange(8, 4), fq.LocalAccessor(4, np.float32), out)
    event.wait()
    assert event.is_complete and repr(event)
    assert out.numpy().tolist() == [4, 3, 2, 1, 8, 7, 6, 5]


def a_fusion_and_its_replay(queue: fq.FusionQueue, target: str | None) -> None:
    out, other = empty(), in_a_circle(floats())
    with fq.fusion(queue) as f:
        middle = in_a_circle(empty(promote_private=True))
        queue.submit(copy, 8, in_a_circle(floats()), middle)
        event = queue.submit(add, 8, middle, other, out)
        queue.submit(increment, 8, fq.access(out, None))
    f.event.wait()
    event.wait()
    assert str(f.report) and repr(f.report) and json.dumps(f.report.to_dict())
    expected = 2 * np.arange(1, 9) + 1
    assert (out.numpy() == expected).all()
    out.write(ARRAY)
    f.replay().wait()
    assert (out.numpy() == expected).all()


def a_replay_with_another_value(queue: fq.FusionQueue, target: str | None) -> None:
    out, value = empty(), 2.0
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(put, 8, value, out)
        queue.submit(increment, 8, out)
    f.replay(value=5.0).wait()
    assert (out.numpy() == 6).all()


def commands(queue: fq.FusionQueue, target: str | None) -> None:
    out, other = empty(), in_a_circle(floats())
    queue.start_fusion()
    queue.submit(increment, 8, out)
    queue.memcpy(out, other)
    queue.submit(increment, 8, out)
    queue.fill(out, 3.0)
    queue.host_task(lambda x: np.add(x, 1, out=x), out)
    queue.complete_fusion()
    assert not queue.is_in_fusion_mode() and repr(queue) and str(queue.last_report)
    assert (out.numpy() == 4).all()


def buffers(queue: fq.FusionQueue, target: str | None) -> None:
    whole = fq.Buffer(np.arange(16, dtype=np.int32).reshape(4, 4))
    in_a_circle(whole[::2, ::-1])
    view = whole[1:, ::2]
    assert (np.asarray(view) == whole.numpy()[1:, ::2]).all()
    for again in (copying.copy, copying.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        assert (again(view).numpy() == view.numpy()).all()
    whole.write(np.zeros((4, 4), np.int32))
    assert repr(whole) and (np.from_dlpack(whole) == 0).all()
    assert (fq.Buffer(whole).numpy() == fq.Buffer(whole, copy=False).numpy()).all()


def what_ends_fusion_mode(queue: fq.FusionQueue, target: str | None) -> None:
    out = empty()
    for end in (
        queue.complete_fusion, queue.cancel_fusion, queue.wait, out.numpy,
        lambda: np.add(out, 1), lambda: out.write(ARRAY), lambda: copying.copy(out),
        lambda: queue.fill(out, 1.0),
    ):  # fmt: skip
        in_a_circle(adopted())
        queue.start_fusion()
        event = queue.submit(put, 8, 1.0, out)
        queue.submit(add, 8, in_a_circle(floats()), in_a_circle(adopted()), in_a_circle(empty()))
        end()
        event.wait()
        queue.cancel_fusion()
    with pytest.raises(KeyError), fq.fusion(queue):
        queue.submit(increment, 8, out)
        in_a_circle(adopted())
        raise KeyError
    assert (out.numpy() == 2).all()


def two_queues(queue: fq.FusionQueue, target: str | None) -> None:
    out, other = empty(), empty()
    a_queue_that_dies_in_fusion_mode(target)
    with fq.FusionQueue(target) as second:
        queue.start_fusion()
        second.start_fusion()
        queue.submit(put, 8, 1.0, out)
        second.submit(add, 8, out, out, other)
        a_queue_that_dies_in_fusion_mode(target)
        queue.submit(increment, 8, out)
        second.complete_fusion()
        queue.complete_fusion()
        assert (other.numpy() == 2).all() and (out.numpy() == 2).all()
        queue.start_fusion()
        event = queue.submit(put, 8, 7.0, out)
        second.submit(copy, 8, floats(), other, depends_on=[event])
        queue.complete_fusion()
    assert (out.numpy() == 7).all() and (other.numpy() == np.arange(1, 9)).all()


def errors(queue: fq.FusionQueue, target: str | None) -> None:
    out = empty()
    for wrong in (
        lambda: queue.submit(put, 9, 1.0, out), lambda: queue.submit(put, 8, out),
        queue.complete_fusion, lambda: queue.memcpy(out, floats(9)),
        lambda: queue.fill(out, "x"), lambda: fq.Buffer(3), lambda: out[9],
        lambda: copying.copy(queue), lambda: fq.fusion(queue, strategy="x"),
        lambda: fq.Range(-1), lambda: fq.NdRange(8, 3),
        lambda: fq.access(empty(promote_local=True), "private"),
    ):  # fmt: skip
        with pytest.raises(fq.FusionqError):
            wrong()


CALLS = (
    plain_submissions, a_fusion_and_its_replay, a_replay_with_another_value, commands, buffers,
    what_ends_fusion_mode, two_queues, errors,
)  # fmt: skip


def what_compiles(queue: fq.FusionQueue, target: str | None, number: int) -> None:
    """Kernels and lists that no cache has: planned, checked and profiled."""
    constant = float(number)

    @fq.kernel
    def plus(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[i] + constant

    @fq.kernel
    def times(item: fq.Item, a, out):
        i = item.get_id(0)
        if i > 0:
            out[i] = a[i - 1] * constant

    out, middle = empty(), empty(internal=True)
    a_queue_that_dies_in_fusion_mode(target)
    with fq.fusion(queue, promote="internal") as f:
        queue.submit(plus, 8, in_a_circle(floats()), middle)
        queue.submit(times, 8, middle, out)
        queue.submit(add, 8, out, in_a_circle(adopted()), out)
    assert f.report.source and f.report.device_source
    assert out.numpy().tolist() == [1.0] + [(k + constant) * constant + 1 for k in range(1, 8)]
    with fq.profile() as profile, fq.fusion(queue, check="initialized"):
        queue.submit(plus, 8, in_a_circle(floats()), out)
        queue.submit(plus, 8, out, in_a_circle(empty()))
    assert str(profile)


# -------------------------------------------------------------------------------- tests
@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What threads and finalizers raise; the collector is as before, afterwards."""
    found: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: found.append(f"finalizer: {u.exc_value}"))
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # so that a collection looks at what is new, and takes microseconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fq.FusionAborted)
        try:
            yield found
        finally:
            gc.set_threshold(*before)
            gc.collect()
    assert not QUEUES and not NOTED


def in_threads(work: Callable[[], None], count: int, failures: list[str]) -> None:
    """``work`` in so many threads at once; none may wait for ever."""

    def noted() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=noted, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    assert not failures, failures[0]


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("threads", [1, 3])
def test_every_call_with_every_threshold(
    target: str | None, threads: int, failures: list[str]
) -> None:
    """Each threshold for some of the calls, and each call with some of the thresholds."""
    calls = list(CALLS)

    def work() -> None:
        with fq.FusionQueue(target) as queue:
            for call in calls[:3]:
                call(queue, target)

    for threshold in THRESHOLDS:
        gc.set_threshold(threshold, 2, 2)
        in_threads(work, threads, failures)
        calls.append(calls.pop(0))


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("threads", [1, 3])
def test_all_calls_with_every_threshold(
    target: str | None, threads: int, failures: list[str]
) -> None:
    def work() -> None:
        with fq.FusionQueue(target) as queue:
            for call in CALLS:
                call(queue, target)

    for threshold in THRESHOLDS if threads == 1 else THRESHOLDS[::4]:
        gc.set_threshold(threshold, 2, 2)
        in_threads(work, threads, failures)


def test_planning_checking_and_profiling(target: str | None, failures: list[str]) -> None:
    for threshold in (1, 7, 50):
        gc.set_threshold(threshold, 2, 2)
        with fq.FusionQueue(target) as queue:
            what_compiles(queue, target, threshold)
    assert not failures, failures[0]


def test_threads_that_share_a_queue(target: str | None, failures: list[str]) -> None:
    """Which of them begins and ends fusion mode is left to chance; all submissions run."""

    def work(queue: fq.FusionQueue) -> None:
        for _ in range(3):
            out = empty()
            queue.submit(put, 8, 1.0, out)
            event = queue.submit(add, 8, in_a_circle(floats()), out, out)
            in_a_circle(adopted())
            try:
                queue.start_fusion()
                queue.submit(increment, 8, in_a_circle(adopted()))
            except fq.FusionStateError:
                pass  # another thread has begun
            queue.submit(increment, 8, out)
            event.wait()
            assert (out.numpy() == np.arange(1, 9) + 2).all()
            queue.cancel_fusion()

    for threshold in (1, 2, 5, 20, 50):
        gc.set_threshold(threshold, 2, 2)
        with fq.FusionQueue(target) as queue:
            in_threads(lambda: work(queue), 3, failures)
