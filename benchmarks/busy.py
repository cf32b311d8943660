"""Other work on the machine while something is measured: processes that keep processors busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
"""Ends with the process that started it, however that ends."""


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that compute, on whatever processors the system gives them."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            running.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", _LOOP]))
        yield
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()
