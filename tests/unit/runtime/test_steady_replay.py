"""Replays that change nothing cost their launch; those behind a change see it."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.changes import CHANGES
from fusionq.memory import fusing_queues
from fusionq.runtime.state import QueueState
from tests.unit.runtime.conftest import empty, floats, interrupted_behind, lock_is_free
from tests.unit.runtime.kernels import increment, scale

pytestmark = pytest.mark.usefixtures("again")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The replays that are looked into as a whole."""
    found: list[object] = []
    replay = QueueState.replay

    def looked_into(state, ended, call):
        found.append(ended)
        return replay(state, ended, call)

    monkeypatch.setattr(QueueState, "replay", looked_into)
    return found


@pytest.fixture
def looked_into(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The steady replays that asked for all that may have changed."""
    from fusionq.runtime.steady_replay import SteadyReplay

    found: list[object] = []
    method = SteadyReplay._looked_into

    def counted(steady):
        found.append(steady)
        return method(steady)

    monkeypatch.setattr(SteadyReplay, "_looked_into", counted)
    return found


def first(buffer: fq.Buffer) -> float:
    return float(buffer.numpy()[0])


def scaled(queue: fq.FusionQueue, factor: np.float32):
    """A list of one launch, replayed until its replays are steady, and its buffers."""
    a, out = floats(), empty()
    with fq.fusion(queue, adapt=False) as fusion:
        queue.submit(increment, 8, a)
        queue.submit(scale, 8, a, factor, out)
    fusion.replay()
    return fusion, a, out


def test_only_the_first_replay_is_looked_into(queue, slow):
    fusion, a, _ = scaled(queue, np.float32(2))
    assert len(slow) == 1
    events = [fusion.replay() for _ in range(5)]
    assert len(slow) == 1
    events[-1].wait()
    assert all(event.is_complete for event in events)
    assert first(a) == 8
    with pytest.raises(fq.FusionStateError, match="profiling"):
        assert events[0].profiling


def test_the_host_reads_what_the_last_replay_wrote(queue):
    fusion, a, out = scaled(queue, np.float32(2))
    for n in range(4, 20):
        fusion.replay()
        assert a.numpy()[0] == n
        assert out.numpy()[0] == 2 * n


def test_another_scalar_and_back(queue, slow):
    fusion, a, out = scaled(queue, np.float32(2))
    fusion.replay()
    fusion.replay(factor=np.float32(10))
    assert first(out) == 10 * first(a)
    fusion.replay()
    assert first(out) == 2 * first(a)
    before = len(slow)
    fusion.replay()
    assert first(out) == 2 * first(a)
    assert len(slow) == before


def test_behind_another_queue(queue, target, slow):
    fusion, a, _ = scaled(queue, np.float32(2))
    fusion.replay()
    with fq.FusionQueue(target) as other:
        other.submit(increment, 8, a)
        before = len(slow)
        fusion.replay()
        assert len(slow) == before + 1
        assert first(a) == 6
        with fq.fusion(other):
            other.submit(increment, 8, a)
            with pytest.warns(fq.FusionAborted):
                fusion.replay()
        assert first(a) == 8


def test_in_another_list(queue):
    fusion, a, _ = scaled(queue, np.float32(2))
    fusion.replay()
    with fq.fusion(queue) as outer:
        fusion.replay()
        queue.submit(increment, 8, a)
    assert len(outer.report.submissions) == 3
    assert first(a) == 6


def test_on_a_closed_queue(queue):
    fusion, _, _ = scaled(queue, np.float32(2))
    fusion.replay()
    queue.close()
    with pytest.raises(fq.FusionStateError, match="open queue"):
        fusion.replay()


@pytest.mark.usefixtures("every_program_compiled")
def test_in_a_profile(queue, slow):
    fusion, a, _ = scaled(queue, np.float32(2))
    fusion.replay()
    before = len(slow)
    with fq.profile(queue):
        fusion.replay()
    fusion.replay()
    assert len(slow) > before + 1
    assert first(a) == 6


def test_what_has_not_changed_is_not_looked_into(queue, again, looked_into):
    fusion, a, out = scaled(queue, np.float32(2))
    events = [fusion.replay() for _ in range(5)]
    assert len(looked_into) == (1 if again else 5)
    if again:
        (launches,) = again
        assert len(launches.events) == 1 + 4 and launches.others == 1
        assert [event.native for event in events[1:]] == [e.native for e in launches.events[1:]]
    for event in events:
        event.wait()
        assert event.is_complete and event.get_wait_list() == []
        assert repr(event) == "<Event complete>"
    assert first(out) == 2 * first(a) == 14 + 2


def test_launches_are_counted(queue, again):
    fusion, *_ = scaled(queue, np.float32(2))
    for _ in range(5):
        fusion.replay()
    if again:
        assert again[0].submitted == again[0].latest.number == 4


def test_a_launch_that_gives_a_status(queue, again):
    fusion, a, _ = scaled(queue, np.float32(2))
    for _ in range(3):
        fusion.replay()
    if not again:
        return
    again[0].status = 201
    event = fusion.replay()
    fusion.replay()
    assert again[0].late == [201] and again[0].submitted == 4
    event.wait()
    assert first(a) == 1 + 2 + 5


def test_a_fusion_that_is_dropped_keeps_no_memory(queue, again):
    fusion, a, out = scaled(queue, np.float32(2))
    for _ in range(3):
        fusion.replay()
    queue.wait()
    storage = weakref.ref(out._storage)
    gc.disable()
    try:
        del fusion, a, out
        again.clear()
        assert storage() is None
    finally:
        gc.enable()


def test_each_change_is_looked_into(queue, target, again, looked_into):
    fusion, a, out = scaled(queue, np.float32(2))
    if not again:
        return  # all is looked into at every replay
    other = fq.FusionQueue(target)
    finalized: list[object] = []

    def begun() -> None:
        with pytest.warns(fq.FusionAborted), fq.fusion(queue):
            pass

    def profiled() -> None:
        with fq.profile(queue):
            pass

    def noted() -> None:
        fusing_queues.NOTED.append(lambda: finalized.append(1))
        CHANGES.latest = object()  # as ``note``, which would do it at once

    changes = [
        begun,
        profiled,
        noted,
        lambda: fusion.replay(factor=np.float32(7)),
        lambda: queue.barrier(other.submit(increment, 8, empty())),
        lambda: other.submit(increment, 8, a),
    ]
    expected = first(a)
    for change in changes:
        fusion.replay()
        fusion.replay()
        before = len(looked_into)
        fusion.replay()
        assert len(looked_into) == before
        change()
        fusion.replay()
        assert len(looked_into) > before
        expected += 4 + (change in changes[3:4] or change is changes[5])
        assert first(a) == expected and first(out) == 2 * expected
    assert finalized
    other.close()


def test_other_launches_of_the_queue_are_no_change(queue, again, looked_into):
    fusion, a, out = scaled(queue, np.float32(2))
    second, b, _ = scaled(queue, np.float32(3))
    for _ in range(3):
        fusion.replay()
        second.replay()
        queue.submit(increment, 8, a)
        assert first(a) == first(b) + (first(a) - first(b))
    assert first(out) == 2 * (first(a) - 1)
    assert first(a) == 1 + 2 + 3 * 2 and first(b) == 1 + 2 + 3
    if again:
        count = len(looked_into)
        events = [f.replay() for _ in range(3) for f in (fusion, second)]
        queue.submit(increment, 8, a)
        fusion.replay()
        assert len(looked_into) == count
        assert [one.others for one in again] == [3 + 3 + 1 - 1, 3 + 3 - 1]
        for event in events:
            event.wait()
            assert event.is_complete
    assert first(b) == 6 + 3 * bool(again)


class Chooser:
    """Has a launch timed where ``untimed`` is 0."""

    def __init__(self) -> None:
        self.untimed, self.timed = 0, 0

    def launch(self, run, depends, before):
        self.timed, self.untimed = self.timed + 1, 3
        return run.launch(depends)


def test_launches_are_timed_in_turn(queue, again, looked_into):
    fusion, a, _ = scaled(queue, np.float32(2))
    chooser = fusion._list.run.adaptive = Chooser()
    fusion._steady = None
    for n in range(4 * 5):
        fusion.replay()
        assert first(a) == 4 + n
        assert (chooser.timed, chooser.untimed) == (n // 4 + 1, 3 - n % 4)
    if again:  # the launch behind one that is timed, and the timed one
        assert len(looked_into) == 2 * 4 + 1


def recorded(queue: fq.FusionQueue):
    """A graph that has been launched twice, and its buffers."""
    a, out = floats(), empty()
    graph = fq.Graph()
    with graph.record(queue, adapt=False):
        queue.submit(increment, 8, a)
        queue.submit(scale, 8, a, np.float32(2), out)
    graph.launch()
    graph.launch()
    return graph, a, out


def test_a_graph_is_launched_as_a_list_is_replayed(queue, slow):
    graph, a, out = recorded(queue)
    before = len(slow)
    events = [graph.launch() for _ in range(3)]
    events[-1].wait()
    assert all(event.is_complete for event in events) and len(slow) == before
    assert (first(a), first(out)) == (1 + 5, 2 * (1 + 5))
    graph.launch(depends_on=events)
    assert len(slow) == before + 1 and first(a) == 1 + 6


def test_a_graph_with_other_arguments_is_looked_into(queue):
    graph, a, out = recorded(queue)
    graph.launch()
    graph.update(factor=np.float32(10))
    for n in range(5, 8):
        graph.launch()
        assert (first(a), first(out)) == (n, 10 * n)
    other = empty()
    graph.update(out=other)
    for n in range(8, 11):
        graph.launch()
        assert (first(a), first(other), first(out)) == (n, 10 * n, 70)


def test_a_graph_that_records_again_is_not_launched(queue):
    graph, a, _ = recorded(queue)
    with graph.record(queue):
        queue.submit(increment, 8, a)
        with pytest.raises(fq.FusionStateError, match="launch belongs behind"):
            graph.launch()
    graph.launch()
    assert first(a) == 1 + 2 + 2


def test_an_event_stays_complete(queue, again):
    fusion, *_ = scaled(queue, np.float32(2))
    fusion.replay()
    event = fusion.replay()
    event.wait()
    fusion.replay()
    assert event.is_complete
    last = fusion.replay()
    queue.wait()
    assert last.is_complete


def test_events_of_replays_are_waited_for(queue, target, again):
    fusion, a, _ = scaled(queue, np.float32(2))
    for _ in range(3):
        event = fusion.replay()
    b = empty()
    with fq.FusionQueue(target) as other:
        after = other.submit(increment, 8, b, depends_on=event)
        with fq.fusion(other) as f:
            other.submit(increment, 8, b, depends_on=[event, after])
        f.event.wait()
    assert event.is_complete and first(b) == 2
    assert first(a) == 1 + 5


def test_a_failed_launch(queue, again, looked_into):
    fusion, a, _ = scaled(queue, np.float32(2))
    fusion.replay()
    fusion.replay()
    if not again:
        return
    launch, again[0]._launch = again[0]._launch, lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        fusion.replay()
    with pytest.raises(ZeroDivisionError):
        fusion.replay()
    again[0]._launch = launch
    fusion.replay()
    done = threading.Thread(target=fusion.replay)  # the lock is free
    done.start()
    done.join(20)
    assert not done.is_alive()
    assert first(a) == 1 + 2 + 2 + 2


def test_from_several_threads(queue, again):
    fusion, a, _ = scaled(queue, np.float32(2))
    fusion.replay()
    other, b, _ = scaled(queue, np.float32(2))
    start = threading.Barrier(4)

    def work(one: fq.Fusion) -> None:
        start.wait()
        for _ in range(50):
            one.replay()

    threads = [threading.Thread(target=work, args=(one,)) for one in (fusion, other) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (first(a), first(b)) == (1 + 3 + 100, 1 + 2 + 100)


def test_ctrl_c_leaves_the_lock_free(queue, again, monkeypatch):
    """Wherever it comes: as soon as the lock is taken, in the launch, behind the release."""
    from fusionq.runtime import steady_replay

    fusion, a, _ = scaled(queue, np.float32(2))
    fusion.replay()
    fusion.replay()
    if not again:
        return

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt):
            fusion.replay()
        for nested in (False, True):
            if nested:
                with fusing_queues.LOCK, pytest.raises(KeyboardInterrupt):
                    fusion.replay()
            assert lock_is_free()

    for name in ("acquire", "release"):
        with monkeypatch.context() as patch:
            patch.setattr(steady_replay, name, interrupted_behind(getattr(steady_replay, name)))
            interrupted()
    with monkeypatch.context() as patch:
        patch.setattr(again[0], "_launch", interrupted_behind(again[0]._launch))
        interrupted()
    value = first(a)
    fusion.replay()
    assert first(a) == value + 1
