"""Room for recursion: the compiler walks trees, and long or deep kernels make deep ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from fusionq.base.errors import KernelLanguageError

_FRAMES = 12_000
"""For trees of the depth that the front end accepts."""
_lock = Lock()
_inside = 0
_before = 0


@contextmanager
def room_for_recursion(what: str) -> Iterator[None]:
    """Let the code inside nest calls deeper than Python's default of 1,000.

    KernelLanguageError where that is not enough; ``what``: what is too deep then.
    """
    _enter()
    try:
        yield
    except RecursionError:
        raise KernelLanguageError(
            f"{what} is too long or too deeply nested for the compiler\n"
            "  Assign parts of long expressions to variables, and split deep branches into "
            "functions or several kernels."
        ) from None
    finally:
        _leave()


def _enter() -> None:
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, _FRAMES))
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0 and sys.getrecursionlimit() == max(_before, _FRAMES):
            sys.setrecursionlimit(_before)
