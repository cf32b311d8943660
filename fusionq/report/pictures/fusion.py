"""The picture of one fusion, from its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fusionq.report.pictures.page import MARGIN, WIDTH, Page, check_path, need_matplotlib, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fusionq.report.model import ReportModel

MOST_PERSISTENT = 3
"""Persistent kernels of one fusion that are drawn with their tiles."""
MOST_NOTES = 6

_HEAD = 0.55
_GAP = 0.25
_LINE = 0.17


def draw_fusion(report: ReportModel, path: Path) -> None:
    """Draw ``report`` to ``path``.

    ArgumentError if ``path`` is no name for a picture; FusionqError without matplotlib, and where
    the file cannot be written.
    """
    check_path(path)
    _page(report).save(path)


def figure_of(report: ReportModel) -> Figure:
    """The picture as a matplotlib figure; FusionqError without matplotlib."""
    return _page(report).figure


def _page(report: ReportModel) -> Page:
    need_matplotlib()
    from fusionq.report.pictures.halos import HalosPicture
    from fusionq.report.pictures.launches import LaunchesPicture, notes
    from fusionq.report.pictures.persistent import PersistentPicture

    parts: list[LaunchesPicture | HalosPicture | PersistentPicture] = []
    persistent = [k for k, schedule in enumerate(report.schedules) if schedule is not None]
    if len(report.plan.stages) != 1 or not persistent:
        parts.append(LaunchesPicture(report))
    if report.recomputed:
        parts.append(HalosPicture(report))
    for number in persistent[:MOST_PERSISTENT]:
        schedule = report.schedules[number]
        assert schedule is not None
        stage = report.plan.stages[number]
        parts.append(
            PersistentPicture(number, stage, report.submissions, report.promotions, schedule)
        )
    said = notes(report)[:MOST_NOTES]
    if len(persistent) > MOST_PERSISTENT:
        more = len(persistent) - MOST_PERSISTENT
        said = [*said, (f"the tiles of {more} more persistent kernels are not drawn", "black")]
    lines = [
        (line, color) for text, color in said
        for line in wrapped(text, 7.5, WIDTH - 2 * MARGIN, 3)
    ]  # fmt: skip
    height = _HEAD + sum(part.height + _GAP for part in parts) + _LINE * len(lines) + 0.1
    page = Page(height)
    page.text(
        MARGIN, 0.28, f"fusionq: {report.strategy}, {report.headline}", 13, gid="title",
        weight="bold",
    )  # fmt: skip
    top = _HEAD
    for part in parts:
        part.draw(page, top)
        top += part.height + _GAP
    for line, color in lines:
        page.text(MARGIN, top, line, 7.5, color)
        top += _LINE
    return page
