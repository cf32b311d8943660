"""Lists that have no plan yet are launched one submission right behind the other, as if each had
been submitted by itself."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import DeviceError
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import planning_time
from fusionq.execution.planning_time import UNFINISHED
from fusionq.memory.storage import Storage
from fusionq.planning import planner
from fusionq.runtime import launcher, state
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import copy, increment, put, reverse, scale


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """No list gets a plan.  How many submissions of each list, or replay, were launched so."""
    PLANS.clear()
    UNFINISHED.clear()
    now, counts = [0.0], []
    original, launch = planner._plan_steps, state.launch_prepared

    def endless(*arguments):
        if arguments[0].options.strategy == "unfused":
            return (yield from original(*arguments))
        while True:
            now[0] += 1
            yield "analysis"

    def counted(*arguments):
        events = launch(*arguments)
        counts.append(len(events))
        return events

    monkeypatch.setattr(planner, "_plan_steps", endless)
    monkeypatch.setattr(planning_time, "clock", lambda: now[0])
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "2")
    monkeypatch.setattr(state, "launch_prepared", counted)
    monkeypatch.setattr(launcher, "launch_prepared", counted)
    yield counts
    UNFINISHED.clear()


def steps(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer, factor: float) -> list[fq.Event]:
    first = queue.submit(reverse, 8, a, b)
    second = queue.submit(scale, 8, b, np.float32(factor), a)
    return [first, second, queue.submit(scale, 8, a, np.float32(factor + 1), b)]


def test_from_the_second_time_on_all_are_launched_together(queue, launched):
    a, b = floats(), empty()
    for factor in (2.0, 3.0, 4.0):
        before = a.numpy().copy()
        with fq.fusion(queue, adapt=False) as f:
            events = steps(queue, a, b, factor)
        for event in (*events, f.event):
            event.wait()
            assert event.is_complete
        assert np.array_equal(a.numpy(), before[::-1] * factor)
        assert np.array_equal(b.numpy(), a.numpy() * (factor + 1))
        assert f.report.strategy == "unfused"
        assert "planning is not done after" in f.report.fallback
    assert launched == [0, 3, 3]


def test_replays_too_with_other_scalars(queue, launched):
    a, b = floats(), empty()
    with fq.fusion(queue, adapt=False) as f:
        queue.submit(copy, 8, a, b)
        queue.submit(scale, 8, b, np.float32(2), a)
    for factor in (5, 7):
        before = a.numpy().copy()
        f.replay(factor=np.float32(factor)).wait()
        assert np.array_equal(a.numpy(), before * factor)
    before = a.numpy().copy()
    f.replay().wait()
    assert np.array_equal(a.numpy(), before * 2)
    assert launched[-3:] == [2, 2, 2]


def test_random_lists_are_as_plain_submits(queue):
    """Of few kernels in any order, again and again, with scalars that vary."""
    chance = random.Random(5)
    one, other = ([floats(), empty(), floats()] for _ in range(2))
    lists = [
        [(chance.randrange(3), *chance.sample(range(3), 2)) for _ in range(chance.randint(1, 6))]
        for _ in range(4)
    ]
    for _ in range(30):
        value = np.float32(chance.randint(1, 3) / 2)
        todo = chance.choice(lists)

        def submit_all(buffers, todo=todo, value=value):
            for which, a, b in todo:
                if which == 0:
                    queue.submit(scale, 8, buffers[a], value, buffers[b])
                elif which == 1:
                    queue.submit(reverse, 8, buffers[a], buffers[b])
                else:
                    queue.submit(increment, 8, buffers[a])

        submit_all(one)
        with fq.fusion(queue, adapt=False):
            submit_all(other)
        for a, b in zip(one, other, strict=True):
            assert np.array_equal(a.numpy(), b.numpy())


def test_where_a_launch_fails_the_others_run(queue, launched, monkeypatch):
    a, b, c = floats(), empty(), empty()

    def block():
        with fq.fusion(queue, adapt=False) as f:
            queue.submit(scale, 8, a, np.float32(2), c)
            queue.submit(copy, 8, a, b)
            queue.submit(increment, 8, b)
            queue.submit(increment, 8, c)
        return f

    block().event.wait()
    middle = list(queue._state.launcher.cache.known.values())[1].plain.single
    launch = type(middle).launch

    def failing(self, depends=()):
        if self is middle:
            raise DeviceError("no more")
        return launch(self, depends)

    monkeypatch.setattr(type(middle), "launch", failing)
    with pytest.raises(DeviceError, match="no more"):
        block()
    monkeypatch.setattr(type(middle), "launch", launch)
    assert launched == [0, 1]
    assert b.numpy().tolist() == [2, 3, 4, 5, 6, 7, 8, 9]  # as it was: what wrote it did not run
    assert c.numpy().tolist() == [3, 5, 7, 9, 11, 13, 15, 17]


def test_what_another_queue_has_used_is_waited_for(queue, launched):
    a, b = floats(), empty()
    with fq.FusionQueue("reference") as other:
        for _ in range(2):
            with fq.fusion(queue, adapt=False):
                steps(queue, a, b, 2.0)
        other.submit(increment, 8, a).wait()
        with fq.fusion(queue, adapt=False):
            steps(queue, a, b, 2.0)
    assert launched == [0, 3, 0]


def test_events_to_wait_for_are(queue, launched):
    a, b = floats(), empty()
    for depends_on in ((), queue.submit(increment, 8, b), queue.barrier()):
        with fq.fusion(queue, adapt=False):
            queue.submit(reverse, 8, a, b, depends_on=depends_on)
            queue.submit(reverse, 8, b, a)
    assert launched[0] == 0
    assert a.numpy().tolist() == floats().numpy().tolist()


def test_memory_that_has_moved_is_found_again(queue, launched):
    a, b = floats(), empty()
    for moves in (0, 0, 1):
        Storage.moves += moves
        before = a.numpy().copy()
        with fq.fusion(queue, adapt=False):
            steps(queue, a, b, 2.0)
        assert np.array_equal(a.numpy(), before[::-1] * 2)
    assert launched == [0, 3, 0]


def test_arrays_of_others_live_until_the_launches_have_run(queue, launched):
    out = np.zeros(8, np.float32)
    kept = np.ones(8, np.float32)
    for _ in range(3):
        with fq.fusion(queue, adapt=False):
            queue.submit(copy, 8, kept, out)
            queue.submit(increment, 8, out)
        assert any(out is held for _, held in queue._state.launcher._in_flight for held in held)
    gc.collect()
    queue.wait()
    assert launched == [0, 2, 2]
    assert (out == 2).all()


def test_integers_that_vary(queue, launched):
    a = empty()
    for value in (1, 2, 3):
        with fq.fusion(queue, adapt=False):
            queue.submit(put, 8, value, a)
            queue.submit(increment, 8, a)
            queue.submit(put, 8, value + 1, a)
        assert (a.numpy() == value + 1).all()
    assert launched == [0, 3, 3]


def test_what_is_to_be_done_between_launches_is_done(queue, launched, monkeypatch):
    """As where accesses are checked: one after the other, and each is looked at."""
    a, b = floats(), empty()
    monkeypatch.setenv("FUSIONQ_CHECK", "1")
    for _ in range(2):
        steps(queue, a, b, 2.0)
    monkeypatch.delenv("FUSIONQ_CHECK")
    assert not any(e.plain.can_be_one for e in queue._state.launcher.cache.known.values())
    before = a.numpy().copy()
    with fq.fusion(queue, adapt=False):
        steps(queue, a, b, 2.0)
    assert np.array_equal(a.numpy(), before[::-1] * 2)
    assert launched == [0]
