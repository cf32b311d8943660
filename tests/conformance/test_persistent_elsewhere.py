"""Launches of persistent kernels that serve lists over other arrays: they share control memory."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import DeviceError, MegakernelStalled
from fusionq.codegen import queue_layout as q
from fusionq.megakernel.launch import MovablePersistentLaunch, PersistentLaunch
from tests.conformance.test_persistent import (
    SIZE,
    _all_workers,
    control_words,
    fused,
    made,
    queue,
    start,
    steps,
)
from tests.unit.megakernel.cases import blur, reverse

__all__ = ["_all_workers", "made", "queue"]

class Lists:
    """Lists of one kind, each over Buffers of its own; those of ``shared`` have one control
    memory."""

    def __init__(self, queue: fq.FusionQueue, count: int) -> None:
        self.queue = queue
        self.buffers = [self._new(seed) for seed in range(count + 1)]
        self.fusions = [fused(queue, a, b) for a, b in self.buffers]
        queue.wait()
        self.replays = [0] * (count + 1)

    def _new(self, seed: int) -> tuple[fq.Buffer, fq.Buffer]:
        a = np.random.default_rng(seed).integers(0, 1000, SIZE)
        return fq.Buffer(a), fq.Buffer(np.zeros(SIZE, np.int64))

    def launch(self, k: int) -> PersistentLaunch:
        """The launch of the k-th list."""
        pending = self.fusions[k]._list
        assert pending is not None and pending.run is not None
        (launch,) = pending.run.launches
        assert isinstance(launch, PersistentLaunch)
        return launch

    def replay(self, k: int) -> fq.Event:
        self.replays[k] += 1
        return self.fusions[k].replay()

    def begin_anew(self, k: int) -> None:
        """The k-th list's arrays are as when they were made."""
        for buffer, new in zip(self.buffers[k], self._new(k), strict=True):
            buffer.write(new.numpy())
        self.replays[k] = -1

    def check(self, k: int) -> None:
        """The k-th list's results are those of the reference backend."""
        found = [buffer.numpy().tolist() for buffer in self.buffers[k]]
        assert found == self.expected(k, self.replays[k] + 1)

    def expected(self, k: int, runs: int) -> list[list[int]]:
        """What the k-th list's arrays have to be after so many runs."""
        with fq.FusionQueue("reference") as reference:
            a, b = self._new(k)
            for _ in range(runs):
                steps(reference, a, b)
            return [a.numpy().tolist(), b.numpy().tolist()]


@pytest.fixture
def lists(queue: fq.FusionQueue) -> Lists:
    found = Lists(queue, 4)
    if type(found.launch(4)) is not MovablePersistentLaunch:
        pytest.skip("the backend binds launches anew")
    return found


def stall_next(launch: PersistentLaunch) -> None:
    """Have the next launch of ``launch`` give up its first wait."""
    launch.set_scalar("spin_limit", 3)
    with control_words(launch) as words:
        words[q.FIRST_COUNTER :, 0] -= np.uint32(1)


def test_lists_over_other_arrays_share_a_launch(
    queue: fq.FusionQueue, made: list[PersistentLaunch]
) -> None:
    lists = Lists(queue, 6)
    for k in (3, 1, 5, 3, 6, 0, 2):
        lists.replay(k)
    for k in range(7):
        lists.check(k)
    if type(lists.launch(6)) is MovablePersistentLaunch:
        assert len(made) == 2
        controls = {id(lists.launch(k)._control) for k in range(1, 7)}
        assert len(controls) == 1


def test_epochs_rise_in_the_order_of_the_launches(lists: Lists) -> None:
    control = lists.launch(1)._control
    before = control.epoch
    for k in (1, 2, 3, 2, 1):
        lists.replay(k)
    assert control.epoch == before + 5
    lists.queue.wait()
    with control_words(lists.launch(1)) as words:
        assert words[q.AT_WORK, 0] == 0


def test_epochs_wrap_for_all(lists: Lists) -> None:
    launch, last = lists.launch(2), 0xFFFFFFFE
    plan, epoch = launch.plan, launch._control.epoch
    with control_words(launch) as words:
        counted = words[q.FIRST_COUNTER :, 0].astype(np.int64) // epoch
        words[q.HEAD, 0] = last * (len(plan.stage) + plan.workers) % (1 << 32)
        words[q.ARRIVED, 0] = last * plan.workers % (1 << 32)
        words[q.MODE, 0] = 2 * last % (1 << 32)
        # Where workers count launches.
        words[q.ARRIVED, q.LEFT] = last * plan.workers % (1 << 32)
        words[q.MODE, q.LAUNCHES] = last
        words[q.FIRST_COUNTER :, 0] = counted * last % (1 << 32)
    launch._control.epoch = last
    for k in (1, 4, 2, 3):
        lists.replay(k)
    assert launch._control.epoch == 3
    for k in range(1, 5):
        lists.check(k)


def test_a_stall_is_told_to_all_lists_that_it_has_kept_from_running(lists: Lists) -> None:
    """Those before have their results; those behind have none, also where somebody has run another
    list by the time that they ask, or do not run, where the stall has been seen."""
    before = lists.replay(1)
    lists.queue._state.launcher.backend.wait()
    stall_next(lists.launch(2))
    stalled, behind = lists.replay(2), None
    try:
        behind = lists.replay(3)
    except MegakernelStalled as error:
        assert "this one has not run" in str(error)
        lists.replays[3] -= 1
    with pytest.raises(MegakernelStalled, match="results of this list are not complete"):
        stalled.wait()
    stalled.wait()  # says it once
    lists.replay(4).wait()
    before.wait()
    lists.check(1), lists.check(4)
    if behind is None:
        lists.check(3)
    else:
        with pytest.raises(MegakernelStalled, match="results of this list are not complete"):
            behind.wait()
    lists.launch(2).set_scalar("spin_limit", 1 << 30)
    for k in (2, 3):
        lists.begin_anew(k)
        lists.replay(k).wait()
        lists.check(k)


def test_who_comes_next_is_told_where_nobody_was(lists: Lists) -> None:
    stall_next(lists.launch(1))
    lists.fusions[1].replay()
    lists.queue._state.launcher.backend.wait()
    with pytest.raises(MegakernelStalled):
        lists.fusions[2].replay().wait()
    lists.begin_anew(2)
    lists.launch(1).set_scalar("spin_limit", 1 << 30)
    lists.replay(2).wait()
    lists.check(2)


def test_the_buffers_of_a_list_that_stalled_say_so(lists: Lists) -> None:
    """Whoever reads them asks the list's last launch."""
    stall_next(lists.launch(1))
    lists.fusions[1].replay()
    with pytest.raises(MegakernelStalled):
        lists.buffers[1][0].numpy()
    lists.launch(1).set_scalar("spin_limit", 1 << 30)
    for k in (2, 3):
        lists.replay(k)
        lists.check(k)


class Refused:
    """A launch that fails the next time; ``runs``: behind its being enqueued."""

    def __init__(self, inner: Any, error: BaseException, runs: bool) -> None:
        self._inner, self._error, self._runs = inner, error, runs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def launch(self, depends: object = ()) -> Any:
        if self._runs:
            self._inner.launch(depends)
        raise self._error


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("error", [DeviceError("refused"), KeyboardInterrupt()])
def test_an_error_of_a_launch_leaves_the_others_right(
    lists: Lists, error: BaseException, runs: bool
) -> None:
    """Nobody knows then whether its epoch was that of a launch."""
    launch = lists.launch(2)
    kept = launch._inner
    launch._inner = Refused(kept, error, runs)
    with pytest.raises(type(error)):
        lists.fusions[2].replay()
    launch._inner = kept
    lists.replays[2] += runs
    for k in (3, 2, 1):
        lists.replay(k).wait()
        lists.check(k)


def test_scalars_that_do_not_fit_leave_the_others_right(lists: Lists) -> None:
    launch = lists.launch(2)
    kept = launch._inner

    class Full(Refused):
        def set_scalar(self, name: str, value: object) -> None:
            raise self._error

    launch._inner = Full(kept, MemoryError(), False)
    with pytest.raises(MemoryError):
        lists.fusions[2].replay()
    launch._inner = kept
    for k in (1, 2):
        lists.replay(k).wait()
        lists.check(k)


def test_control_memory_lives_as_long_as_a_list(lists: Lists) -> None:
    """Also of those that nobody waits for."""
    for k in (1, 2, 3):
        lists.replay(k)
    del lists.fusions[:4]
    lists.queue._state.launcher.clear()
    gc.collect()
    for _ in range(2):
        last = lists.fusions[0].replay()
    lists.fusions.clear()
    kept = lists.buffers[4]
    lists.buffers.clear()
    gc.collect()
    last.wait()
    assert [buffer.numpy().tolist() for buffer in kept] == lists.expected(4, 3)


@fq.kernel
def added(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0)
    b[i] = a[i] + i


def over_new_arrays(
    queue: fq.FusionQueue, strategy: str, rounds: int, arrays: Callable[[int], list[Any]]
) -> list[bytes]:
    """Of each round the contents of its three arrays, the last of which shares no memory with the
    others."""
    found = []
    for k in range(rounds):
        a, b, other = arrays(k)
        with fq.fusion(queue, strategy=strategy, barriers="none") as fusion:
            for source, to in ((a, b), (b, a)):
                queue.submit(reverse, SIZE, source, other)
                queue.submit(blur, SIZE, other, to)
                queue.submit(added, SIZE, to, other)
        if k % 3 == 0:
            fusion.replay()
        queue.wait()
        arrays_of = a, b, other
        found += [(x if isinstance(x, np.ndarray) else x.numpy()).tobytes() for x in arrays_of]
    return found


def test_arrays_that_share_memory_in_other_ways(queue: fq.FusionQueue) -> None:
    """Two are one and the same array, or overlap, touch, or do not, at other offsets each time."""

    def arrays(k: int) -> list[Any]:
        whole = fq.Buffer(np.random.default_rng(k).integers(0, 1000, 3 * SIZE + 64))
        at = k % 13
        distance = (SIZE, 0, SIZE + 5, 7, SIZE, SIZE, 0)[k % 7]
        other = fq.Buffer(SIZE, np.int64) if k % 2 else whole[-SIZE:]
        return [whole[at : at + SIZE], whole[at + distance :][:SIZE], other]

    rounds = 28
    expected = over_new_arrays(queue, "unfused", rounds, arrays)
    assert over_new_arrays(queue, "megakernel", rounds, arrays) == expected


def test_arrays_of_the_host(queue: fq.FusionQueue) -> None:
    def arrays(k: int) -> list[Any]:
        whole = np.random.default_rng(k).integers(0, 1000, 2 * SIZE + 8)
        other = np.zeros(SIZE, np.int64)
        return [whole[k % 4 : k % 4 + SIZE], whole[SIZE + 4 :][:SIZE], other]

    try:
        expected = over_new_arrays(queue, "unfused", 9, arrays)
    except fq.FusionqError:
        pytest.skip("the device reaches no arrays of the host")
    assert over_new_arrays(queue, "megakernel", 9, arrays) == expected


def test_queues_of_several_threads(target: str, queue: fq.FusionQueue) -> None:
    """Each has control memory of its own, whoever launches."""
    if queue.device.kind == "reference":
        pytest.skip("nothing runs at the same time")
    found: list[list[bytes]] = [[], [], []]

    def arrays(k: int) -> list[Any]:
        return [*start(), fq.Buffer(np.full(SIZE, k))]

    def work(own: fq.FusionQueue, to: list[bytes]) -> None:
        to += over_new_arrays(own, "megakernel", 30, arrays)

    queues = [queue, queue, fq.FusionQueue(target)]
    threads = [
        threading.Thread(target=work, args=pair) for pair in zip(queues[1:], found[1:], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = over_new_arrays(queue, "unfused", 30, arrays)
    assert found[1] == expected and found[2] == expected
    queues[2].close()
