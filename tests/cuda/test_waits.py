"""Ctrl-C ends a wait for the GPU at once, and the queue goes on."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import fusionq as fq

TURNS = 400_000_000
"""Of a loop that takes seconds on any GPU; no compiler finds a closed form of it."""


@fq.kernel
def slow(item: fq.Item, turns: np.int64, out):
    x = out[item.get_id(0)]
    for _ in range(turns):
        x = (x ^ (x >> np.uint32(13))) * np.uint32(1664525) + np.uint32(1013904223)
    out[item.get_id(0)] = x


@fq.kernel
def add_one(item: fq.Item, out):
    out[item.get_id(0)] += 1


@pytest.fixture(autouse=True)
def _ctrl_c() -> Iterator[None]:
    """Raises KeyboardInterrupt, also where the tests' process ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_wait_says_what_runs_and_the_queue_goes_on(queue) -> None:
    out, small = fq.Buffer(np.ones(32, np.uint32)), fq.Buffer(np.zeros(32, np.int32))
    queue.submit(slow, 32, 1, out).wait()  # built
    queue.submit(add_one, 32, small).wait()
    first = out.numpy().copy()
    start = time.perf_counter()
    queue.submit(slow, 32, TURNS, out)
    behind = queue.submit(add_one, 32, small)
    for wait in (behind.wait, queue.wait, out.numpy):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt) as caught:
                wait()
        finally:
            timer.cancel()
        if sys.version_info >= (3, 11):
            notes = "".join(caught.value.__notes__)
            assert "slow" in notes and "add_one" in notes and "still runs" in notes
    interrupted = time.perf_counter() - start
    behind.wait()
    assert np.array_equal(small.numpy(), np.full(32, 2))
    assert interrupted < time.perf_counter() - start, "the kernel ran on behind the interrupts"
    assert not np.array_equal(out.numpy(), first)
