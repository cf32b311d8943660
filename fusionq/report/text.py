"""A report as text: lines of pieces, each with its style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from fusionq.planning.plan import Dependence
from fusionq.report.advice import promotion_advice
from fusionq.report.model import ReportModel, Stage, counted

Line: TypeAlias = list[tuple[str, str]]

MOST_SHOWN = 40
"""Dependences that the text shows; a list of many steps has thousands."""

_CACHE_WORDS = {"miss": "made new", "memory": "from the cache in memory", "disk": "from disk"}

_GOOD = ("fused", "megakernel", "NONE", "ITEM", "GROUP", "private", "local")


def lines(report: ReportModel) -> Iterator[Line]:
    """The report, line by line."""
    yield [
        ("fusionq: ", ""),
        (report.strategy, _style(report.strategy)),
        (f", {report.headline}", ""),
    ]
    yield [(f"  plan: {_CACHE_WORDS[report.cache]}{_times(report.timings)}", "dim")]
    for number, stage in enumerate(report.stages):
        yield from _stage_lines(report, number, stage)
    if report.dependences:
        yield []
        yield [("Dependences", "bold")]
        for dependence in report.dependences[:MOST_SHOWN]:
            yield from _dependence_lines(report, dependence)
        if len(report.dependences) > MOST_SHOWN:
            more = len(report.dependences) - MOST_SHOWN
            yield [(f"  … and {more} more; report.dependences has all", "dim")]
    if report.promotions:
        yield []
        yield [("Promotions", "bold")]
        for p in report.promotions:
            yield [(f"  {p.buffer}: ", ""), (p.scope, _style(p.scope)), (f" — {p.reason}", "")]
            remedy = promotion_advice(p)
            if remedy is not None:
                yield [("    to change that: ", "yellow"), (remedy, "")]
    if report.choice:
        yield []
        yield [("Choice: ", "bold"), (report.choice, "")]
    if report.fallback and all(report.fallback != stage.boundary for stage in report.plan.stages):
        yield []
        yield [("Fallback: ", "bold yellow"), (report.fallback, "")]
    if report.advice:
        yield []
        yield [("To fuse more", "bold")]
        for text in report.advice:
            yield [(f"  {text}", "")]


def _stage_lines(report: ReportModel, number: int, stage: Stage) -> Iterator[Line]:
    yield []
    details = f" of {counted(len(stage.kernels), 'submission')}"
    if stage.work_group is not None:
        details += f", work-groups of {' × '.join(map(str, stage.work_group))}"
        details += " (chosen by fusionq)" if stage.work_group_chosen else ""
    if stage.barriers:
        details += f", {counted(stage.barriers, 'barrier')}"
    yield [(f"Launch {number}", "bold"), (details, "")]
    if stage.boundary:
        boundary = without_reasons(stage.boundary, report.dependences)
        yield [("  apart because: ", "yellow"), (boundary, "")]
    if stage.tiled:
        yield from _tiled_lines(stage)
        return
    inserted = {barrier.before: barrier.reason for barrier in stage.inserted}
    name_width = max((len(_name(report, k.index)) for k in stage.kernels), default=0)
    range_width = max((len(k.range) for k in stage.kernels), default=0)
    for k in stage.kernels:
        if k.index in inserted:
            yield [("  ── barrier: ", "magenta"), (inserted[k.index], "")]
        yield [
            (f"  {_name(report, k.index):<{name_width}}  {k.range:<{range_width}}  ", ""),
            (f"{k.span}", "cyan"),
            (f"  {k.span.text.strip()}", "dim"),
        ]


def _tiled_lines(stage: Stage) -> Iterator[Line]:
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


def _dependence_lines(report: ReportModel, d: Dependence) -> Iterator[Line]:
    yield [
        (f"  {d.buffer}: {_name(report, d.producer)} → {_name(report, d.consumer)}  {d.kind} ", ""),
        (d.scope, _style(d.scope)),
        (f" — {d.reason}", ""),
    ]
    width = max(len(str(d.producer_span)), len(str(d.consumer_span)))
    for span in (d.producer_span, d.consumer_span):
        yield [(f"    {span!s:<{width}}", "cyan"), (f"  {span.text.strip()}", "dim")]


def without_reasons(boundary: str, dependences: Sequence[Dependence]) -> str:
    """Why a launch is apart, without what the list of dependences says anyway."""
    for d in dependences:
        boundary = boundary.replace(f" ({d.reason})", "")
    return boundary


def _name(report: ReportModel, index: int) -> str:
    return f"[{index}] {report.submissions[index].name}"


def _style(word: str) -> str:
    return "bold green" if word in _GOOD else "bold yellow"


def _times(timings: dict[str, float]) -> str:
    return "".join(f" · {phase} {seconds * 1e3:.2f} ms" for phase, seconds in timings.items())
