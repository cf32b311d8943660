"""Launches that are bound before one is wanted."""

from __future__ import annotations

import gc
from threading import Thread

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.cache.plan_cache import BuiltPlan
from fusionq.execution import bind_ahead
from fusionq.execution.bind_ahead import ArgumentsAhead
from fusionq.execution.compile import built_plan
from fusionq.memory.fusing_queues import LOCK
from tests.unit.execution.programs import scale

SIZE = 100


class Captured:
    """A list that was not run, with its plan."""

    def __init__(self, b: fq.Buffer) -> None:
        self.queue = fq.FusionQueue("reference")
        self.host = np.arange(SIZE, dtype=np.float32)
        self.c = fq.Buffer(np.zeros(SIZE, np.float32))
        self.queue.start_fusion()
        self.queue.submit(scale, SIZE, self.host, b, 2.0)
        self.queue.submit(scale, SIZE, b, self.c, 3.0)
        pending = self.queue._state.list
        assert pending is not None
        backend = self.queue._state.launcher.backend
        self.arguments = ArgumentsAhead(backend, pending)
        options = FusionOptions(strategy="fused")
        self.built: BuiltPlan = built_plan(backend, pending.submissions(), options, {})[0]
        self.queue._state.leave_fusion_mode(pending)

    def bound(self):  # type: ignore[no-untyped-def]
        return self.arguments.bound(self.built, "strict")


def test_the_launches_are_those_of_the_list() -> None:
    b = fq.Buffer(np.zeros(SIZE, np.float32))
    captured = Captured(b)
    run = captured.bound()
    assert run.is_in_place() and run.rebind([2.0, 3.0], tuple)
    run.launch(())
    captured.queue.wait()
    assert np.array_equal(captured.c.numpy(), captured.host * 6)


def test_no_memory_is_kept_alive_for_it() -> None:
    b = fq.Buffer(np.zeros(SIZE, np.float32))
    captured = Captured(b)
    captured.queue.wait()
    del b, captured.queue
    gc.collect()
    assert captured.bound() is None


def test_no_memory_is_allocated_or_moves_for_it() -> None:
    assert Captured(fq.Buffer(SIZE, np.float32)).bound() is None, "it was not there"
    b = fq.Buffer(SIZE, np.float32, promote_private=True)
    captured = Captured(b)
    assert captured.built.plan.promotions
    assert captured.bound() is not None, "nor is it needed"
    b = fq.Buffer(np.zeros(SIZE, np.float32))
    captured = Captured(b)
    captured.arguments._memory = [
        None if known is None else (known[0], 64) for known in captured.arguments._memory
    ]
    assert captured.bound() is None, "it has moved since"


def test_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bind_ahead, "MOST_WAIT", 0.01)
    b = fq.Buffer(np.zeros(SIZE, np.float32))
    captured = Captured(b)
    found: list[object] = []
    with LOCK:
        thread = Thread(target=lambda: found.append(captured.bound()))
        thread.start()
        thread.join()
    assert found == [None] and captured.bound() is not None


def test_what_fails_is_left_to_who_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise fq.DeviceError("there is no memory")

    monkeypatch.setattr(bind_ahead, "bind", refuse)
    assert Captured(fq.Buffer(np.zeros(SIZE, np.float32))).bound() is None
    assert LOCK.acquire(blocking=False)
    LOCK.release()
