"""``fusionq explain``."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from pathlib import Path

from fusionq.base.errors import ArgumentError, FusionqError
from fusionq.cli.console import bad_use, errors, failed, output, show_lines
from fusionq.cli.scripts import run_script
from fusionq.report.report import Report
from fusionq.runtime.ended_lists import report_listeners

MOST_PICTURES = 20


def explain_script(script: Path, arguments: Sequence[str], plot: Path | None = None) -> int:
    """Run ``script`` as ``__main__`` and print the report of each fusion when it is complete.

    Lists are planned as the cost model chooses, and learn nothing from their runs, unless the
    environment says otherwise.  ``plot``: where to draw the fusions, each that is not like an
    earlier one; several get a number each.  Returns the script's exit code: its own, or 1 where an
    exception ended it.
    """
    os.environ.setdefault("FUSIONQ_ADAPT", "0")
    console = output()
    fusions = Fusions()
    ended = 0

    def show(report: Report) -> None:
        nonlocal ended
        ended += 1
        show_lines(console, report.__rich__())
        console.print()
        if plot is not None:
            fusions.add(report)

    if plot is not None:
        check_plot(plot)
    report_listeners.append(show)
    try:
        code = run_script(script, arguments)
    finally:
        report_listeners.remove(show)
    if not ended and code == 0:
        errors().print(
            f"fusionq: nothing to explain: {script} ended no `with fusion(queue):` block",
            markup=False,
        )
    if plot is not None:
        _draw(fusions, plot)
    return code


class Fusions:
    """The different ones of a script's fusions.

    Two are alike if they ran by the same plan and their submissions, with ranges and source lines,
    are the same.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self.reports: list[Report] = []
        self.numbers: list[list[int]] = []
        """For each of ``reports`` which of the script's fusions were like it, from 1."""
        self.total = 0

    def add(self, report: Report) -> None:
        """The script's next fusion."""
        self.total += 1
        key = (
            id(report.plan.stages),  # its report keeps it
            tuple((s.name, str(s.range), s.span) for s in report.submissions),
            tuple(s and s.words.tobytes() for s in report.schedules),
        )
        known = self._known.setdefault(key, len(self.reports))
        if known == len(self.reports):
            self.reports.append(report)
            self.numbers.append([])
        self.numbers[known].append(self.total)


def check_plot(plot: Path) -> None:
    """Whether a picture can be drawn, before the script has run."""
    from fusionq.report.pictures.page import check_path, need_matplotlib

    try:
        check_path(plot)
    except ArgumentError as error:
        bad_use(f"--plot: {error}")
    try:
        need_matplotlib()
    except FusionqError as error:
        failed(f"--plot: {error}")


def _draw(fusions: Fusions, plot: Path) -> None:
    console = output()
    several = len(fusions.reports) > 1
    if not fusions.reports:
        console.print("no picture: the script fused nothing", markup=False)
    drawn = list(zip(fusions.reports, fusions.numbers, strict=True))[:MOST_PICTURES]
    for report, numbers in drawn:
        path = plot.with_stem(f"{plot.stem}-{numbers[0]}") if several else plot
        try:
            report.plot(path)
        except FusionqError as error:
            failed(str(error))
        more = len(numbers) - 1
        like = f" and {more} more like it" if more else ""
        console.print(f"{path}: fusion {numbers[0]}{like}", markup=False, soft_wrap=True)
    if len(fusions.reports) > len(drawn):
        console.print(
            f"{len(fusions.reports) - len(drawn)} more are not drawn: {MOST_PICTURES} pictures are "
            "the most; call report.plot(path) in the script for one of them",
            markup=False, soft_wrap=True,
        )  # fmt: skip
