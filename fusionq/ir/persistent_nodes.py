"""What a persistent kernel's stages are made of in the kernel IR, beside their kernels."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fusionq.base.frozen import dataclass
from fusionq.ir.expressions import Expr

Clock: TypeAlias = Literal["clock", "cycle_counter"]
"""The device functions that say the time."""


@dataclass(frozen=True, slots=True)
class TileWait:
    """What a tile waits for: the tiles of an earlier stage that hold its work-items from the
    first to the second of ``bounds`` (int64, inclusive, cut to the stage's range; nothing if the
    first exceeds the second) in each dimension; all of the stage if ``bounds`` is None."""

    bounds: tuple[tuple[Expr, Expr], ...] | None


@dataclass(frozen=True, slots=True)
class LaneDimension:
    """The dimension ``dim`` that neighbouring lanes have work-items of where that is faster than
    the last one: a vector of the last takes ``benefit`` sixteenths of what one of ``dim`` does."""

    dim: int
    benefit: int


@dataclass(frozen=True, slots=True)
class PersistentStage:
    """A stage of a persistent kernel: ``code`` is the position of its code, ``arguments`` the
    persistent kernel's parameter for each of the code's, ``producers`` the earlier stage that
    each of its waits is about."""

    label: str
    code: int
    arguments: tuple[str, ...]
    producers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InstructionRecords:
    """Where a persistent kernel writes down what its workers do: ``buffer`` (int64), ``base`` (the
    launch's first word) and ``rows`` (how many tiles of each stage have a row) are parameters.

    The row of a stage's tile lies ``rows_at + row_words * (stage * rows + tile)`` words after
    ``base``.  It starts with the worker's number, from 1, and five times: when the worker began to
    look for an instruction, when it had one, when its waits were over (the same if none took a
    while), when its work was done, and when that was published.  ``clock``: the device function
    that says the time.
    """

    clock: Clock
    buffer: str
    base: str
    rows: str
    rows_at: int
    row_words: int
