"""What the worker process does with one request, in this process."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fusionq.base.config import set_disk_cache
from fusionq.base.options import FusionOptions
from fusionq.cache.build_requests import keep_request, kept_request
from fusionq.cache.disk import disk_store
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import background_worker
from fusionq.execution.background_worker import BuildRequestLine, answer
from tests.unit.execution.programs import captured

pytest.importorskip("dpctl", reason="programs of the reference backend do not outlive a process")


@pytest.fixture(autouse=True)
def nothing_planned(disk_cache: Path) -> Iterator[None]:
    """A worker takes its cache from each request; this process's is as it was behind each test."""
    PLANS.clear()
    yield
    set_disk_cache()
    PLANS.clear()


def request(strategy: str, beside: tuple[str, ...] = ()) -> BuildRequestLine:
    """A line that asks for two submissions that join."""
    submissions, queue = captured()
    backend, store = queue._state.launcher.backend, disk_store()
    assert store is not None
    key = keep_request(store, backend, submissions, FusionOptions())
    assert key is not None
    return {
        "key": key, "strategy": strategy, "beside": list(beside),
        "directory": str(store.directory), "max_bytes": 1 << 26,
    }  # type: ignore[typeddict-item]  # fmt: skip


def test_what_is_asked_for_is_planned_and_built() -> None:
    told = request("fused")
    assert answer(told)[:1] == (None,)
    store = disk_store()
    assert store is not None and kept_request(store, told["key"]) is None, "it is done"
    kinds = store.usage()
    assert kinds["plan"].entries == 1 and kinds["program"].entries >= 1


def test_a_request_that_is_gone_is_not_served() -> None:
    told = request("fused")
    store = disk_store()
    assert store is not None
    store.clear()
    reason, _, is_unserved = answer(told)
    assert reason == "the disk cache cannot be written" and is_unserved


def test_what_becomes_the_same_is_not_built_again() -> None:
    reason, *_ = answer(request("sequence", ("fused",)))
    assert reason is not None and "fused" in reason
    store = disk_store()
    assert store is not None and "program" not in store.usage()


def test_a_list_without_rings_is_not_built_with_other_ones() -> None:
    reason, *_ = answer(request("megakernel-4k", ("fused", "megakernel")))
    assert reason is not None
    store = disk_store()
    assert store is not None and "program" not in store.usage()


def test_what_the_model_says_beside_another() -> None:
    reason, slowdown, is_unserved = answer(request("unfused", ("fused",)))
    assert reason is None and not is_unserved
    assert slowdown is not None and slowdown > 1, "two launches are slower than one"


def test_what_takes_much_longer_by_the_model_is_not_built(monkeypatch) -> None:
    monkeypatch.setattr(background_worker, "MOST_SLOWDOWN", 1.0)
    reason, slowdown, _ = answer(request("unfused", ("fused",)))
    assert reason == f"{slowdown:.1f} times as long by the cost model"


def test_what_is_not_planned_in_time_is_left_out(monkeypatch) -> None:
    """The bound is of each candidate; what is on disk needs no planning."""
    monkeypatch.setattr(background_worker, "MOST_PLANNING", 0)
    told = request("fused")
    assert answer(told) == ("it is not planned after 0 s of processor time", None, False)
    store = disk_store()
    assert store is not None and "plan" not in store.usage() and "program" not in store.usage()
    monkeypatch.setattr(background_worker, "MOST_PLANNING", 60)
    assert answer(request("fused"))[:1] == (None,)
    monkeypatch.setattr(background_worker, "MOST_PLANNING", 0)
    assert answer(request("fused"))[:1] == (None,), "its plan is kept"


def test_another_device_of_that_name(monkeypatch) -> None:
    monkeypatch.setattr(background_worker, "domain_of", lambda backend: "another")
    reason, _, is_unserved = answer(request("fused"))
    assert reason is not None and reason.endswith("is another one in a worker process")
    assert is_unserved


@pytest.mark.parametrize(
    ("error", "said"),
    [(ValueError("why"), "ValueError: why"), (MemoryError(), "MemoryError: ")],
)
def test_what_goes_wrong_is_the_answer(error, said, monkeypatch) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(background_worker, "planned", fail)
    assert answer(request("fused"))[0] == said


class Ended(Exception):
    """The process would have ended."""


@pytest.mark.parametrize("has_ended", [False, True])
def test_lines_are_answered_until_there_are_none(has_ended: bool, monkeypatch) -> None:
    """It measures the device where it has nothing to do, ends where that is so for a while, and
    with its parent."""
    over, answered, read, codes = threading.Event(), threading.Event(), threading.Event(), []

    def lines() -> Iterator[bytes]:
        yield b'{"number": 1}\n'
        yield b'{"number": 2}\n'
        answered.wait(10)
        if not has_ended:
            over.wait(10)

    def end(code: int) -> None:
        codes.append(code)
        over.set()
        if threading.current_thread() is threading.main_thread():
            raise Ended
        read.set()

    class Answers(io.StringIO):
        def flush(self) -> None:
            if self.getvalue().count("\n") == 2:
                answered.set()

    answers = Answers()
    monkeypatch.setattr(background_worker, "_prepared", lambda: answers)
    monkeypatch.setattr(background_worker, "answer", lambda told: [told["number"] + 40])
    monkeypatch.setattr(background_worker, "IDLE_SECONDS", 1.0)
    monkeypatch.setattr(background_worker, "MEASURES_AFTER", 0.25)
    monkeypatch.setattr(background_worker, "_backends", {"a device": "its backend"})
    measured: list[str] = []
    monkeypatch.setattr(background_worker, "measured_target", measured.append)
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=lines()))
    with pytest.raises(Ended):
        background_worker.main()
    assert read.wait(10), "the thread that reads would end this process behind the test"
    assert codes == [0, 0]
    assert answers.getvalue() == "[41]\n[42]\n"
    assert measured == ["its backend"] * 4, "while it has nothing to do"
