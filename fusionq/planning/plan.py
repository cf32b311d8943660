"""What planning decides: stages, dependences, promotions, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fusionq.ir.nodes import Kernel, Span
from fusionq.planning.submission import ArrayArgument, Submission

Strategy = Literal["auto", "fused", "megakernel", "sequence", "unfused"]
Barriers = Literal["auto", "all", "none"]
Promote = Literal["flagged", "internal", "none"]
Scope = Literal["NONE", "ITEM", "GROUP", "GLOBAL", "UNKNOWN"]
DependenceKind = Literal["RAW", "WAR", "WAW"]


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """The options of ``fusion()`` and ``complete_fusion()``, see their documentation."""

    strategy: Strategy = "auto"
    barriers: Barriers = "auto"
    require: bool = False
    promote: Promote = "flagged"
    fp: Literal["strict", "fast"] = "strict"


@dataclass(frozen=True, slots=True)
class Dependence:
    """An ordered pair of submissions that touch the same memory."""

    producer: int
    consumer: int
    buffer: str
    kind: DependenceKind
    scope: Scope
    reason: str
    producer_span: Span
    consumer_span: Span


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """Where a buffer that the user flagged lives in the fused kernel, and why."""

    buffer: str
    scope: Literal["private", "local", "global"]
    reason: str


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


ParamSource = ArgumentSource | RangeSource


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Submissions that run as one launch.

    ``sources`` has one entry for each of ``kernel.params``; promoted buffers have none and so
    are never allocated.  ``geometry`` is the submission whose range the launch covers.
    ``boundary`` says why this stage does not join the one before it (None for the first).
    """

    submissions: tuple[int, ...]
    kernel: Kernel
    sources: tuple[ParamSource, ...]
    geometry: int
    boundary: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A list of submissions turned into launches; holds for every list with the same
    structure whose sizes satisfy ``validity``."""

    strategy: Literal["fused", "sequence", "unfused"]
    stages: tuple[StagePlan, ...]
    dependences: tuple[Dependence, ...]
    promotions: tuple[PromotionDecision, ...]
    fallback: str | None
    timings: dict[str, float] = field(compare=False)
    """Seconds by phase: ``analysis``, ``passes``."""


def promotion_of(argument: ArrayArgument) -> str | None:
    """The promotion that buffer and access flags together ask for, if any."""
    return argument.access_flag or argument.buffer_flag


def label_of(submission: Submission, argument: int) -> str:
    """How reports name an argument."""
    return submission.arguments[argument].label
