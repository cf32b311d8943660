"""The report's data: what ran together, what did not, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.base.recursion import room_for_recursion
from fusionq.base.span import Span
from fusionq.codegen.stage_tables import code_bodies
from fusionq.codegen.streamed_loops import Streams
from fusionq.ir.nodes import Barrier, Block, Persistent, Stmt
from fusionq.ir.printer import print_expr, print_kernel
from fusionq.ir.side_by_side import side_by_side
from fusionq.ir.tile_footprint import ReadAhead, read_ahead
from fusionq.ir.walk import statements
from fusionq.language.ranges import NdRange
from fusionq.passes.labels import number_in
from fusionq.planning.plan import Became, Dependence, Plan, PromotionDecision, StagePlan
from fusionq.report.advice import advice

if TYPE_CHECKING:
    from fusionq.megakernel.schedule import Schedule

CacheOutcome: TypeAlias = Literal["miss", "memory", "disk"]



@dataclass(frozen=True, slots=True)
class SubmittedKernel:
    """One submission as reports show it."""

    index: int
    kernel: str
    range: str
    span: Span
    """The line that submitted it, or, where the queue had seen the same kernel, range and arguments
    before, the one that did so first: a known submission is not traced to its caller again."""


@dataclass(frozen=True, slots=True)
class InsertedBarrier:
    """A work-group barrier that fusionq put before submission ``before``, and why."""

    before: int
    reason: str


@dataclass(frozen=True, slots=True)
class ReportedTiledStage:
    """A stage of a persistent kernel: its submissions, the earlier stages whose tiles its tiles
    wait for, and which of their work-items each time.

    ``ahead``: the arrays, by their parameters, of which a tile asks for what it reads before it
    waits; ``not_ahead``: the others that it only reads, and why not.  Empty where devices do not.
    ``streamed``: those of which rows come to workers ahead of all waits; ``not_streamed``: others
    of which work-groups read rows, and why not.
    """

    submissions: tuple[int, ...]
    waits: tuple[tuple[int, str], ...]
    boundary: str | None
    ahead: tuple[str, ...] = ()
    not_ahead: tuple[tuple[str, str], ...] = ()
    streamed: tuple[str, ...] = ()
    not_streamed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ReportedRecomputation:
    """A temporary whose elements are computed anew where they are read.

    ``halo``: for each of ``consumers`` how many of the producer's work-items, in each dimension,
    write what one of its work-items reads.  ``bytes_saved``: of global memory, a load by each
    consumer and, unless it is ``stored`` as well, each element by the work-group that it belongs
    to, the store by the producer.  ``tile``: of the consumers' work-items that a work-group
    does, which computes ``computed`` of the producer's in local memory, the tile with its halo;
    None where each work-item computes what it reads itself.
    """

    buffer: str
    producer: int
    consumers: tuple[int, ...]
    halo: tuple[tuple[int, ...], ...]
    bytes_saved: int
    tile: tuple[int, ...] | None
    computed: tuple[int, ...] | None
    stored: bool


@dataclass(frozen=True, slots=True)
class ReportedRings:
    """A worker of a persistent kernel has so many ``rings``, each of ``slots`` of ``slot_bytes``,
    and so many ``bytes_in_flight`` are on their way to it at once, at most."""

    rings: int
    slots: int
    slot_bytes: int
    bytes_in_flight: int


@dataclass(frozen=True, slots=True)
class ReportedStage:
    """Submissions that ran as one launch.

    ``boundary`` says why the stage did not join the one before it; None for the first.
    ``work_group`` is the size in each dimension where the launch depends on it; ``barriers``
    counts the work-group barriers in the kernel, the kernels' own and ``inserted``.
    ``work_group_chosen``: by fusionq, where no submission fixed it.  ``tiled``: of a persistent
    kernel, the stages inside it.  ``side_by_side``: the submissions of each part, where parts of
    the launch's work-groups do them.  On CPUs ``loop_bounds`` are the
    conditions on ids that bound the compiler's loop over work-items, and ``inside_rows`` those that
    hold inside of a launch's rows, where they are not asked for; others are masks.  ``divisors``:
    what ids are divided by once for a segment of a row, where all of its work-items have one
    quotient.  ``order``: the dimensions of the range from the slowest to that of neighbouring
    work-items, where that is not the last one.
    ``items_at_once``: how many neighbours in each dimension a work-item does together, so that
    elements they have in common are loaded once; empty: one.  ``vectors_at_once``: how many
    vectors of a row of the range work-groups do together, on CPUs.  ``one_by_one``: whether no
    vectors are made of its work-items there, each of which goes along a row of memory.
    ``rings``: of a persistent kernel, by what rows come to its workers ahead of all waits, if any
    do.
    """

    submissions: tuple[int, ...]
    kernels: tuple[SubmittedKernel, ...]
    boundary: str | None
    work_group: tuple[int, ...] | None
    barriers: int
    inserted: tuple[InsertedBarrier, ...] = ()
    work_group_chosen: bool = False
    tiled: tuple[ReportedTiledStage, ...] = ()
    side_by_side: tuple[tuple[int, ...], ...] = ()
    loop_bounds: tuple[str, ...] = ()
    inside_rows: tuple[str, ...] = ()
    divisors: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    items_at_once: tuple[int, ...] = ()
    vectors_at_once: int = 1
    one_by_one: bool = False
    rings: ReportedRings | None = None


@dataclass(frozen=True)
class ReportModel:
    """What became of a list of submissions, as data.

    The same for a plan from the cache as for a fresh one, but for ``cache`` and ``timings``.
    """

    plan: Plan
    """What the list became; it may serve other lists, too."""
    submissions: tuple[Submission, ...]
    """The list, in order."""
    device_sources: tuple[str, ...]
    """The device source of each launch."""
    cache: CacheOutcome
    """Where the plan came from: made now (``miss``), or from the cache in ``memory`` or on
    ``disk``.  Where each submission ran by itself while there is no plan yet, ``miss``."""
    timings: dict[str, float]
    """Seconds by phase."""
    schedules: tuple[Schedule | None, ...] = field(default=(), repr=False, compare=False)
    """The numbers of each launch that was a persistent kernel; None for the others."""
    left_out: tuple[str, ...] = ()
    """Commands that did not join the list, and why."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "timings", dict(self.timings))  # whoever gave them may go on

    @property
    def strategy(self) -> Became:
        """``fused`` (one launch), ``megakernel`` (a persistent kernel whose work-groups wait for
        each other), ``overlap`` (launches that compute halos anew), ``sequence`` (several launches)
        or ``unfused`` (one a submission)."""
        return self.plan.strategy

    @property
    def headline(self) -> str:
        """Such as ``4 submissions → 1 kernel``."""
        return (
            f"{counted(len(self.submissions), 'submission')} → "
            f"{counted(len(self.plan.stages), 'kernel')}"
        )

    @property
    def stages(self) -> tuple[ReportedStage, ...]:
        """The launches, in order, with the submissions in each."""
        by_consumer: dict[int, list[Dependence]] = defaultdict(list)
        for d in self.dependences:
            by_consumer[d.consumer].append(d)
            for r in self.plan.recomputed:
                if r.producer == d.consumer:
                    for consumer in r.consumers:
                        by_consumer[consumer].append(d)
        return tuple(
            ReportedStage(
                tuple(sorted(stage.submissions)),
                tuple(self._submitted(index) for index in sorted(stage.submissions)),
                stage.boundary,
                stage.local_range,
                sum(isinstance(s, Barrier) for s in statements(stage.kernel.body)),
                self._inserted(stage, by_consumer),
                stage.local_range is not None and not self._fixes_groups(stage),
                _tiled(stage, schedule),
                tuple(part.submissions for part in stage.beside),
                () if stage.guards is None else stage.guards.bounds,
                () if stage.guards is None else stage.guards.inside,
                () if stage.guards is None else stage.guards.divisors,
                stage.order,
                stage.items_at_once,
                stage.vectors_at_once,
                stage.kernel.one_by_one,
                _rings(schedule),
            )
            for stage, schedule in zip_longest(self.plan.stages, self.schedules)
        )

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """Ordered pairs of submissions that share memory, with scope and reason.

        Each submission is paired with those before it that still matter to it: the last ones that
        write an element, and those that read it since.  What follows from pairs that are here, as
        when all elements that two submissions share are written by a third one between them, is
        not repeated.
        """
        return self.plan.dependences

    @property
    def promotions(self) -> tuple[PromotionDecision, ...]:
        """Where each buffer that was flagged for promotion lives, and why."""
        return self.plan.promotions

    @property
    def recomputed(self) -> tuple[ReportedRecomputation, ...]:
        """The temporaries whose elements are computed anew where they are read."""
        tiles = {
            s: (stage.tiling.tile, part.items)
            for stage in self.plan.stages
            if stage.tiling is not None
            for part in stage.tiling.parts[:-1]
            for s in part.submissions
        }
        found = []
        for r in self.plan.recomputed:
            array = self.submissions[r.producer].arguments[r.argument]
            assert isinstance(array, ArrayArgument)
            accesses = len(r.consumers) + (not r.stored)
            saved = prod(array.shape) * array.dtype.nbytes * accesses
            tile, computed = tiles.get(r.producer, (None, None))
            found.append(
                ReportedRecomputation(
                    r.buffer, r.producer, r.consumers, r.halo, saved, tile, computed, r.stored
                )
            )
        return tuple(found)

    @property
    def recomputed_share(self) -> float:
        """How many more scalar operations the launches do than the submissions one by one, as a
        part of the latter; 0 where nothing is computed anew."""
        if not self.plan.recomputed:
            return 0.0
        from fusionq.planning.list_work import launch_operations
        from fusionq.planning.work import work_of

        done = sum(launch_operations(self.submissions, stage) for stage in self.plan.stages)
        return done / max(sum(map(work_of, self.submissions)), 1.0) - 1.0

    @property
    def fallback(self) -> str | None:
        """Why the list did not run as asked; None if it did."""
        return self.plan.fallback

    @property
    def choice(self) -> str | None:
        """On what grounds a persistent kernel was chosen or not, or what ``tune`` measured; None
        where there was no choice."""
        choice = self.plan.choice
        if choice is None or not self.plan.measured:
            return choice
        return f"{choice} ({_MEASURED_WORDS[self.cache]})"

    @property
    @room_for_recursion("a kernel of the list")
    def source(self) -> str:
        """The kernel of each launch as readable Python."""
        kernels = [print_kernel(stage.numbered_kernel).strip() for stage in self.plan.stages]
        return "\n\n".join(kernels) + "\n"

    @property
    def device_source(self) -> str:
        """The source of each launch in the device's language."""
        return "\n\n".join(source.strip() for source in self.device_sources) + "\n"

    @property
    def advice(self) -> tuple[str, ...]:
        """What would have to change for more of the list to share a launch."""
        return advice(self.plan)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the kernels, such as types that were widened so that paths agree, and
        which commands did not join the list, and why.  Each with its file and line."""
        of_kernels = (note for s in self.submissions for note in s.notes)
        return tuple(dict.fromkeys([*of_kernels, *self.left_out]))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-able values; times in seconds."""
        return {
            "strategy": self.strategy,
            "headline": self.headline,
            "stages": [
                {
                    "submissions": list(stage.submissions),
                    "kernels": [asdict(kernel) for kernel in stage.kernels],
                    "boundary": stage.boundary,
                    "work_group": stage.work_group,
                    "work_group_chosen": stage.work_group_chosen,
                    "barriers": stage.barriers,
                    "inserted_barriers": [asdict(barrier) for barrier in stage.inserted],
                    "tiled_stages": [asdict(tiled) for tiled in stage.tiled],
                    "side_by_side": [list(part) for part in stage.side_by_side],
                    "loop_bounds": list(stage.loop_bounds),
                    "inside_rows": list(stage.inside_rows),
                    "divisors": list(stage.divisors),
                    "order": list(stage.order),
                    "items_at_once": list(stage.items_at_once),
                    "vectors_at_once": stage.vectors_at_once,
                    "one_by_one": stage.one_by_one,
                    "rings": None if stage.rings is None else asdict(stage.rings),
                }
                for stage in self.stages
            ],
            "dependences": [asdict(d) for d in self.dependences],
            "promotions": [asdict(p) for p in self.promotions],
            "recomputed": [asdict(r) for r in self.recomputed],
            "recomputed_share": self.recomputed_share,
            "fallback": self.fallback,
            "choice": self.choice,
            "advice": list(self.advice),
            "notes": list(self.notes),
            "cache": self.cache,
            "timings_seconds": dict(self.timings),
            "source": self.source,
            "device_source": self.device_source,
        }

    def _submitted(self, index: int) -> SubmittedKernel:
        submission = self.submissions[index]
        return SubmittedKernel(index, submission.name, str(submission.range), submission.span)

    def _fixes_groups(self, stage: StagePlan) -> bool:
        return any(isinstance(self.submissions[s].range, NdRange) for s in stage.submissions)

    def _inserted(
        self, stage: StagePlan, by_consumer: Mapping[int, Sequence[Dependence]]
    ) -> tuple[InsertedBarrier, ...]:
        """The barriers between submissions, each with the dependence that needs it."""
        if stage.tiling is not None:
            first, *others = (part.submissions for part in stage.tiling.parts)
            done, tiled = set(first), []
            for members in others:
                new = (s for s in members if s not in done)
                tiled.append(InsertedBarrier(next(new, members[-1]), _OF_TILES))
                done.update(members)
            return tuple(tiled)
        found, since = [], 0
        for before in barriers_between(stage):
            needed = [
                d for d in by_consumer[before] if d.producer >= since and d.scope == "GROUP"
            ]
            reason = "; ".join(
                f"{d.kind} of {d.buffer}, {_WORDS[d.kind].format(d.producer)}" for d in needed
            )
            found.append(InsertedBarrier(before, reason or "barriers='all' asks for it"))
            since = before
        return tuple(found)


def counted(number: int, noun: str) -> str:
    """Such as ``3 barriers``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _tiled(stage: StagePlan, schedule: Schedule | None) -> tuple[ReportedTiledStage, ...]:
    if not stage.inner:
        return ()
    body = stage.kernel.body[0]
    assert isinstance(body, Persistent)
    found = []
    reads = [ReadAhead({}, {})] * len(body.stages)
    if schedule is not None and schedule.reads_ahead:
        reads = read_ahead(body)
    for use, members, boundary, ahead in zip(
        body.stages, stage.inner, stage.inner_boundaries, reads, strict=True
    ):
        waits = []
        for producer, wait in zip(use.producers, body.codes[use.code].waits, strict=True):
            items = (
                "all"
                if wait.bounds is None
                else ", ".join(f"{print_expr(a)} to {print_expr(b)}" for a, b in wait.bounds)
            )
            waits.append((producer, items))
        own, why = _streamed(body, use.code, None if schedule is None else schedule.streams)
        asked, others = tuple(ahead.boxes), tuple(ahead.reasons.items())
        if own:  # which those that fill rings ask for
            asked, others = (), ()
        found.append(
            ReportedTiledStage(members, tuple(waits), boundary, asked, others, own, why)
        )
    return tuple(found)


def _rings(schedule: Schedule | None) -> ReportedRings | None:
    rings = None if schedule is None else schedule.rings
    if rings is None:
        return None
    return ReportedRings(rings.count, rings.slots, rings.slot_bytes, rings.bytes_in_flight)


def _streamed(
    body: Persistent, code: int, streams: Streams | None
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The arrays of a code that are streamed, and why others are not."""
    if streams is None:
        return (), ()
    number = code_bodies(body)[code]
    rows = [row.array for loop in streams.loops.get(number, ()) for row in loop.rows]
    reasons = streams.reasons.get(number, {})
    return tuple(dict.fromkeys(rows)), tuple(reasons.items())


_MEASURED_WORDS = {
    "miss": "measured now", "memory": "remembered", "disk": "remembered on disk",
}  # fmt: skip

_OF_TILES = "it reads elements that other work-items of its work-group have computed"
_WORDS = {
    "RAW": "which [{}] writes in the same work-group",
    "WAR": "which [{}] reads in the same work-group",
    "WAW": "which [{}] writes in the same work-group",
}

def barriers_between(stage: StagePlan) -> tuple[int, ...]:
    """The submissions of a launch before which a barrier stands, by their index."""
    parts = side_by_side(stage.kernel.body)
    bodies = (stage.kernel.body,) if parts is None else parts.bodies
    return tuple(s for body in bodies for s in _barriers_between(stage, body))


def _barriers_between(stage: StagePlan, body: Sequence[Stmt]) -> Iterator[int]:
    waiting = False
    for stmt in body:
        if isinstance(stmt, Barrier):
            waiting = True
        elif waiting:
            block = next((b for b in statements((stmt,)) if isinstance(b, Block)), None)
            number = None if block is None else number_in(block.label)
            if number is not None:
                yield stage.submissions[number]
                waiting = False
