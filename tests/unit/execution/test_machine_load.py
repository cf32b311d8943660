"""Whether others keep the machine busy, by what the system is made to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionq.execution import machine_load
from fusionq.execution.machine_load import is_busy


@pytest.mark.parametrize(
    ("running", "own", "busy"),
    [(1, "R", False), (4, "RR", False), (5, "R", True), (6, "SRSR", True), (4, "S", True)],
)
def test_threads_of_others_keep_it_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: int, own: str, busy: bool
) -> None:
    load, threads = tmp_path / "loadavg", tmp_path / "task"
    load.write_text(f"0.50 0.40 0.30 {running}/152 23150\n")
    for number, state in enumerate(own):
        (threads / str(number)).mkdir(parents=True)
        (threads / str(number) / "stat").write_text(f"{number} (a) b) {state} 1 2 3\n")
    monkeypatch.setattr(machine_load, "LOAD", load)
    monkeypatch.setattr(machine_load, "THREADS", threads)
    monkeypatch.setattr(machine_load, "_processors", lambda: 4)
    assert is_busy() is busy


@pytest.mark.parametrize("text", [None, "", "0.50 0.40 0.30 many/152 1"])
def test_a_system_that_does_not_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    load = tmp_path / "loadavg"
    if text is not None:
        load.write_text(text)
    monkeypatch.setattr(machine_load, "LOAD", load)
    assert is_busy() is False
