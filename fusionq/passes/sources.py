"""Where the value of a fused kernel's parameter comes from."""

from __future__ import annotations

from fusionq.base.frozen import dataclass


@dataclass(frozen=True, slots=True)
class ArgumentSource:
    """A kernel parameter takes its value from an argument of a submission."""

    submission: int
    argument: int


@dataclass(frozen=True, slots=True)
class RangeSource:
    """A kernel parameter takes its value from one extent of a submission's global range."""

    submission: int
    dim: int


@dataclass(frozen=True, slots=True)
class ExtentSource:
    """A kernel parameter takes its value from one extent of an array argument."""

    submission: int
    argument: int
    dim: int


@dataclass(frozen=True, slots=True)
class QueueSource:
    """A kernel parameter belongs to a persistent kernel's queue: ``what`` is ``schedule``,
    ``control``, ``epoch`` or ``spin_limit`` (``ir.nodes.Persistent``)."""

    what: str


ParamSource = ArgumentSource | RangeSource | ExtentSource | QueueSource
