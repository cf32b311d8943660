"""Names for parts of a kernel, for the profiler; without effect on what the kernel computes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


def region(name: str) -> AbstractContextManager[None]:
    """``with fq.region("name"):`` in a kernel: profiling measures the statements inside.

    ``name`` is a string constant.  Without profiling, and in plain Python, it is nothing at all:
    the kernel's device source is the same as without it.
    """
    return nullcontext()


def mark(name: str, value: int = 0) -> None:
    """``fq.mark("name")`` in a kernel: profiling notes when it is reached, and ``value`` (int64).

    As ``region``, it is nothing without profiling.
    """
