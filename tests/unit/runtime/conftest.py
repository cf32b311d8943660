from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.memory import fusing_queues
from fusionq.memory.fusing_queues import QUEUES
from fusionq.planning import planner
from tests.unit.runtime.launched_again import LaunchedAgain, repeatable_launches


@functools.cache
def default_runtime() -> str | None:
    """Whose the default device is, "sycl" or "cuda"; None where there is none."""
    try:
        with fq.FusionQueue() as queue:
            return queue._state.launcher.backend.abilities.runtime
    except fq.DeviceError:
        return None


def has_sycl() -> bool:
    """Whether the default device is a SYCL device, which it is where there is one."""
    return default_runtime() == "sycl"


@pytest.fixture(params=["reference", "sycl"])
def target(request: pytest.FixtureRequest) -> str | None:
    """What makes a queue: the reference backend, or the default device, SYCL's or a GPU."""
    if request.param == "sycl" and default_runtime() is None:
        pytest.skip("no SYCL device and no GPU")
    return None if request.param == "sycl" else "reference"


@pytest.fixture
def queue(target: str | None) -> Iterator[fq.FusionQueue]:
    q = fq.FusionQueue(target)
    yield q
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fq.FusionAborted)
        q.close()
    assert not QUEUES


@pytest.fixture(params=["launched", "launched again"])
def again(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[LaunchedAgain]:
    """Those of the lists in the test: with the device's launches, and with such as can be told to
    run again."""
    return [] if request.param == "launched" else repeatable_launches(monkeypatch)


@pytest.fixture
def sycl_queue() -> Iterator[fq.FusionQueue]:
    if not has_sycl():
        pytest.skip("no SYCL device")
    with fq.FusionQueue() as q:
        yield q


@pytest.fixture
def work(queue, monkeypatch):
    """Counts what the steady state must not do; starts with empty caches."""
    PLANS.clear()
    counts = {"plan": 0, "build": 0, "prepare": 0}
    backend = queue._state.launcher.backend
    originals = (planner.Planning, type(backend).build, type(backend).prepare)

    def counted(name, original):
        def call(*arguments, **options):
            counts[name] += 1
            return original(*arguments, **options)

        return call

    monkeypatch.setattr(planner, "Planning", counted("plan", originals[0]))
    monkeypatch.setattr(type(backend), "build", counted("build", originals[1]))
    monkeypatch.setattr(type(backend), "prepare", counted("prepare", originals[2]))
    return counts


def floats(n: int = 8, start: float = 1.0) -> fq.Buffer:
    """A buffer of float32: start, start + 1, …"""
    return fq.Buffer(np.arange(n, dtype=np.float32) + np.float32(start))


def empty(n: int = 8, **flags: bool) -> fq.Buffer:
    """A buffer of float32 without memory."""
    return fq.Buffer(n, np.float32, **flags)


def interrupted_behind(function: Callable[..., object]) -> Callable[..., None]:
    """``function``, behind which Ctrl-C comes."""

    def call(*args: object) -> None:
        function(*args)
        raise KeyboardInterrupt

    return call


def lock_is_free() -> bool:
    """Whether another thread gets the lock of all queues."""
    free: list[bool] = []

    def ask() -> None:
        free.append(fusing_queues.LOCK.acquire(timeout=5))
        if free[0]:
            fusing_queues.LOCK.release()

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join()
    return free[0]
