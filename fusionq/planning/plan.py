"""What planning decides: stages, dependences, promotions, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from fusionq.analysis.item_space import Mode, global_range, hull
from fusionq.analysis.scope import DependenceKind, Scope
from fusionq.analysis.submission import ArrayArgument, Sized, Submission, buffer_names
from fusionq.analysis.validity import Validity
from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.ir.nodes import Kernel
from fusionq.language.ranges import Range
from fusionq.passes.labels import renumbered
from fusionq.passes.permute_dimensions import inverse, permute_dimensions
from fusionq.passes.sources import (
    ArgumentSource,
    ExtentSource,
    ParamSource,
    QueueSource,
    RangeSource,
)
from fusionq.planning.counted_work import Work

__all__ = [
    "UNFUSED_ASKED",
    "ArgumentSource",
    "Became",
    "Dependence",
    "ExtentSource",
    "Guards",
    "OverlappedTiling",
    "ParamSource",
    "Plan",
    "PromotionDecision",
    "QueueSource",
    "RangeSource",
    "Recomputation",
    "SidePlan",
    "StagePlan",
    "StrategyTime",
    "TiledPart",
    "empty_plan",
]


Became: TypeAlias = Literal["fused", "megakernel", "overlap", "sequence", "unfused"]
"""What a list became."""

UNFUSED_ASKED = "the unfused strategy was asked for"
"""The boundary of a stage of a list that nothing joins by request."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """An ordered pair of submissions that touch the same memory.

    ``buffer`` is the consumer's name for it; ``argument`` its position there.
    """

    producer: int
    consumer: int
    buffer: str
    argument: int
    kind: DependenceKind
    scope: Scope
    reason: str
    producer_span: Span
    consumer_span: Span


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """Where a buffer that the user flagged lives in the fused kernel, and why.

    ``buffer`` is its name in the first submission that uses it, argument ``argument`` there.
    """

    buffer: str
    submission: int
    argument: int
    scope: Literal["private", "local", "global"]
    reason: str


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A temporary that nobody waits for: those who read it compute its elements anew.

    ``buffer`` is its name in submission ``producer``, argument ``argument`` there, which would
    write it.  ``halo``: how many of the producer's work-items, in each dimension, write what a
    work-item of each of ``consumers`` reads.  ``stored``: the buffer gets it as well, each element
    from the work-group to which it belongs, since someone may look at it afterwards.
    """

    buffer: str
    producer: int
    argument: int
    consumers: tuple[int, ...]
    halo: tuple[tuple[int, ...], ...]
    stored: bool = False


@dataclass(frozen=True, slots=True)
class TiledPart:
    """What a work-group does between barriers: the work-items of ``submissions`` in a box of the
    extents ``items``; and what one of them does: its ``work``, and its scalar operations."""

    submissions: tuple[int, ...]
    items: tuple[int, ...]
    work: Work
    operations: float


@dataclass(frozen=True, slots=True)
class OverlappedTiling:
    """Overlapped tiles: a work-group does the ``parts`` for a ``tile`` of the launch's work-items;
    those of the last part are the tile."""

    tile: tuple[int, ...]
    parts: tuple[TiledPart, ...]


@dataclass(frozen=True, slots=True)
class SidePlan:
    """Of a launch the work-groups that do ``submissions``: as many as the range of submission
    ``geometry`` takes."""

    submissions: tuple[int, ...]
    geometry: int
    order: tuple[int, ...] = ()
    """See ``StagePlan.order``."""

    def range_of(self, submissions: Sequence[Sized]) -> Range:
        """The range of ``geometry``, of a list of ``submissions``."""
        return _in_order(global_range(submissions[self.geometry]), self.order)


@dataclass(frozen=True, slots=True)
class Guards:
    """Conditions on ids, as text: ``bounds`` of the compiler's loop over work-items, and what holds
    ``inside`` of rows, whose code has no such condition.  ``divisors`` of ids, by which a segment
    of a row is divided once."""

    bounds: tuple[str, ...]
    inside: tuple[str, ...]
    divisors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Submissions that run as one launch.

    ``sources`` has one entry for each of ``kernel.params``; promoted buffers have none and so
    are never allocated.  ``geometry`` is the submission whose range the launch covers,
    in ``mode`` (one linear dimension, the range's own, or the least range that holds those of
    all its submissions), with work-groups of ``local_range``
    if the user fixed them.  ``boundary`` says why this stage does not join the one before it
    (None for the first).
    """

    submissions: tuple[int, ...]
    kernel: Kernel
    sources: tuple[ParamSource, ...]
    geometry: int
    mode: Mode = "ids"
    local_range: tuple[int, ...] | None = None
    boundary: str | None = None
    inner: tuple[tuple[int, ...], ...] = ()
    """Of a persistent kernel: the submissions of each of its stages."""
    inner_boundaries: tuple[str | None, ...] = ()
    """Why each of them does not join the one before."""
    absent: tuple[int, ...] = ()
    """The last of ``submissions``, which the others compute anew wherever they read them."""
    tiling: OverlappedTiling | None = None
    """Of a launch by overlapped tiles; a work-group of ``local_range`` then does a tile."""
    beside: tuple[SidePlan, ...] = ()
    """Of stages that run side by side: each of them, in order."""
    extents: tuple[ExtentSource, ...] = ()
    """Where the linear ids of ``geometry`` are done as rows: the sources of the range's extents."""
    order: tuple[int, ...] = ()
    """The dimensions of the range in the order of the kernel's; empty: as they are."""
    orders: tuple[tuple[int, ...], ...] = ()
    """The same of the range of each submission, where the range is that of all and these differ;
    ``order`` is empty then."""
    items_at_once: tuple[int, ...] = ()
    """How many neighbours in each dimension a launched work-item does; empty: one."""
    vectors_at_once: int = 1
    """How many vectors of a row a work-group does together, where it goes along rows."""
    guards: Guards | None = None
    """What becomes of conditions on ids, where they would be masks and there are no registers for
    such; None where there are none."""

    @property
    def present(self) -> tuple[int, ...]:
        """The submissions whose statements the kernel has under a heading."""
        return self.submissions[: len(self.submissions) - len(self.absent)]

    def range_of(self, submissions: Sequence[Sized]) -> Range:
        """The range that the launch covers, of a list of ``submissions``."""
        if self.extents:
            return Range(
                *(submissions[e.submission].number(e.argument, e.dim) for e in self.extents)
            )
        if self.mode == "hull":
            orders = self.orders or ((),) * len(self.present)
            whole = hull([
                _in_order(global_range(submissions[s]), order)
                for s, order in zip(self.present, orders, strict=True)
            ])  # fmt: skip
        else:
            whole = global_range(submissions[self.geometry])
        whole = _in_order(whole, self.order)
        if self.beside:
            ranges = [part.range_of(submissions) for part in self.beside]
            return Range(sum(r[0] for r in ranges), *whole[1:])
        return whole

    @property
    def in_order(self) -> StagePlan:
        """The launch with the dimensions as they are."""
        if not self.order:
            return self
        kernel = permute_dimensions(self.kernel, inverse(self.order))
        return replace(self, kernel=kernel, order=())

    @property
    def numbered_kernel(self) -> Kernel:
        """The kernel with the list's numbers of its submissions in the headings, not those among
        the launch's."""
        return self.kernel if self.inner else renumbered(self.kernel, self.present)


@dataclass(frozen=True, slots=True)
class StrategyTime:
    """How long a list took by one strategy: the median, in seconds."""

    strategy: Became
    seconds: float
    slot_bytes: int = 0
    """Of its persistent kernels' slots, where they are not the target's."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A list of submissions turned into launches; it serves every list of the same structure
    whose sizes and integer scalars satisfy ``validity``."""

    strategy: Became
    stages: tuple[StagePlan, ...]
    dependences: tuple[Dependence, ...]
    promotions: tuple[PromotionDecision, ...]
    fallback: str | None
    validity: Validity
    timings: dict[str, float] = field(compare=False)
    """Seconds by phase: ``analysis``, ``passes``."""
    choice: str | None = None
    """On what grounds a persistent kernel was chosen or not, where one was possible; of a plan
    that was chosen by measuring, what was measured."""
    measured: tuple[StrategyTime, ...] = ()
    """The strategies that were measured, the fastest first, which is this plan's; empty where
    nothing was."""
    recomputed: tuple[Recomputation, ...] = ()
    """The temporaries whose elements are computed anew where they are read."""
    other_slots: tuple[int, ...] = ()
    """Of how many bytes the slots of its persistent kernels' rings might be as well, if they have
    any (``planning.ring_sizes``)."""

    def named_for(self, submissions: Sequence[Submission]) -> Plan:
        """The plan with the buffer names of ``submissions``, another list that it serves."""
        names = buffer_names(submissions)

        def label(submission: int, argument: int) -> str:
            found = submissions[submission].arguments[argument]
            assert isinstance(found, ArrayArgument)
            return found.named(names.get(found.storage, found.label))

        return replace(
            self,
            dependences=tuple(
                replace(d, buffer=label(d.consumer, d.argument)) for d in self.dependences
            ),
            promotions=tuple(
                replace(p, buffer=label(p.submission, p.argument)) for p in self.promotions
            ),
            recomputed=tuple(
                replace(r, buffer=label(r.producer, r.argument)) for r in self.recomputed
            ),
        )


def _in_order(whole: Range, order: Sequence[int]) -> Range:
    return Range(*(whole[d] for d in order)) if order else whole


def empty_plan() -> Plan:
    """The plan of a fusion without submissions."""
    return Plan("unfused", (), (), (), "nothing was submitted", Validity((), (), ()), {})
