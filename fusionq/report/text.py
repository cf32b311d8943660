"""A report as text: lines of pieces, each with its style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from fusionq.base.span import Span
from fusionq.planning.plan import PromotionDecision
from fusionq.report.advice import promotion_advice
from fusionq.report.model import (
    ReportedStage,
    ReportedTiledStage,
    ReportModel,
    SubmittedKernel,
    counted,
)
from fusionq.report.patterns import DependencePattern, dependence_patterns
from fusionq.report.progressions import progressions, relative, sum_of, written

Line: TypeAlias = list[tuple[str, str]]

MOST_SHOWN = 20
"""Patterns of dependences that the text shows."""
MOST_LETTERS = 160
"""Of an expression that says what a tile waits for."""

_CACHE_WORDS = {"miss": "made new", "memory": "from the cache in memory", "disk": "from disk"}

_GOOD = ("fused", "megakernel", "overlap", "NONE", "ITEM", "GROUP", "private", "local")


def lines(report: ReportModel) -> Iterator[Line]:
    """The report, line by line."""
    yield [
        ("fusionq: ", ""),
        (report.strategy, _style(report.strategy)),
        (f", {report.headline}", ""),
    ]
    yield [(f"  plan: {_CACHE_WORDS[report.cache]}{_times(report.timings)}", "dim")]
    yield from _launches(report)
    if report.dependences:
        yield []
        yield [("Dependences", "bold")]
        yield from _dependences(report)
    if report.promotions:
        yield []
        yield [("Promotions", "bold")]
        yield from _promotions(report)
    if report.recomputed:
        yield []
        share = report.recomputed_share
        compared = f"{abs(share):.0%} {'more' if share >= 0 else 'fewer'} operations"
        yield [("Computed anew", "bold"), (f": {compared} than one submission by one", "")]
        yield from _recomputed(report)
    if report.choice:
        yield []
        yield [("Choice: ", "bold"), (report.choice, "")]
    if report.fallback and all(report.fallback != stage.boundary for stage in report.plan.stages):
        yield []
        yield [("Fallback: ", "bold yellow"), (report.fallback, "")]
    if report.notes:
        yield []
        yield [("Notes", "bold")]
        for text in report.notes:
            yield [(f"  {text}", "")]
    if report.advice:
        yield []
        yield [("To fuse more", "bold")]
        for text in report.advice:
            yield [(f"  {text}", "")]


@dataclass(frozen=True)
class _Numbering:
    """How submissions are called: by their numbers, or counted from ``base``, which is ``k``."""

    base: int | None = None

    def of(self, submission: int) -> str:
        """A submission's number."""
        return str(submission) if self.base is None else sum_of("k", submission - self.base)

    def within(self, text: str) -> str:
        """``text`` with the submissions that it names."""
        return text if self.base is None else relative(text, self.base, "k")

    def several(self, submissions: range) -> tuple[str, str]:
        """What submissions of a progression are called, and the range of what varies."""
        if len(submissions) == 1:
            return self.of(submissions[0]), ""
        if self.base is None:
            return "k", f", k = {written(submissions)}"
        first = submissions[0] - self.base
        inner = range(first, submissions[-1] - self.base + 1, submissions.step)
        return "k + j", f", j = {written(inner)}"


def _launches(report: ReportModel) -> Iterator[Line]:
    """Each launch; those that are alike but for the submissions' numbers together."""
    stages, reasons = report.stages, frozenset(d.reason for d in report.dependences)
    alike: dict[str, list[int]] = {}
    for number, stage in enumerate(stages):
        lines = _launch(report, stage, _Numbering(stage.submissions[0]), reasons)
        alike.setdefault(_plain(lines), []).append(number)
    groups = [
        part
        for numbers in alike.values()
        for group in progressions(numbers)
        for part in _evenly(group, [stages[number].submissions[0] for number in group])
    ]
    for group, first in sorted(groups, key=lambda part: part[0][0]):
        stage = stages[group[0]]
        numbering = _Numbering() if len(group) == 1 else _Numbering(stage.submissions[0])
        which, of = f"Launch {group[0]}", f" of {counted(len(stage.kernels), 'submission')}"
        if len(group) > 1:
            which, of = f"Launches {written(group)}", f"{of} each, k = {written(first)}"
        yield []
        yield [(which, "bold"), (of + _details(stage), "")]
        yield from _launch(report, stage, numbering, reasons)


def _evenly(launches: range, first: Sequence[int]) -> Iterator[tuple[range, range]]:
    """``launches`` with their first submissions; one by one where these make no progression."""
    (*parts,) = progressions(first)
    if len(parts) == 1 and len(parts[0]) == len(launches):
        yield launches, parts[0]
        return
    for launch, submission in zip(launches, first, strict=True):
        yield range(launch, launch + 1), range(submission, submission + 1)


def _details(stage: ReportedStage) -> str:
    details = ""
    if stage.work_group is not None:
        details += f", work-groups of {' × '.join(map(str, stage.work_group))}"
        details += " (chosen by fusionq)" if stage.work_group_chosen else ""
    if stage.barriers:
        details += f", {counted(stage.barriers, 'barrier')}"
    return details


def _launch(
    report: ReportModel, stage: ReportedStage, numbering: _Numbering, reasons: Iterable[str]
) -> list[Line]:
    """Why a launch is apart, and what it holds."""
    found: list[Line] = []
    if stage.boundary:
        boundary = numbering.within(without_reasons(stage.boundary, reasons))
        found.append([("  apart because: ", "yellow"), (boundary, "")])
    if stage.side_by_side:
        parts = (" ".join(f"[{numbering.of(s)}]" for s in part) for part in stage.side_by_side)
        found.append([("  side by side: ", "green"), (" | ".join(parts), "")])
    for what, conditions in (
        ("bounds of the loop over work-items", stage.loop_bounds),
        ("not asked inside of rows", stage.inside_rows),
        ("divided by once for a segment of a row", stage.divisors),
    ):
        if conditions:
            found.append([(f"  {what}: ", "green"), (shortened(", ".join(conditions)), "")])
    if stage.order:
        found.append([("  neighbours in dimension: ", "green"), (str(stage.order[-1]), "")])
    if stage.items_at_once:
        neighbours = f"{' × '.join(map(str, stage.items_at_once))} neighbours together"
        found.append([("  each work-item does: ", "green"), (neighbours, "")])
    if stage.vectors_at_once > 1:
        vectors = f"{stage.vectors_at_once} vectors of a row together"
        found.append([("  each work-group does: ", "green"), (vectors, "")])
    if stage.one_by_one:
        found.append([("  work-items along rows: ", "green"), ("without vectors", "")])
    if stage.rings is not None:
        rings = stage.rings
        slots = f"{counted(rings.rings, 'ring')} of {rings.slots} slots of {rings.slot_bytes:,}"
        way = f"{rings.bytes_in_flight:,} on their way at once"
        found.append([("  each worker has: ", "green"), (f"{slots} bytes, {way}", "")])
    return [*found, *(_tiled_lines(stage) if stage.tiled else _members(report, stage, numbering))]


def _members(report: ReportModel, stage: ReportedStage, numbering: _Numbering) -> Iterator[Line]:
    """The submissions of a launch and the barriers between them; those that repeat in one line."""
    inserted = {barrier.before: barrier.reason for barrier in stage.inserted}
    alike: dict[tuple[object, ...], list[int]] = {}
    kernels = {k.index: k for k in stage.kernels}
    for index, k in kernels.items():
        barrier = inserted.get(index)
        reason = None if barrier is None else relative(barrier, index, "k")
        alike.setdefault((k.kernel, k.range, k.span, reason), []).append(index)
    position = {index: place for place, index in enumerate(kernels)}
    groups = [group for numbers in alike.values() for group in progressions(numbers)]
    groups.sort(key=lambda group: position[group[0]])
    names = {}
    for group in groups:
        which, where = numbering.several(group)
        names[group] = f"[{which}] {report.submissions[group[0]].name}{where}"
    name_width = max((len(name) for name in names.values()), default=0)
    range_width = max((len(k.range) for k in stage.kernels), default=0)
    for group in groups:
        k = kernels[group[0]]
        if k.index in inserted:
            which, _ = numbering.several(group)
            several = len(group) > 1
            reason = relative(inserted[k.index], k.index, which) if several else (
                numbering.within(inserted[k.index])
            )  # fmt: skip
            text = f"  ── barrier before each of these {len(group)}: " if several else (
                "  ── barrier: "
            )  # fmt: skip
            yield [(text, "magenta"), (reason, "")]
        yield [
            (f"  {names[group]:<{name_width}}  {k.range:<{range_width}}  ", ""),
            (f"{k.span}", "cyan"),
            (f"  {k.span.text.strip()}", "dim"),
        ]


def _tiled_lines(stage: ReportedStage) -> Iterator[Line]:
    """The stages of a persistent kernel; those that do and wait alike in one line."""
    kernels = {k.index: k for k in stage.kernels}
    alike: dict[tuple[str, str, str, str, str, Span], list[int]] = {}
    for number, tiled in enumerate(stage.tiled):
        members = [kernels[s] for s in tiled.submissions]
        waits = "; ".join(
            f"{_stage_before(number - producer)}, items {shortened(items)}"
            for producer, items in tiled.waits
        )
        ahead = _ahead(tiled), _streamed(tiled)
        key = _kernel_names(members), waits, *ahead, members[0].range, members[0].span
        alike.setdefault(key, []).append(number)
    groups = [(group, key) for key, numbers in alike.items() for group in progressions(numbers)]
    for group, key in sorted(groups, key=lambda found: found[0][0]):
        names, waits, asked, streamed, range_, span = key
        which = f"stage {group[0]}" if len(group) == 1 else f"stages {written(group)}"
        yield [
            (f"  {which}: {names}  {range_}  ", ""),
            (f"{span}", "cyan"),
            (f"  {span.text.strip()}", "dim"),
        ]
        if waits:
            yield [("    each tile waits for ", "magenta"), (waits, "")]
        if asked:
            yield [("    before that it reads ahead ", "magenta"), (asked, "")]
        if streamed:
            yield [("    ahead of all waits come rows of ", "magenta"), (streamed, "")]


def _ahead(stage: ReportedTiledStage) -> str:
    """What a stage's tiles read ahead, and why not more; nothing where they do not wait."""
    if not stage.waits or not (stage.ahead or stage.not_ahead):
        return ""
    left_out = [f"{name} ({reason})" for name, reason in stage.not_ahead]
    read = ", ".join(stage.ahead) or "nothing"
    return read + (f"; not {', '.join(left_out)}" if left_out else "")


def _streamed(stage: ReportedTiledStage) -> str:
    """The arrays of which rows are streamed to a stage's tiles, and why others are not."""
    if not (stage.streamed or stage.not_streamed):
        return ""
    left_out = [f"{name} ({reason})" for name, reason in stage.not_streamed]
    read = ", ".join(stage.streamed) or "nothing"
    return read + (f"; not {', '.join(left_out)}" if left_out else "")


def _stage_before(distance: int) -> str:
    return "the stage before" if distance == 1 else f"the stage {distance} stages before"


def _kernel_names(members: Sequence[SubmittedKernel]) -> str:
    """The kernels' names; of several in a row that are the same, their number and the name."""
    runs = [(name, len(list(same))) for name, same in groupby(k.kernel for k in members)]
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in runs)


def _dependences(report: ReportModel) -> Iterator[Line]:
    """Every dependence, those that repeat as one pattern."""
    patterns = dependence_patterns(report.dependences, lambda s: report.submissions[s].name)
    for pattern in patterns[:MOST_SHOWN]:
        yield from _dependence_lines(report, pattern)
    more = sum(pattern.count for pattern in patterns[MOST_SHOWN:])
    if more:
        yield [(f"  … and {more} more; report.dependences has all", "dim")]


def _dependence_lines(report: ReportModel, pattern: DependencePattern) -> Iterator[Line]:
    d = pattern.first
    producer, consumer = (report.submissions[s].name for s in (d.producer, d.consumer))
    where = f", {pattern.where}" if pattern.where else ""
    yield [
        (f"  {d.buffer}: [{pattern.producer}] {producer} → [{pattern.consumer}] {consumer}", ""),
        (f"{where}  {d.kind} ", ""),
        (d.scope, _style(d.scope)),
        (f" — {d.reason}", ""),
    ]
    width = max(len(str(d.producer_span)), len(str(d.consumer_span)))
    for span in (d.producer_span, d.consumer_span):
        yield [(f"    {span!s:<{width}}", "cyan"), (f"  {span.text.strip()}", "dim")]


def _promotions(report: ReportModel) -> Iterator[Line]:
    """Where each flagged buffer went; buffers of which the same is to be said in one line."""
    alike: dict[tuple[str, int, str, str], list[PromotionDecision]] = {}
    for p in report.promotions:
        key = p.buffer, p.argument, p.scope, relative(p.reason, p.submission, "k")
        alike.setdefault(key, []).append(p)
    groups = [
        (group, next(p for p in same if p.submission == group[0]), key[3])
        for key, same in alike.items()
        for group in progressions(p.submission for p in same)
    ]
    position = {p: place for place, p in enumerate(report.promotions)}
    for group, p, reason in sorted(groups, key=lambda found: position[found[1]]):
        of = f" of [k], k = {written(group)}" if len(group) > 1 else ""
        said = reason if len(group) > 1 else p.reason
        yield [(f"  {p.buffer}{of}: ", ""), (p.scope, _style(p.scope)), (f" — {said}", "")]
        remedy = promotion_advice(p)
        if remedy is not None:
            yield [("    to change that: ", "yellow"), (remedy, "")]


def _recomputed(report: ReportModel) -> Iterator[Line]:
    """Each temporary that nobody waits for: who computes it anew, its halo, what that saves."""
    for r in report.recomputed:
        if r.tile is not None and r.computed is not None:
            of_each = (
                f"{_extents(r.computed)} elements a work-group, for a tile of {_extents(r.tile)}"
            )
        else:
            of_each = "; ".join(
                f"{_extents(halo)} elements a work-item of [{consumer}]"
                for consumer, halo in zip(r.consumers, r.halo, strict=True)
            )
        stored = "; stored by the work-groups that own its elements" if r.stored else ""
        yield [
            (f"  {r.buffer} of [{r.producer}]: ", ""),
            (f"{of_each}; {r.bytes_saved:,} bytes less to and from memory{stored}", ""),
        ]


def _extents(extents: Iterable[int]) -> str:
    return " x ".join(map(str, extents))


def without_reasons(boundary: str, reasons: Iterable[str]) -> str:
    """Why a launch is apart, without the ``reasons`` that the list of dependences says anyway."""
    for reason in reasons:
        boundary = boundary.replace(f" ({reason})", "")
    return boundary


def shortened(text: str) -> str:
    """``text`` up to where a line would be too long to be read."""
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def _plain(lines: Iterable[Line]) -> str:
    return "\n".join("".join(text for text, _ in line) for line in lines)


def _style(word: str) -> str:
    return "bold green" if word in _GOOD else "bold yellow"


def _times(timings: Mapping[str, float]) -> str:
    return "".join(f" · {phase} {seconds * 1e3:.2f} ms" for phase, seconds in timings.items())
