"""One object for all that a launch by an earlier one's answers takes for granted.

Whoever changes something that ``runtime.steady_replay`` asks about puts a new one here, behind the
change: queues that begin fusion mode or close, memory that moves or goes to another queue, scalars
that launches get, what finalizers note, profiles that begin and end.  Where the object is the same
as before, all of that is.  A counter would not do: of two threads that count at once one is lost,
and the number comes again.
"""

from __future__ import annotations


class Changes:
    """The latest there has been in this process."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest = object()


CHANGES = Changes()
