"""One number for all that a launch by an earlier one's answers takes for granted.

Whoever changes something that ``runtime.steady_replay`` asks about counts it here, behind the
change: queues that begin fusion mode or close, memory that moves or goes to another queue, scalars
that launches get, what finalizers note, profiles that begin and end.  Where the number is the same
as before, all of that is.
"""

from __future__ import annotations


class Changes:
    """How many there have been in this process.

    Threads may count at the same time: of two, one can be lost, but then the number is still
    another one than it was before both.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


CHANGES = Changes()
