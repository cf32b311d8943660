"""The vocabulary of rings: memory of a worker that is filled ahead of all waits.

Each of the work-groups that a worker does side by side has a ring of slots, and there is a lane
beyond the worker's that fills it.  ``codegen.stream_text`` says with what.
"""

from __future__ import annotations

from typing import Protocol


class Rings(Protocol):
    """What fills the slots of rings and reads them; values are texts, lists of them lines.

    Rings are used behind ``declared``: by the worker's lanes as ``argument``, and by those that
    fill them, in the loop of ``filling`` over the worker's list, as ``arguments``.
    """

    @property
    def size(self) -> int:
        """Work-items of the work-groups that have rings."""

    @property
    def count(self) -> int:
        """Rings of a worker."""

    @property
    def slot_bytes(self) -> int:
        """Of a slot."""

    @property
    def together(self) -> int:
        """Slots that a work-group reads at once."""

    @property
    def sector(self) -> int:
        """Bytes that the parts of rows which are copied begin and end at multiples of."""

    @property
    def functions(self) -> str:
        """Functions that the texts below call."""

    over: str
    """A statement by which the worker's first lane says that no slot is read any longer."""
    counting: str
    """A statement by which the lane that counts tiles says, before it does, that nothing may be
    asked for: what all lanes have stored has to reach others first, behind what is on its way."""
    streams: str
    """Whether rings are filled: where workers follow lists of their own."""
    parameter: str
    """The worker's ring as a parameter of a function."""
    argument: str
    """The same in a call."""
    parameters: str
    """The ring as parameters of a function that fills it."""
    arguments: str
    """The same in a call."""
    over_parameter: str
    """A parameter that says whether the worker is over."""
    over_argument: str
    """The same in a call."""

    @property
    def counted(self) -> str:
        """The same behind it: slots are filled again, also those of ``held``."""

    def declared(self, memory: str, taken: int) -> list[str]:
        """Declares the rings, whose slots lie in ``memory``, of bytes, behind what is ``taken`` of
        it; all lanes meet there."""

    def filling(self, first: list[str], each: list[str]) -> list[str]:
        """What the lanes that fill rings do before they leave: ``first``, then ``each`` for an
        instruction of the worker's list."""

    def full(self, slots: int) -> list[str]:
        """Waits until the next ``slots`` are full."""

    def row(self, pointer: str, place: int, slot: int) -> str:
        """The address of what lies ``place`` bytes into that one of them, as a ``pointer``."""

    def free(self, slots: int) -> list[str]:
        """Says that a work-item has read the next ``slots``: those behind them are next."""

    def held(self, last: str) -> list[str]:
        """Behind the last slot that a work-group reads of its rows, if the condition ``last`` says
        that it reads no more of the tile: nothing is asked for until the tile is counted."""

    def fill(self, nbytes: str) -> list[str]:
        """Waits until the next slot is free for so many bytes; leaves the function if the worker is
        over."""

    def copied(self, place: int, address: str, nbytes: str) -> str:
        """Begins to copy so many bytes of global memory to ``place`` in that slot."""

    def filled(self) -> list[str]:
        """Behind the copies into a slot: the next one is next."""
