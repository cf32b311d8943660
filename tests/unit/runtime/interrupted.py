"""Waits that a real SIGINT ends, in a process of its own: prints what happened, as JSON.

The kernel runs until the host writes to its flag, so it certainly runs when the signal comes.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq


@fq.kernel
def until_told(item: fq.Item, flag, out):
    i = item.get_id(0)
    told = fq.AtomicRef(flag, 0)
    while told.load() == 0:
        pass
    out[i] = out[i] + 1


@fq.kernel
def add_one(item: fq.Item, out):
    i = item.get_id(0)
    out[i] = out[i] + 1


def interrupt_soon() -> None:
    """Send this process a SIGINT in a moment."""
    timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()


def interrupted(call: Callable[[], object]) -> dict[str, Any] | None:
    """The notes of the KeyboardInterrupt that ends ``call``; None if none does."""
    interrupt_soon()
    try:
        call()
    except KeyboardInterrupt as interrupt:
        return {"notes": getattr(interrupt, "__notes__", [])}
    return None


class Running:
    """A queue with a kernel that runs until it is told, and one behind it."""

    def __init__(self) -> None:
        self.queue = fq.FusionQueue()
        self.flag, self.out = fq.Buffer(1, np.int32), fq.Buffer(4, np.int32)
        self.told, self.seen = self.flag.numpy(), self.out.numpy()
        self.event = self.queue.submit(until_told, 1, self.flag, self.out)
        self.behind = self.queue.submit(add_one, 4, self.out)

    def tell(self) -> None:
        self.told[0] = 1


def waits() -> dict[str, Any]:
    """Every way to wait, one after the other, while one kernel runs; then all goes on."""
    on = Running()
    ways: dict[str, Callable[[], object]] = {
        "event": on.behind.wait,
        "queue": on.queue.wait,
        "numpy": on.out.numpy,
        "memcpy": lambda: on.queue.memcpy(np.zeros(4, np.int32), on.out),
        "fill": lambda: on.queue.fill(on.out, 3),
        "host_task": lambda: on.queue.host_task(print, on.out),
        "write": lambda: on.out.write(np.zeros(4, np.int32)),
    }
    found: dict[str, Any] = {name: interrupted(way) for name, way in ways.items()}
    found["running"] = [not on.event.is_complete, not on.behind.is_complete]
    later = on.queue.submit(add_one, 4, on.out)
    with fq.fusion(on.queue) as f:
        on.queue.submit(add_one, 4, on.out)
        on.queue.submit(add_one, 4, on.out)
    found["fusion"] = interrupted(f.event.wait)
    on.tell()
    later.wait()
    f.event.wait()
    found["after"] = on.out.numpy().tolist()
    on.queue.close()
    return found


def unwinding() -> dict[str, Any]:
    """What dies on the way out waits for nothing; the queue's end neither."""
    made = [Running()]
    told = made[0].told

    def main() -> None:
        on = made.pop()
        with on.queue, fq.fusion(on.queue):
            on.queue.submit(add_one, 4, fq.Buffer(4, np.int32))
            on.event.wait()

    found: dict[str, Any] = {"block": interrupted(main)}
    gc.collect()
    found["running"] = int(told[0]) == 0
    told[0] = 1
    with fq.FusionQueue() as queue:
        out = fq.Buffer(4, np.int32)
        queue.submit(add_one, 4, out)
        found["after"] = out.numpy().tolist()
    return found


def program_end() -> dict[str, Any]:
    """The process waits for its kernels, until it is interrupted again."""
    on = Running()
    found = interrupted(on.queue.wait)
    print(json.dumps({"wait": found}), flush=True)
    interrupt_soon()
    sys.exit()


def tuning() -> dict[str, Any]:
    """The end of a fusion is interrupted while it measures: the list was not run, and says so."""
    on = Running()
    with_error: list[fq.Event] = []

    def fuse() -> None:
        with fq.fusion(on.queue, tune=True):
            with_error.append(on.queue.submit(add_one, 4, on.out))
            with_error.append(on.queue.submit(add_one, 4, on.out))

    found: dict[str, Any] = {"end": interrupted(fuse)}
    on.tell()
    try:
        with_error[0].wait()
    except fq.FusionStateError as error:
        found["event"] = str(error)
    on.queue.wait()
    found["after"] = on.out.numpy().tolist()
    return found


if __name__ == "__main__":
    # A shell lets what it starts in the background ignore SIGINT, and its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(json.dumps(globals()[sys.argv[1]]()))
