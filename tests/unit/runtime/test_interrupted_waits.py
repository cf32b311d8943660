"""Ctrl-C ends a wait at once: a real SIGINT in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runtime.conftest import has_sycl

pytestmark = pytest.mark.skipif(not has_sycl(), reason="there is no SYCL device")
SCRIPT = Path(__file__).with_name("interrupted.py")
NOTES = sys.version_info >= (3, 11)
"""Whether exceptions have notes; before, a warning says the same."""


def run(scene: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    """What a scene of the script prints, and how its process ends.  A wait that no signal ends
    would last for ever: the kernel is told to end only later."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), scene], capture_output=True, text=True, timeout=120
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done


@pytest.mark.slow
def test_every_wait_ends_and_the_queue_goes_on() -> None:
    found, done = run("waits")
    assert done.returncode == 0
    for way in ("event", "queue", "numpy", "memcpy", "fill", "host_task", "write", "fusion"):
        assert found[way] is not None, way
        told = "".join(found[way]["notes"]) if NOTES else done.stderr
        assert "the wait was interrupted" in told
        assert "'until_told'" in told and "'add_one'" in told and "interrupted.py:" in told
    assert found["running"] == [True, True]
    assert found["after"] == [5, 4, 4, 4]


def test_what_dies_on_the_way_out_does_not_wait() -> None:
    found, done = run("unwinding")
    assert done.returncode == 0 and "Exception ignored" not in done.stderr
    assert found["block"] is not None
    assert found["running"]
    assert found["after"] == [1] * 4


def test_an_interrupted_end_of_a_fusion_says_that_the_list_was_not_run() -> None:
    found, done = run("tuning")
    assert done.returncode == 0
    assert found["end"] is not None
    assert "interrupted the end of the fusion, so the list was not run" in found["event"]
    assert found["after"] == [2, 1, 1, 1]


@pytest.mark.slow
def test_the_end_of_the_program_waits_until_it_is_interrupted() -> None:
    found, done = run("program_end")
    assert found["wait"] is not None
    assert done.returncode == -signal.SIGINT
    assert "the program ends while the device still runs kernels" in done.stderr
