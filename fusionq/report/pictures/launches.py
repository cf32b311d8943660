"""The launches of a fusion as boxes: their submissions, barriers and promoted buffers, and lines
for the dependences between submissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusionq.analysis.scope import Scope
from fusionq.analysis.submission import ArrayArgument
from fusionq.planning.plan import Dependence
from fusionq.report.model import ReportedStage, ReportModel, SubmittedKernel
from fusionq.report.pictures.page import (
    BLUE,
    DIM,
    GREEN,
    INK,
    MARGIN,
    ORANGE,
    PURPLE,
    VERMILLION,
    WIDTH,
    Page,
    fitted,
    numbered,
    wrapped,
)
from fusionq.report.text import without_reasons

MOST_INCHES = 14.0
"""The picture's height; submissions that do not fit are left out."""
MOST_NEEDS = 6
"""Dependences that are drawn of one submission, those on the latest submissions."""

SCOPES: dict[Scope, tuple[str, str]] = {
    "ITEM": (GREEN, "same work-item"),
    "GROUP": (BLUE, "same work-group"),
    "GLOBAL": (VERMILLION, "across work-groups"),
    "UNKNOWN": (INK, "not known"),
}

_LINE = 0.2
_PAD = 0.1
_BETWEEN = 0.16
_NAME, _RANGE, _SOURCE, _ARCS, _NEEDS = 0.42, 2.5, 4.0, 7.45, 9.05
_SIZE = 7.5
_LEAVE = 0.06
"""Lines leave below the middle of a submission, so that they do not run into those that arrive."""


@dataclass(frozen=True)
class _Row:
    """A line of text or a submission, ``height`` high."""

    height: float
    text: str = ""
    color: str = INK
    submission: SubmittedKernel | None = None
    needs: tuple[Dependence, ...] = ()
    more: int = 0
    barrier: int | None = None
    bold: bool = False


class LaunchesPicture:
    """The picture of all launches of a report."""

    def __init__(self, report: ReportModel) -> None:
        self._report = report
        self._homes = {self._storage(p.submission, p.argument): p.scope for p in report.promotions}
        self._needs = _needs(report.dependences, len(report.submissions))
        reasons = frozenset(d.reason for d in report.dependences)
        left = MOST_INCHES
        self._boxes: list[tuple[list[str], list[_Row]]] = []
        for number, stage in enumerate(report.stages):
            if left < 0.5:
                break
            apart: list[str] = []
            if stage.boundary:
                text = f"apart: {without_reasons(stage.boundary, reasons)}"
                apart = wrapped(text, _SIZE, _ARCS - MARGIN - 0.2, 2)
            rows = self._launch(number, stage, left)
            self._boxes.append((apart, rows))
            left -= _height(apart, rows)
        drawn = sum(row.submission is not None for _, rows in self._boxes for row in rows)
        missing = len(report.submissions) - drawn
        self._left_out = (
            f"{missing:,} of {numbered(len(report.submissions), 'submission')} are not drawn"
            if missing else ""
        )  # fmt: skip
        self.height = 0.3 + sum(_height(*box) for box in self._boxes)
        self.height += 0.3 if self._left_out else 0

    def _launch(self, number: int, stage: ReportedStage, most: float) -> list[_Row]:
        details = [numbered(len(stage.kernels), "submission")]
        if stage.tiled:
            details.append(f"a persistent kernel of {numbered(len(stage.tiled), 'stage')}")
        if stage.work_group is not None:
            groups = " × ".join(map(str, stage.work_group))
            chosen = " (chosen by fusionq)" if stage.work_group_chosen else ""
            details.append(f"work-groups of {groups}{chosen}")
        if stage.barriers:
            details.append(numbered(stage.barriers, "barrier"))
        rows = [_Row(_LINE, f"Launch {number}: {', '.join(details)}", bold=True)]
        inserted = {barrier.before: barrier.reason for barrier in stage.inserted}
        for kernel in stage.kernels:
            if sum(row.height for row in rows) > most:
                break
            if kernel.index in inserted:
                rows.append(
                    _Row(_LINE, f"barrier: {inserted[kernel.index]}", PURPLE, barrier=kernel.index)
                )
            needs = self._needs[kernel.index]
            shown = tuple(needs[:MOST_NEEDS])
            more = len(needs) - len(shown)
            height = _LINE * max(len(shown) + (more > 0), 1)
            rows.append(_Row(height, submission=kernel, needs=shown, more=more))
        return rows

    # --------------------------------------------------------------------------- drawing
    def draw(self, page: Page, top: float) -> None:
        """Draw from ``top`` down."""
        self._scopes(page, top)
        y = top + 0.3
        middle: dict[int, float] = {}
        arcs: list[tuple[Dependence, float]] = []
        for number, (apart, rows) in enumerate(self._boxes):
            for line in apart:
                page.text(_NAME, y + 0.06, line, _SIZE, DIM)
                y += _LINE
            height = 2 * _PAD + sum(row.height for row in rows)
            page.box(
                MARGIN, y, WIDTH - 2 * MARGIN, height, "#F6F7F9", f"launch {number}",
                edgecolor="#B8BCC4", linewidth=0.8,
            )  # fmt: skip
            at = y + _PAD
            for row in rows:
                self._row(page, row, at, middle, arcs)
                at += row.height
            y += height + _BETWEEN
        if self._left_out:
            page.text(MARGIN, y + 0.06, self._left_out, _SIZE, DIM, "submissions left out")
        self._arcs(page, arcs, middle)

    def _scopes(self, page: Page, top: float) -> None:
        page.text(_NAME, top + 0.1, "Submissions", 9, weight="bold")
        page.text(_NEEDS, top + 0.1, "What they need, and its scope", 9, weight="bold")
        page.text(WIDTH - MARGIN, top + 0.1, "without what follows from it", _SIZE, DIM, ha="right")
        x = 2.5
        for color, meaning in SCOPES.values():
            page.line([(x, top + 0.1), (x + 0.25, top + 0.1)], color=color, linewidth=1.5)
            page.text(x + 0.32, top + 0.1, meaning, _SIZE, DIM)
            x += 1.45

    def _row(
        self,
        page: Page,
        row: _Row,
        y: float,
        middle: dict[int, float],
        arcs: list[tuple[Dependence, float]],
    ) -> None:
        kernel = row.submission
        if kernel is None:
            width = (_ARCS if row.barrier is not None else WIDTH - MARGIN) - _NAME - 0.1
            weight = "bold" if row.bold else "normal"
            page.text(
                _NAME, y + row.height / 2, fitted(row.text, _SIZE, width), _SIZE, row.color,
                None if row.barrier is None else f"barrier {row.barrier}", weight=weight,
            )  # fmt: skip
            if row.barrier is not None:
                for x in (MARGIN, WIDTH - MARGIN):
                    page.line(
                        [(MARGIN, y), (x, y)], color=PURPLE, linewidth=1, linestyle=(0, (4, 2))
                    )
            return
        centre = y + _LINE / 2
        middle[kernel.index] = centre
        for x, end, text, color in (
            (_NAME, _RANGE, f"[{kernel.index}] {kernel.kernel}", INK),
            (_RANGE, _SOURCE, kernel.range, DIM),
            (_SOURCE, _ARCS, self._source(kernel), DIM),
        ):
            page.text(
                x, centre, fitted(text, _SIZE, end - x - 0.12), _SIZE, color,
                f"submission {kernel.index}" if x == _NAME else None,
            )  # fmt: skip
        for k, d in enumerate(row.needs):
            at = centre + _LINE * k
            arcs.append((d, at))
            page.text(
                _NEEDS + 0.05, at,
                fitted(self._need(d), _SIZE, WIDTH - MARGIN - _NEEDS - 0.15), _SIZE,
                SCOPES[d.scope][0],
            )  # fmt: skip
        if row.more:
            page.text(
                _NEEDS + 0.05, centre + _LINE * len(row.needs), f"and {row.more} more", _SIZE, DIM
            )

    def _source(self, kernel: SubmittedKernel) -> str:
        return f"{Path(kernel.span.file).name}:{kernel.span.line}  {kernel.span.text.strip()}"

    def _need(self, d: Dependence) -> str:
        home = self._homes.get(self._storage(d.consumer, d.argument), "global")
        kept = f", in {home} memory" if home != "global" else ""
        verb = {"RAW": "reads", "WAR": "overwrites", "WAW": "overwrites"}[d.kind]
        return f"{verb} {d.buffer} of [{d.producer}]: {d.kind} {d.scope}{kept}"

    def _storage(self, submission: int, argument: int) -> int:
        """Which memory an array argument is in."""
        found = self._report.submissions[submission].arguments[argument]
        assert isinstance(found, ArrayArgument)
        return found.storage

    def _arcs(
        self, page: Page, arcs: list[tuple[Dependence, float]], middle: dict[int, float]
    ) -> None:
        """A line from each producer to what is said of it at its consumer, short ones innermost;
        each in a lane that is free there."""
        lanes: list[list[tuple[float, float]]] = []
        placed = []
        for d, end in sorted(arcs, key=lambda arc: arc[1] - middle.get(arc[0].producer, 0)):
            if d.producer not in middle:
                continue
            start = middle[d.producer]
            free = (
                number for number, lane in enumerate(lanes)
                if all(end < a - 0.02 or start > b + 0.02 for a, b in lane)
            )  # fmt: skip
            number = next(free, len(lanes))
            if number == len(lanes):
                lanes.append([])
            lanes[number].append((start, end))
            placed.append((d, start, end, number))
        step = min((_NEEDS - _ARCS - 0.35) / max(len(lanes), 1), 0.18)
        for d, start, end, number in placed:
            start += _LEAVE
            x = _NEEDS - 0.2 - step * number
            color = SCOPES[d.scope][0]
            page.line(
                [(_ARCS, start), (x, start), (x, end), (_NEEDS - 0.04, end)],
                gid=f"dependence {d.producer} {d.consumer} {d.scope}", color=color, linewidth=1,
                alpha=0.85,
            )  # fmt: skip
            page.arrowhead(_NEEDS, end, color)


def _height(apart: Sequence[str], rows: Sequence[_Row]) -> float:
    return _LINE * len(apart) + _BETWEEN + 2 * _PAD + sum(row.height for row in rows)


def _needs(dependences: Sequence[Dependence], submissions: int) -> list[list[Dependence]]:
    """For each submission what it depends on, the latest first, without what follows from other
    dependences: where one leads to another, and one of the two has at least the same scope, the
    barrier or launch boundary that keeps it keeps the first submission before the last, too."""
    ranks = {scope: rank for rank, scope in enumerate(SCOPES)}
    of: list[dict[int, list[Dependence]]] = [{} for _ in range(submissions)]
    for d in dependences:
        if d.scope != "NONE":
            of[d.consumer].setdefault(d.producer, []).append(d)
    found: list[list[Dependence]] = []
    before: list[dict[int, int]] = []
    for mine in of:
        kept: list[Dependence] = []
        widest: dict[int, int] = {}  # of the scopes on the way from a submission to this one
        for producer in sorted(mine, reverse=True):
            known = widest.get(producer, -1)
            kept += [d for d in mine[producer] if ranks[d.scope] > known]
            own = max(ranks[d.scope] for d in mine[producer])
            widest[producer] = max(known, own)
            for earlier, rank in before[producer].items():
                widest[earlier] = max(widest.get(earlier, -1), rank, own)
        found.append(kept)
        before.append(widest)
    return found


def notes(report: ReportModel) -> Sequence[tuple[str, str]]:
    """What else has to be said of a fusion: (text, colour)."""
    found = []
    if report.choice:
        found.append((f"Choice: {report.choice}", DIM))
    if report.fallback and all(report.fallback != stage.boundary for stage in report.plan.stages):
        found.append((f"Fallback: {report.fallback}", VERMILLION))
    for p in report.promotions:
        if p.scope == "global":
            found.append((f"{p.buffer} stays in global memory: {p.reason}", ORANGE))
    return found
