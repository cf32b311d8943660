"""Replays that change nothing cost their launch; those behind a change see it."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.runtime.state import QueueState
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import increment, scale


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


def test_in_a_profile(queue, slow):
    fusion, a, _ = scaled(queue, np.float32(2))
    fusion.replay()
    before = len(slow)
    with fq.profile(queue):
        fusion.replay()
    fusion.replay()
    assert len(slow) > before + 1
    assert first(a) == 6
