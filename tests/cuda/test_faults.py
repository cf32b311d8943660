"""An access outside all memory ends the process's context; each test is a process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np
import fusionq as fq

@fq.kernel
def scatter(item: fq.Item, where, out):
    i = item.get_id(0)
    out[where[i]] = 1.0

@fq.kernel
def double(item: fq.Item, a):
    i = item.get_id(0)
    a[i] = a[i] * 2

queue, other = fq.FusionQueue("cuda"), fq.FusionQueue("cuda")
where = np.arange(1000)
where[777] = 1 << 40
where, out = fq.Buffer(where), fq.Buffer(1000, np.float32)
elsewhere = fq.Buffer(np.ones(10, np.float32))
other.submit(double, 10, elsewhere).wait()

def error_of(call):
    try:
        call()
    except fq.FusionqError as error:
        return error
    raise SystemExit(f"{call} did not raise")
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], None]:
    """Runs a program of two queues in a process of its own."""

    def run(program: str) -> None:
        path = tmp_path / "program.py"
        path.write_text(PROGRAM + textwrap.dedent(program), encoding="utf-8")
        command = [sys.executable, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


def test_an_illegal_access_names_the_kernels_and_loses_the_gpu(run: Callable[[str], None]) -> None:
    run("""
        queue.submit(scatter, 1000, where, out)
        queue.submit(double, 1000, out)
        error = error_of(queue.wait)
        assert type(error) is fq.DeviceError, type(error)
        text = str(error)
        assert "ILLEGAL_ADDRESS" in text and "check=True" in text, text
        assert "scatter" in text and "double" in text, text
        for call in (
            queue.wait, other.wait, elsewhere.numpy, lambda: fq.FusionQueue("cuda"),
            lambda: other.submit(double, 10, elsewhere), lambda: elsewhere.write(np.ones(10, "f4")),
        ):
            error = error_of(call)
            assert isinstance(error, fq.DeviceError) and "scatter" in str(error), str(error)
            assert "this GPU is lost" in str(error), str(error)
    """)


def test_whoever_touches_the_gpu_first_says_so(run: Callable[[str], None]) -> None:
    run("""
        queue.submit(scatter, 1000, where, out)
        error = error_of(lambda: [elsewhere.numpy() for _ in range(100_000)])
        assert "scatter" in str(error), str(error)
    """)


def test_a_list_s_fused_kernel_is_named(run: Callable[[str], None]) -> None:
    run("""
        with fq.fusion(queue) as f:
            queue.submit(scatter, 1000, where, out)
            queue.submit(double, 10, elsewhere)
        error = error_of(f.event.wait)
        assert "scatter" in str(error) and "double" in str(error), str(error)
        error = error_of(f.replay)
        assert "this GPU is lost" in str(error), str(error)
    """)


def test_replays_behind_a_wait_are_named(run: Callable[[str], None]) -> None:
    """They count themselves, and nothing else."""
    run("""
        with fq.fusion(queue) as f:
            queue.submit(double, 10, elsewhere)
        for _ in range(40):
            f.replay()
        queue.wait()
        stream = queue._state.launcher.backend._stream
        assert stream.in_flight() == []
        for _ in range(3):
            f.replay()
        assert "double" in str(stream.in_flight()), stream.in_flight()
        queue.submit(scatter, 1000, where, out)
        error = error_of(queue.wait)
        assert "scatter" in str(error) and "double" in str(error), str(error)
    """)


def test_checked_runs_find_the_access_and_lose_nothing(run: Callable[[str], None]) -> None:
    run("""
        def checked():
            with fq.fusion(queue, check=True):
                queue.submit(double, 10, elsewhere)
                queue.submit(scatter, 1000, where, out)
        error = error_of(checked)
        assert isinstance(error, fq.ArgumentError), type(error)
        assert "work-item (777)" in str(error) and str(1 << 40) in str(error), str(error)
        assert elsewhere.numpy()[0] == 4 and out.numpy()[776] == 1
    """)
