"""Whether others keep the machine's processors busy."""

from __future__ import annotations

import os
from contextlib import suppress

LOAD = "/proc/loadavg"


def is_busy() -> bool:
    """Whether more threads run or could run now than there are processors; False where the system
    does not say."""
    with suppress(OSError, ValueError, IndexError), open(LOAD, encoding="ascii") as file:
        running = int(file.read().split()[3].split("/")[0])
        return running > _processors()
    return False


def _processors() -> int:
    with suppress(AttributeError, OSError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
