"""Threads that wait leave alone the processors that others of the process are bound to."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fusionq.backends import processors
from fusionq.backends.interruptible import in_background
from fusionq.backends.processors import KeptApart, bound_to

OWN = 7
"""The thread's number."""


class Threads:
    """Where threads may run, by number."""

    def __init__(self, **bound: set[int]) -> None:
        self.of = {int(name[1:]): where for name, where in bound.items()}
        self.moves = 0

    def get(self, thread: int) -> set[int]:
        if (thread or OWN) not in self.of:
            raise ProcessLookupError(thread)
        return set(self.of[thread or OWN])

    def put(self, thread: int, where: set[int]) -> None:
        self.moves += 1
        self.of[thread or OWN] = set(where)

    def call(self, apart: KeptApart, times: int = 1) -> set[int]:
        for _ in range(times):
            apart.begin()
        return self.of[OWN]


def threads(patch: pytest.MonkeyPatch, folder: Path, **bound: set[int]) -> Threads:
    """A process with these threads; t7 is the one that is kept apart."""
    found = Threads(**bound)
    for number in found.of:
        (folder / str(number)).mkdir()
    patch.setattr(processors, "THREADS", folder)
    patch.setattr(processors, "_kept_apart", set())
    patch.setattr(threading, "get_native_id", lambda: OWN)
    patch.setattr(os, "sched_getaffinity", found.get, raising=False)
    patch.setattr(os, "sched_setaffinity", found.put, raising=False)
    return found


def test_a_thread_leaves_others_processors_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = threads(monkeypatch, tmp_path, t1={0, 1, 2}, t2={1}, t3={2}, t7={0, 1, 2})
    apart = KeptApart()
    assert own.call(apart) == {0}
    assert own.call(apart, 20) == {0} and own.moves == 1
    assert own.of[1] == {0, 1, 2} and own.of[2] == {1}


def test_others_that_are_kept_apart_do_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = threads(monkeypatch, tmp_path, t2={1}, t5={0}, t7={0, 1})
    processors._kept_apart.add(5)
    assert bound_to() == {1}
    assert own.call(KeptApart(), 8) == {0}


def test_a_runtime_may_start_its_threads_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = threads(monkeypatch, tmp_path, t7={0, 1})
    apart = KeptApart()
    assert own.call(apart) == {0, 1}
    own.of[2] = {1}
    (tmp_path / "2").mkdir()
    assert own.call(apart) == {0}
    del own.of[2]  # it has ended
    assert own.call(apart) == {0}
    assert own.call(apart) == {0, 1}


@pytest.mark.parametrize("allowed", [{1}, {1, 2}])
def test_a_thread_stays_where_it_may_run(
    allowed: set[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Never beyond what it was given, and where nothing remains of that, as it was."""
    own = threads(monkeypatch, tmp_path, t2={1}, t3={2}, t7=allowed)
    assert own.call(KeptApart(), 4) == allowed
    assert own.moves == 0


def test_what_others_say_later_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = threads(monkeypatch, tmp_path, t2={1}, t7={0, 1})
    apart = KeptApart()
    assert own.call(apart) == {0}
    own.of[OWN] = {1, 3}  # by taskset
    assert own.call(apart, 3) == {3}


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = threads(monkeypatch, tmp_path, t2={1}, t7={0, 1})
    monkeypatch.delattr(os, "sched_getaffinity")
    KeptApart().begin()
    assert own.moves == 0


@pytest.mark.parametrize(("value", "kept"), [("free", 0), ("", 1)])
def test_the_environment_decides(value: str, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of threads that begin from then on."""
    began: list[int] = []
    monkeypatch.setenv("FUSIONQ_THREADS", value)
    monkeypatch.setattr(KeptApart, "begin", lambda self: began.append(1))
    monkeypatch.setattr("fusionq.backends.interruptible._idle", [])
    call = in_background(lambda: None)
    assert call is not None
    call.wait()
    assert len(began) == kept
