"""Blocks that submit the same list cost its launch where nothing changes; those behind a change see
it."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.changes import CHANGES
from fusionq.memory import fusing_queues
from fusionq.runtime.launcher import Launcher
from tests.unit.runtime.conftest import empty, floats, interrupted_behind, lock_is_free
from tests.unit.runtime.kernels import increment, scale

pytestmark = pytest.mark.usefixtures("again")


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The runs of lists that were launched in the usual way."""
    found: list[object] = []
    launch = Launcher._launch

    def counted(launcher, run, *args):
        found.append(run)
        return launch(launcher, run, *args)

    monkeypatch.setattr(Launcher, "_launch", counted)
    return found


class Blocks:
    """A list of one launch, submitted again and again; ``ran``: so often."""

    def __init__(self, queue: fq.FusionQueue) -> None:
        self.queue = queue
        self.a, self.out = floats(), empty()
        self.start = first(self.a)
        self.ran = 0

    def run(self, factor: float = 2.0) -> fq.Fusion:
        with fq.fusion(self.queue, adapt=False) as fusion:
            self.queue.submit(increment, 8, self.a)
            self.queue.submit(scale, 8, self.a, np.float32(factor), self.out)
        self.ran += 1
        return fusion


def check(blocks: Blocks, factor: float = 2.0, others: int = 0) -> None:
    """``others``: so many other submissions have incremented."""
    value = blocks.start + blocks.ran + others
    assert first(blocks.a) == value
    assert first(blocks.out) == factor * value


def first(buffer: fq.Buffer) -> float:
    return float(buffer.numpy()[0])


def steady(queue: fq.FusionQueue) -> Blocks:
    """Three such blocks: the second shows that nothing changes, then the third one can be told."""
    blocks = Blocks(queue)
    for _ in range(3):
        blocks.run()
    return blocks


def test_only_the_first_are_launched_in_the_usual_way(queue, again, usual):
    blocks = steady(queue)
    before = len(usual)
    events = [blocks.run().event for _ in range(5)]
    assert len(usual) - before == (0 if again else 5)
    if again:
        (launches,) = again
        assert launches.others == 1 and launches.submitted == launches.latest.number >= 5
    for event in events:
        event.wait()
        assert event.is_complete
    check(blocks)


def test_the_host_reads_what_the_last_wrote(queue):
    blocks = steady(queue)
    for _ in range(5):
        blocks.run()
        check(blocks)


def test_events_of_submissions_and_blocks_are_their_own(queue, again):
    blocks = steady(queue)
    events = [blocks.run().event for _ in range(3)]
    if again:
        natives = [event.native for event in events]
        assert natives == [event.native for event in again[0].events[-3:]]
    events[0].wait()
    blocks.run()
    assert events[0].is_complete
    with fq.fusion(queue, adapt=False) as fusion:
        one = queue.submit(increment, 8, blocks.a)
        two = queue.submit(scale, 8, blocks.a, np.float32(2), blocks.out)
    blocks.ran += 1
    two.wait()
    assert one.is_complete and two.is_complete and fusion.event.is_complete
    check(blocks)


def test_another_scalar_and_back(queue, usual, again):
    blocks = steady(queue)
    blocks.run()
    blocks.run(7.0)
    check(blocks, 7.0)
    blocks.run(7.0)
    check(blocks, 7.0)
    blocks.run()
    check(blocks)
    for _ in range(3):
        blocks.run()
    before = len(usual)
    blocks.run()
    assert len(usual) - before == (0 if again else 1)
    check(blocks)


def test_replays_between_blocks(queue):
    blocks = steady(queue)
    fusion = blocks.run()
    for _ in range(3):
        for _ in range(3):
            fusion.replay()
            blocks.ran += 1
        check(blocks)
        for _ in range(4):
            blocks.run()
        check(blocks)
    fusion.replay(factor=np.float32(5))
    blocks.ran += 1
    check(blocks, 5.0)
    blocks.run()
    check(blocks)


def test_each_change_is_seen(queue, target, again, usual):
    blocks = steady(queue)
    other = fq.FusionQueue(target)
    finalized: list[object] = []
    others = 0

    def aborted() -> None:
        with pytest.warns(fq.FusionAborted), fq.fusion(queue):
            pass

    def profiled() -> None:
        with fq.profile(queue):
            pass

    def noted() -> None:
        fusing_queues.NOTED.append(lambda: finalized.append(1))
        CHANGES.latest = object()  # as ``note``, which would do it at once

    def elsewhere() -> None:
        nonlocal others
        other.submit(increment, 8, blocks.a)
        others += 1

    def another_list() -> None:
        with fq.fusion(queue, adapt=False):
            queue.submit(scale, 8, blocks.a, np.float32(1), blocks.out)

    changes = [
        aborted,
        profiled,
        noted,
        elsewhere,
        another_list,
        lambda: queue.barrier(other.submit(increment, 8, empty())),
    ]
    for change in changes:
        for _ in range(3):
            blocks.run()
        before = len(usual)
        blocks.run()
        assert len(usual) - before == (0 if again else 1), change
        change()
        before = len(usual)
        blocks.run()
        assert len(usual) > before, change
        check(blocks, others=others)
    assert finalized
    other.close()


def test_other_launches_of_the_queue_are_no_change(queue, again, usual):
    blocks = steady(queue)
    blocks.run()
    before = len(usual)
    for n in range(1, 4):
        queue.submit(increment, 8, blocks.a)
        blocks.run()
        check(blocks, others=n)
    if again:
        assert len(usual) == before + 3 and again[0].others == 4  # the submissions by themselves


def test_what_depends_on_other_events(queue, target, usual, again):
    blocks = steady(queue)
    with fq.FusionQueue(target) as other:
        event = other.submit(increment, 8, empty())
        with fq.fusion(queue, adapt=False):
            queue.submit(increment, 8, blocks.a, depends_on=event)
            queue.submit(scale, 8, blocks.a, np.float32(2), blocks.out)
        blocks.ran += 1
        check(blocks)
        blocks.run()
        check(blocks)


class Chooser:
    """Has a launch timed where ``untimed`` is 0."""

    def __init__(self) -> None:
        self.untimed, self.timed = 0, 0

    def launch(self, run, depends, before):
        self.timed, self.untimed = self.timed + 1, 3
        return run.launch(depends)


def test_launches_are_timed_in_turn(queue, again, usual):
    blocks = steady(queue)
    chooser = blocks.run()._list.run.adaptive = Chooser()
    before = len(usual)
    for n in range(4 * 5):
        blocks.run()
        assert (chooser.timed, chooser.untimed) == (n // 4 + 1, 3 - n % 4)
    check(blocks)
    assert len(usual) - before == (5 if again else 20)


def test_a_launch_that_gives_a_status(queue, again):
    blocks = steady(queue)
    blocks.run()
    if not again:
        return
    again[0].status = 201
    blocks.run()
    assert again[0].late == [201]
    check(blocks)


def test_a_failed_launch(queue, again):
    blocks = steady(queue)
    blocks.run()
    if not again:
        return
    launch, again[0]._launch = again[0]._launch, lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        blocks.run()
    again[0]._launch = launch
    for _ in range(5):
        blocks.run()
    done = threading.Thread(target=blocks.run)  # the lock is free
    done.start()
    done.join(20)
    assert not done.is_alive()
    check(blocks)


def test_ctrl_c_in_the_launch(queue, again, monkeypatch):
    blocks = steady(queue)
    blocks.run()
    if not again:
        return
    with monkeypatch.context() as patch:
        patch.setattr(again[0], "_launch", interrupted_behind(again[0]._launch))
        with pytest.raises(KeyboardInterrupt):
            blocks.run()
    assert lock_is_free()
    value = first(blocks.a)
    blocks.run()
    assert first(blocks.a) == value + 1


def test_buffers_that_are_dropped_are_freed(queue, again):
    blocks = steady(queue)
    for _ in range(3):
        blocks.run()
    queue.wait()
    storage = weakref.ref(blocks.out._storage)
    gc.disable()
    try:
        del blocks
        again.clear()
        assert storage() is None
    finally:
        gc.enable()


def test_from_several_threads(queue, target):
    """Queues of their own: one queue has one list at a time."""
    with fq.FusionQueue(target) as other:
        both = [steady(queue), steady(other)]
        start = threading.Barrier(2)

        def work(blocks: Blocks) -> None:
            start.wait()
            for _ in range(50):
                blocks.run()

        threads = [threading.Thread(target=work, args=(blocks,)) for blocks in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for blocks in both:
            check(blocks)
