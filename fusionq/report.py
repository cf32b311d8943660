"""The report of one fusion: what ran together, what did not, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fusionq.analysis.submission import Submission
from fusionq.ir.nodes import Barrier, Span
from fusionq.ir.printer import print_kernel
from fusionq.ir.walk import statements
from fusionq.planning.plan import Dependence, Plan, PromotionDecision

if TYPE_CHECKING:
    from rich.text import Text

CacheOutcome: TypeAlias = Literal["miss", "memory", "disk"]

_Line: TypeAlias = list[tuple[str, str]]
"""One line of text as (text, rich style) pieces."""

_ADVICE = {
    "GROUP": (
        "work-items of one work-group exchange elements here, which takes a barrier. The "
        "kernels fuse for certain if every work-item reads only elements that it wrote itself"
    ),
    "GLOBAL": (
        "work-items of different work-groups exchange elements here, which takes a launch "
        "boundary. The kernels fuse if every work-item touches only its own elements: the "
        "same index expression over the same range in both"
    ),
    "UNKNOWN": (
        "the access cannot be analysed. The kernels may fuse if its index is a sum of work-item "
        "ids, loop variables, sizes and integer scalars with constant factors"
    ),
}


@dataclass(frozen=True, slots=True)
class SubmittedKernel:
    """One submission as reports show it."""

    index: int
    kernel: str
    range: str
    span: Span
    """The line that submitted it."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Submissions that ran as one launch.

    ``boundary`` says why the stage did not join the one before it; None for the first.
    ``work_group`` is the size in each dimension where the launch depends on it; ``barriers``
    counts the work-group barriers in the kernel.
    """

    submissions: tuple[int, ...]
    kernels: tuple[SubmittedKernel, ...]
    boundary: str | None
    work_group: tuple[int, ...] | None
    barriers: int


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
    def strategy(self) -> Literal["fused", "sequence", "unfused"]:
        """``fused`` (one launch), ``sequence`` (several) or ``unfused`` (one a submission)."""
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
        stage_of = {
            index: number
            for number, stage in enumerate(self.plan.stages)
            for index in stage.submissions
        }
        lines = []
        for d in self.dependences:
            if d.scope in _ADVICE and stage_of.get(d.producer) != stage_of.get(d.consumer):
                where = f"{d.buffer} ({d.producer_span} and {d.consumer_span})"
                lines.append(f"{where}: {_ADVICE[d.scope]}.")
        return tuple(dict.fromkeys(lines))

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
                    "barriers": stage.barriers,
                }
                for stage in self.stages
            ],
            "dependences": [asdict(d) for d in self.dependences],
            "promotions": [asdict(p) for p in self.promotions],
            "fallback": self.fallback,
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
        return SubmittedKernel(index, submission.ir.name, str(submission.range), submission.span)

    def _name(self, index: int) -> str:
        return f"[{index}] {self.submissions[index].ir.name}"

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
            for dependence in self.dependences:
                yield from self._dependence_lines(dependence)
        if self.promotions:
            yield []
            yield [("Promotions", "bold")]
            for p in self.promotions:
                yield [(f"  {p.buffer}: ", ""), (p.scope, _style(p.scope)), (f" — {p.reason}", "")]
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
        if stage.barriers:
            details += f", {_count(stage.barriers, 'barrier')}"
        yield [(f"Launch {number}", "bold"), (details, "")]
        if stage.boundary:
            yield [("  apart because: ", "yellow"), (stage.boundary, "")]
        name_width = max((len(self._name(k.index)) for k in stage.kernels), default=0)
        range_width = max((len(k.range) for k in stage.kernels), default=0)
        for k in stage.kernels:
            yield [
                (f"  {self._name(k.index):<{name_width}}  {k.range:<{range_width}}  ", ""),
                (f"{k.span}", "cyan"),
                (f"  {k.span.text.strip()}", "dim"),
            ]

    def _dependence_lines(self, d: Dependence) -> Iterator[_Line]:
        yield [
            (f"  {d.buffer}: {self._name(d.producer)} → {self._name(d.consumer)}  {d.kind} ", ""),
            (d.scope, _style(d.scope)),
            (f" — {d.reason}", ""),
        ]
        width = max(len(str(d.producer_span)), len(str(d.consumer_span)))
        for span in (d.producer_span, d.consumer_span):
            yield [(f"    {span!s:<{width}}", "cyan"), (f"  {span.text.strip()}", "dim")]


_CACHE_WORDS = {"miss": "made new", "memory": "from the cache in memory", "disk": "from disk"}

_GOOD = ("fused", "NONE", "ITEM", "private", "local")


def _style(word: str) -> str:
    return "bold green" if word in _GOOD else "bold yellow"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _times(timings: dict[str, float]) -> str:
    return "".join(f" · {phase} {seconds * 1e3:.2f} ms" for phase, seconds in timings.items())
