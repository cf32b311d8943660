"""The report of one fusion: what ran together, what did not, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fusionq.advice import advice, promotion_advice
from fusionq.analysis.submission import Submission
from fusionq.ir.nodes import Barrier, Block, Kernel, Persistent, Span
from fusionq.ir.printer import print_expr, print_kernel
from fusionq.ir.walk import statements
from fusionq.language.ranges import NdRange
from fusionq.planning.plan import Dependence, Plan, PromotionDecision, StagePlan

if TYPE_CHECKING:
    from rich.text import Text

CacheOutcome: TypeAlias = Literal["miss", "memory", "disk"]

_Line: TypeAlias = list[tuple[str, str]]
"""One line of text as (text, rich style) pieces."""


@dataclass(frozen=True, slots=True)
class SubmittedKernel:
    """One submission as reports show it."""

    index: int
    kernel: str
    range: str
    span: Span
    """The line that submitted it."""


@dataclass(frozen=True, slots=True)
class InsertedBarrier:
    """A work-group barrier that fusionq put before submission ``before``, and why."""

    before: int
    reason: str


@dataclass(frozen=True, slots=True)
class TiledStage:
    """A stage of a persistent kernel: its submissions, the earlier stages whose tiles its tiles
    wait for, and which of their work-items each time."""

    submissions: tuple[int, ...]
    waits: tuple[tuple[int, str], ...]
    boundary: str | None


@dataclass(frozen=True, slots=True)
class Stage:
    """Submissions that ran as one launch.

    ``boundary`` says why the stage did not join the one before it; None for the first.
    ``work_group`` is the size in each dimension where the launch depends on it; ``barriers``
    counts the work-group barriers in the kernel, the kernels' own and ``inserted``.
    ``work_group_chosen``: by fusionq, where no submission fixed it.  ``tiled``: of a persistent
    kernel, the stages inside it.
    """

    submissions: tuple[int, ...]
    kernels: tuple[SubmittedKernel, ...]
    boundary: str | None
    work_group: tuple[int, ...] | None
    barriers: int
    inserted: tuple[InsertedBarrier, ...] = ()
    work_group_chosen: bool = False
    tiled: tuple[TiledStage, ...] = ()


@dataclass(frozen=True)
class Report:
    """What became of a list of submissions.

    The same for a plan from the cache as for a fresh one, but for ``cache`` and ``timings``.
    ``print(report)`` gives plain text; rich consoles show it in colour.
    """

    plan: Plan
    submissions: tuple[Submission, ...]
    device_sources: tuple[str, ...]
    """The device source of each launch."""
    cache: CacheOutcome
    timings: dict[str, float]
    """Seconds by phase."""

    @classmethod
    def from_run(
        cls,
        plan: Plan,
        submissions: Sequence[Submission],
        device_sources: tuple[str, ...],
        cache: CacheOutcome,
        timings: dict[str, float],
    ) -> Report:
        """The report of ``submissions`` that ran by ``plan``; nothing is computed yet.

        ``device_sources`` has one text a stage; ``timings`` are seconds by phase.
        """
        return cls(plan, tuple(submissions), device_sources, cache, dict(timings))

    @property
    def strategy(self) -> Literal["fused", "megakernel", "sequence", "unfused"]:
        """``fused`` (one launch), ``megakernel`` (a persistent kernel whose work-groups wait for
        each other), ``sequence`` (several launches) or ``unfused`` (one a submission)."""
        return self.plan.strategy

    @property
    def headline(self) -> str:
        """Such as ``4 submissions → 1 kernel``."""
        return (
            f"{_count(len(self.submissions), 'submission')} → "
            f"{_count(len(self.plan.stages), 'kernel')}"
        )

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The launches, in order, with the submissions in each."""
        return tuple(
            Stage(
                stage.submissions,
                tuple(self._submitted(index) for index in stage.submissions),
                stage.boundary,
                stage.local_range,
                sum(isinstance(s, Barrier) for s in statements(stage.kernel.body)),
                self._inserted(stage),
                stage.local_range is not None and not self._fixes_groups(stage),
                _tiled(stage),
            )
            for stage in self.plan.stages
        )

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """Every ordered pair of submissions that share memory, with scope and reason."""
        return self.plan.dependences

    @property
    def promotions(self) -> tuple[PromotionDecision, ...]:
        """Where each buffer that was flagged for promotion lives, and why."""
        return self.plan.promotions

    @property
    def fallback(self) -> str | None:
        """Why the list did not run as asked; None if it did."""
        return self.plan.fallback

    @property
    def choice(self) -> str | None:
        """On what grounds a persistent kernel was chosen or not; None where none was possible."""
        return self.plan.choice

    @property
    def source(self) -> str:
        """The kernel of each launch as readable Python."""
        return "\n\n".join(print_kernel(stage.kernel).strip() for stage in self.plan.stages) + "\n"

    @property
    def device_source(self) -> str:
        """The source of each launch in the device's language."""
        return "\n\n".join(source.strip() for source in self.device_sources) + "\n"

    @property
    def advice(self) -> tuple[str, ...]:
        """What would have to change for more of the list to share a launch."""
        return advice(self.plan)

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
                }
                for stage in self.stages
            ],
            "dependences": [asdict(d) for d in self.dependences],
            "promotions": [asdict(p) for p in self.promotions],
            "fallback": self.fallback,
            "choice": self.choice,
            "advice": list(self.advice),
            "cache": self.cache,
            "timings_seconds": dict(self.timings),
            "source": self.source,
            "device_source": self.device_source,
        }

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self._lines())

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text("\n").join(Text.assemble(*line) for line in self._lines())

    def _submitted(self, index: int) -> SubmittedKernel:
        submission = self.submissions[index]
        return SubmittedKernel(index, submission.name, str(submission.range), submission.span)

    def _fixes_groups(self, stage: StagePlan) -> bool:
        return any(isinstance(self.submissions[s].range, NdRange) for s in stage.submissions)

    def _inserted(self, stage: StagePlan) -> tuple[InsertedBarrier, ...]:
        """The barriers between submissions, each with the dependence that needs it."""
        found, since = [], 0
        for before in barriers_between(stage.kernel):
            needed = [
                d
                for d in self.dependences
                if d.consumer == before and d.producer >= since and d.scope == "GROUP"
            ]
            reason = "; ".join(
                f"{d.kind} of {d.buffer}, {_WORDS[d.kind].format(d.producer)}" for d in needed
            )
            found.append(InsertedBarrier(before, reason or "barriers='all' asks for it"))
            since = before
        return tuple(found)

    def _name(self, index: int) -> str:
        return f"[{index}] {self.submissions[index].name}"

    def _lines(self) -> Iterator[_Line]:
        yield [
            ("fusionq: ", ""),
            (self.strategy, _style(self.strategy)),
            (f", {self.headline}", ""),
        ]
        yield [(f"  plan: {_CACHE_WORDS[self.cache]}{_times(self.timings)}", "dim")]
        for number, stage in enumerate(self.stages):
            yield from self._stage_lines(number, stage)
        if self.dependences:
            yield []
            yield [("Dependences", "bold")]
            for dependence in self.dependences[:MOST_SHOWN]:
                yield from self._dependence_lines(dependence)
            if len(self.dependences) > MOST_SHOWN:
                more = len(self.dependences) - MOST_SHOWN
                yield [(f"  … and {more} more; report.dependences has all", "dim")]
        if self.promotions:
            yield []
            yield [("Promotions", "bold")]
            for p in self.promotions:
                yield [(f"  {p.buffer}: ", ""), (p.scope, _style(p.scope)), (f" — {p.reason}", "")]
                remedy = promotion_advice(p)
                if remedy is not None:
                    yield [("    to change that: ", "yellow"), (remedy, "")]
        if self.choice:
            yield []
            yield [("Choice: ", "bold"), (self.choice, "")]
        if self.fallback and all(self.fallback != stage.boundary for stage in self.plan.stages):
            yield []
            yield [("Fallback: ", "bold yellow"), (self.fallback, "")]
        if self.advice:
            yield []
            yield [("To fuse more", "bold")]
            for text in self.advice:
                yield [(f"  {text}", "")]

    def _stage_lines(self, number: int, stage: Stage) -> Iterator[_Line]:
        yield []
        details = f" of {_count(len(stage.kernels), 'submission')}"
        if stage.work_group is not None:
            details += f", work-groups of {' × '.join(map(str, stage.work_group))}"
            details += " (chosen by fusionq)" if stage.work_group_chosen else ""
        if stage.barriers:
            details += f", {_count(stage.barriers, 'barrier')}"
        yield [(f"Launch {number}", "bold"), (details, "")]
        if stage.boundary:
            yield [("  apart because: ", "yellow"), (self._brief(stage.boundary), "")]
        if stage.tiled:
            yield from self._tiled_lines(stage)
            return
        inserted = {barrier.before: barrier.reason for barrier in stage.inserted}
        name_width = max((len(self._name(k.index)) for k in stage.kernels), default=0)
        range_width = max((len(k.range) for k in stage.kernels), default=0)
        for k in stage.kernels:
            if k.index in inserted:
                yield [("  ── barrier: ", "magenta"), (inserted[k.index], "")]
            yield [
                (f"  {self._name(k.index):<{name_width}}  {k.range:<{range_width}}  ", ""),
                (f"{k.span}", "cyan"),
                (f"  {k.span.text.strip()}", "dim"),
            ]

    def _tiled_lines(self, stage: Stage) -> Iterator[_Line]:
        """The stages of a persistent kernel; runs of stages that wait alike in one line."""
        kernels = {k.index: k for k in stage.kernels}
        described: list[tuple[str, str, int, int]] = []
        for number, tiled in enumerate(stage.tiled):
            names = ", ".join(kernels[s].kernel for s in tiled.submissions)
            waits = "; ".join(
                f"the stage {number - producer} before, items {items}"
                for producer, items in tiled.waits
            )
            if described and described[-1][:2] == (names, waits):
                described[-1] = (names, waits, described[-1][2], number)
            else:
                described.append((names, waits, number, number))
        for names, waits, first, last in described:
            which = f"stage {first}" if first == last else f"stages {first} to {last}"
            first_kernel = kernels[stage.tiled[first].submissions[0]]
            yield [
                (f"  {which}: {names}  {first_kernel.range}  ", ""),
                (f"{first_kernel.span}", "cyan"),
                (f"  {first_kernel.span.text.strip()}", "dim"),
            ]
            if waits:
                yield [("    each tile waits for ", "magenta"), (waits, "")]

    def _brief(self, boundary: str) -> str:
        """``boundary`` without what the list of dependences says anyway."""
        for d in self.dependences:
            boundary = boundary.replace(f" ({d.reason})", "")
        return boundary

    def _dependence_lines(self, d: Dependence) -> Iterator[_Line]:
        yield [
            (f"  {d.buffer}: {self._name(d.producer)} → {self._name(d.consumer)}  {d.kind} ", ""),
            (d.scope, _style(d.scope)),
            (f" — {d.reason}", ""),
        ]
        width = max(len(str(d.producer_span)), len(str(d.consumer_span)))
        for span in (d.producer_span, d.consumer_span):
            yield [(f"    {span!s:<{width}}", "cyan"), (f"  {span.text.strip()}", "dim")]


def _tiled(stage: StagePlan) -> tuple[TiledStage, ...]:
    if not stage.inner:
        return ()
    body = stage.kernel.body[0]
    assert isinstance(body, Persistent)
    found = []
    for use, members, boundary in zip(
        body.stages, stage.inner, stage.inner_boundaries, strict=True
    ):
        waits = []
        for producer, wait in zip(use.producers, body.codes[use.code].waits, strict=True):
            items = (
                "all"
                if wait.bounds is None
                else ", ".join(f"{print_expr(a)} to {print_expr(b)}" for a, b in wait.bounds)
            )
            waits.append((producer, items))
        found.append(TiledStage(members, tuple(waits), boundary))
    return tuple(found)


MOST_SHOWN = 40
"""Dependences that the text shows; a list of many steps has thousands."""

_CACHE_WORDS = {"miss": "made new", "memory": "from the cache in memory", "disk": "from disk"}

_WORDS = {
    "RAW": "which [{}] writes in the same work-group",
    "WAR": "which [{}] reads in the same work-group",
    "WAW": "which [{}] writes in the same work-group",
}

_GOOD = ("fused", "megakernel", "NONE", "ITEM", "GROUP", "private", "local")


def barriers_between(kernel: Kernel) -> tuple[int, ...]:
    """The submissions of a fused kernel before which a barrier stands, by their index."""
    found = []
    waiting = False
    for stmt in kernel.body:
        if isinstance(stmt, Barrier):
            waiting = True
        elif waiting:
            block = next((b for b in statements((stmt,)) if isinstance(b, Block)), None)
            if block is not None:
                found.append(int(block.label.partition(":")[0]))
                waiting = False
    return tuple(found)


def _style(word: str) -> str:
    return "bold green" if word in _GOOD else "bold yellow"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _times(timings: dict[str, float]) -> str:
    return "".join(f" · {phase} {seconds * 1e3:.2f} ms" for phase, seconds in timings.items())
