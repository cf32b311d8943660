"""Whether others keep the machine's processors busy."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LOAD = Path("/proc/loadavg")
THREADS = Path("/proc/self/task")


def is_busy() -> bool:
    """Whether as many threads of other processes as there are processors run or could run now;
    False where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        running = int(LOAD.read_text("ascii").split()[3].split("/")[0])
        return running >= _processors() and running - _own() >= _processors()
    return False


def _own() -> int:
    """Threads of this process that run or could run."""
    found = 0
    for thread in THREADS.iterdir():
        with suppress(OSError):  # it has ended
            found += (thread / "stat").read_text("utf-8", "replace").rpartition(")")[2][1] == "R"
    return found


def _processors() -> int:
    with suppress(AttributeError, OSError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
