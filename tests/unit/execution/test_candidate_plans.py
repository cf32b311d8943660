"""A candidate on its way, step by step, with a disk and a worker process that the tests make up."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from fusionq.base.errors import DeviceError
from fusionq.base.options import FusionOptions
from fusionq.execution import candidate_plans
from fusionq.execution.background import BuildAnswer, BuildJob
from fusionq.execution.candidate_plans import NOT_REQUESTED, CandidatePlan


class Plan:
    stages = ()


class Built:
    plan = Plan()


class World:
    """What is on disk, what the worker was asked for, and what the caches of memory were given."""

    def __init__(self) -> None:
        self.disk: list[Any] = []
        self.job: BuildJob | None = BuildJob("")
        self.asked: list[tuple[Any, ...]] = []
        self.given: list[Any] = []

    def loaded_plan(self, *arguments: Any) -> Any:
        found = self.disk.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def build(self, *arguments: Any) -> BuildJob | None:
        self.asked.append(arguments[3:])
        return self.job

    def poll(self) -> None:
        pass


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(candidate_plans, "loaded_plan", world.loaded_plan)
    monkeypatch.setattr(candidate_plans, "remember", lambda *given: world.given.append(given[3]))
    monkeypatch.setattr(candidate_plans, "BACKGROUND", world)
    return world


def candidate() -> CandidatePlan:
    made: Any = CandidatePlan
    found: CandidatePlan = made(None, (), FusionOptions(), "fused", ["unfused"])
    return found


def seen(plan: CandidatePlan) -> bool:
    """Whether it is there, when its thread has done what it does."""
    end = time.monotonic() + 30
    while plan._works:
        assert time.monotonic() < end
        time.sleep(0.001)
    return plan.poll()


def test_what_is_on_disk_is_loaded(world: World) -> None:
    built = Built()
    world.disk = [built]
    plan = candidate()
    assert seen(plan) and plan.built is built and world.given == [built]
    assert not world.asked and plan.reason is None


def test_what_is_not_there_is_asked_for_and_loaded_then(world: World) -> None:
    built = Built()
    world.disk = [None, built]
    plan = candidate()
    assert not seen(plan) and world.asked == [("fused", ["unfused"])]
    assert not seen(plan), "the worker is at work"
    assert world.job is not None
    world.job.answer = BuildAnswer(None, 0.5)
    assert not plan.poll(), "it is loaded now"
    assert seen(plan) and plan.built is built and plan.slowdown == 0.5
    assert len(world.asked) == 1


def test_why_it_was_not_made(world: World) -> None:
    world.disk = [None]
    assert world.job is not None
    world.job.answer = BuildAnswer("the compiler crashed")
    plan = candidate()
    assert seen(plan) and plan.built is None and plan.reason == "the compiler crashed"
    assert not plan.is_unserved


def test_a_disk_that_forgets(world: World) -> None:
    world.disk = [None, None]
    assert world.job is not None
    world.job.answer = BuildAnswer(None)
    plan = candidate()
    assert not seen(plan)
    assert seen(plan) and "not in the disk cache" in str(plan.reason)
    assert plan.is_unserved


def test_no_worker(world: World) -> None:
    world.disk, world.job = [None], None
    plan = candidate()
    assert seen(plan) and plan.reason == NOT_REQUESTED and plan.is_unserved


@pytest.mark.parametrize("error", [DeviceError("no memory\nmore"), ValueError("no memory")])
def test_an_error_in_the_thread_is_its_reason(world: World, error: Exception) -> None:
    world.disk = [error]
    plan = candidate()
    assert seen(plan) and str(plan.reason).endswith("no memory")


def test_no_thread(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(candidate_plans.Thread, "start", refuse)
    plan = candidate()
    assert plan.poll() and plan.reason == "can't start new thread"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_comes_between_two_threads(world: World) -> None:
    world.disk = [None]
    plan = candidate()
    child = os.fork()
    if not child:
        os._exit(0 if candidate_plans._working.acquire(timeout=10) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not seen(plan) and not candidate_plans._working.locked()
