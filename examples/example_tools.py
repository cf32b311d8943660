"""What all examples do: open a queue, and take times."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import fusionq as fq

MOST_SECONDS = 0.3
"""Of all rounds together, after which no other begins."""


def open_queue(size: int, small: int) -> tuple[fq.FusionQueue, int]:
    """A queue on the default SYCL device and ``size``; without a device the reference backend,
    which interprets kernels in Python, and ``small``."""
    try:
        queue = fq.FusionQueue()
    except fq.DeviceError as error:
        print(f"No SYCL device was found: {str(error).splitlines()[0]}")
        print(f"The reference backend runs the example, with size {small} in place of {size:,}.")
        print("Its times say nothing about a device.\n")
        return fq.FusionQueue("reference"), small
    print(f"device: {queue.device.name}\n")
    return queue, size


def milliseconds(*runs: Callable[[], Any], rounds: int = 7) -> list[float]:
    """The median time of each of ``runs``, which return an event, in milliseconds.

    They take turns, so that a machine that changes its speed changes it for all.  Slow ones, as on
    the reference backend, have fewer rounds than ``rounds``.
    """
    for run in runs:
        run().wait()  # the first time compiles
    seconds: list[list[float]] = [[] for _ in runs]
    end = perf_counter() + MOST_SECONDS
    for _ in range(rounds):
        for run, found in zip(runs, seconds, strict=True):
            start = perf_counter()
            run().wait()
            found.append(perf_counter() - start)
        if perf_counter() > end:
            break
    return [statistics.median(found) * 1e3 for found in seconds]
