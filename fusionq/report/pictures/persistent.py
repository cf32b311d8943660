"""The picture of a persistent kernel: its tiles and waits, the order of its instructions, and how
far apart in that order those are that wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from fusionq.analysis.submission import Submission
from fusionq.ir.nodes import Persistent
from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.schedule import Schedule
from fusionq.planning.plan import PromotionDecision, StagePlan
from fusionq.report.pictures.distances import distances, positions, sample
from fusionq.report.pictures.page import (
    BLUE,
    DIM,
    GREEN,
    MARGIN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    WIDTH,
    Page,
    numbered,
)
from fusionq.report.pictures.tile_rows import StageLabel, TileRows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DOTS = 20_000
"""Instructions in the picture of the order."""
CLOSE_UP = 160
"""Instructions in the close-up of it, if there are more than twice as many.  They lie before the
middle, where one block of stages may end and the next begin."""

_HEAD = 0.5
_GAP = 0.4
_PANEL = 2.5
_FOOT = 0.55
_WORKERS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, "#999933", "#882255")
_ASSIGNMENTS = {
    "stages": "each worker has some neighbouring stages",
    "shares": "each worker has its part of each stage",
    "turns": "workers take turns",
    "tickets": "whoever is free takes the next instruction",
}


class PersistentPicture:
    """The picture of launch ``number``, with its ``schedule``."""

    def __init__(
        self,
        number: int,
        stage: StagePlan,
        submissions: Sequence[Submission],
        promotions: Sequence[PromotionDecision],
        schedule: Schedule,
    ) -> None:
        self._number = number
        self._schedule = schedule
        self._position = positions(schedule)
        texts = [_text(members, submissions, promotions) for members in stage.inner]
        body = stage.kernel.body[0]
        assert isinstance(body, Persistent)
        alike = [
            (use.code, schedule.stages[k].count, tuple(k - p for p in use.producers))
            for k, use in enumerate(body.stages)
        ]
        self._rows = TileRows(schedule, self._position, texts, alike)
        self.height = _HEAD + self._rows.height + _GAP + _PANEL + _FOOT

    def draw(self, page: Page, top: float) -> None:
        """Draw from ``top`` down."""
        schedule = self._schedule
        page.text(
            MARGIN, top + 0.1,
            f"Launch {self._number}: a persistent kernel of "
            f"{numbered(len(schedule.stages), 'stage')}, "
            f"{numbered(len(schedule.stage), 'instruction')}, "
            f"{numbered(schedule.workers, 'worker')}",
            10, weight="bold",
        )  # fmt: skip
        static = len(schedule.starts) > 0
        text = _ASSIGNMENTS[schedule.tiling.assignment if static else "tickets"]
        text += " (tickets if not all workers run at once)" if static else " (tickets)"
        if schedule.workers == 1:
            text = "the worker does all, in order"
        page.text(MARGIN, top + 0.29, text, 8, DIM)
        self._rows.draw(page, top + _HEAD)
        top += _HEAD + self._rows.height + _GAP
        total = len(schedule.stage)
        zoom = total > 2 * CLOSE_UP
        thinned = f", {MOST_DOTS:,} of them" if total > MOST_DOTS else ""
        width = 3.9 if zoom else 8.2
        axes = page.panel(MARGIN + 0.45, top, width, _PANEL, f"Order of the instructions{thinned}")
        self._dots(axes, sample(total, MOST_DOTS))
        if zoom:
            start = 3 * (total - CLOSE_UP) // 8
            window = np.arange(start, start + CLOSE_UP)
            axes = page.panel(MARGIN + 5.0, top, 3.65, _PANEL, f"{CLOSE_UP} instructions, close up")
            self._dots(axes, window, close_up=True)
        self._legend(page, top)
        axes = page.panel(10.6, top, WIDTH - MARGIN - 10.6, _PANEL, "How close waits are")
        self._distances(axes)

    def _dots(self, axes: Axes, chosen: Integers, close_up: bool = False) -> None:
        schedule = self._schedule
        stage, tile = schedule.stage[chosen], schedule.tile[chosen]
        counts = np.array([s.tiles for s in schedule.stages])
        alike = counts.min() == counts.max()
        height = tile if alike else 100 * (tile + 0.5) / counts[stage]
        size = 9 if close_up else max(min(3000 / len(chosen), 25), 0.6)
        axes.scatter(
            chosen, height, s=size, c=self._colors(chosen), linewidths=0, gid="order",
            rasterized=True,
        )  # fmt: skip
        axes.set_xlabel("place in the order", fontsize=7.5)
        axes.set_ylabel("tile" if alike else "tile, in % of its stage", fontsize=7.5, labelpad=2)
        whole = StrMethodFormatter("{x:,.0f}")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter(whole)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(whole)

    def _colors(self, chosen: Integers) -> np.typing.NDArray[np.float64]:
        """By worker where workers have lists, else by stage."""
        schedule = self._schedule
        if len(schedule.starts):
            worker = np.empty(len(schedule.stage), np.int64)
            worker[schedule.assigned] = np.repeat(
                np.arange(schedule.workers), np.diff(schedule.starts)
            )
            return self._shades(schedule.workers)[worker[chosen]]
        return self._shades(len(schedule.stages))[schedule.stage[chosen]]

    def _shades(self, count: int) -> np.typing.NDArray[np.float64]:
        from matplotlib.colors import to_rgba_array

        if count <= len(_WORKERS):
            return to_rgba_array(_WORKERS[:count])
        return colormaps["viridis"](np.linspace(0, 0.95, count))

    def _legend(self, page: Page, top: float) -> None:
        """Right of the order: what the colours are."""
        static = len(self._schedule.starts) > 0
        count = self._schedule.workers if static else len(self._schedule.stages)
        shades = self._shades(count)
        x, noun = 9.25, "worker" if static else "stage"
        if count <= len(_WORKERS):
            for k, shade in enumerate(shades):
                page.box(x, top + 0.2 * k, 0.1, 0.1, shade, f"legend {k}")
                page.text(x + 0.16, top + 0.2 * k + 0.05, f"{noun} {k}", 7.5)
            return
        step = 1.8 / count
        for k, shade in enumerate(shades):
            page.box(x, top + step * k, 0.12, step, shade, f"legend {k}")
        page.text(x + 0.18, top + 0.05, f"{noun} 0", 7.5)
        page.text(x + 0.18, top + 1.75, f"{noun} {count - 1}", 7.5)

    def _distances(self, axes: Axes) -> None:
        found = distances(self._schedule, self._position)
        values, workers = found.values, self._schedule.workers
        axes.set_xlabel("places from the last tile waited for", fontsize=7.5)
        if not len(values):
            axes.text(0.5, 0.5, "no tile waits", transform=axes.transAxes, ha="center", fontsize=8)
            return
        most = max(int(values.max()), workers + 1)
        wide = most > 40
        edges = np.arange(1, most + 2) - 0.5
        if wide:
            edges = np.unique(np.geomspace(1, most + 1, 25).astype(np.int64))
        heights, _ = np.histogram(values, edges)
        colors = [VERMILLION if low < workers else BLUE for low in np.ceil(edges[:-1])]
        axes.bar(
            edges[:-1], heights, np.diff(edges), align="edge", color=colors, edgecolor="white",
            linewidth=0.5,
        )  # fmt: skip
        if wide:
            axes.set_xscale("log")
        else:
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlim(0.9 if wide else 0.4, most + 1)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        close = np.count_nonzero(values < workers) / len(values)
        drawn = found.sampled < len(self._schedule.stage)
        axes.set_ylabel(
            f"tiles that wait, of {found.sampled:,}" if drawn else "tiles that wait",
            fontsize=7.5, labelpad=2,
        )  # fmt: skip
        axes.set_title(
            f"How close waits are: median {int(np.median(values)):,};\n"
            f"{100 * close:.0f} % closer than the {workers} workers\n"
            "(red: the other tile may still run then)",
            loc="left", fontsize=7.5,
        )  # fmt: skip


def _text(
    members: Sequence[int],
    submissions: Sequence[Submission],
    promotions: Sequence[PromotionDecision],
) -> StageLabel:
    names = " + ".join(submissions[s].name for s in members)
    space = submissions[members[0]].range
    extents = space if isinstance(space, tuple) else space.global_range
    which = (
        f"submission {members[0]}" if len(members) == 1
        else f"submissions {members[0]} to {members[-1]}"
    )  # fmt: skip
    items = " × ".join(f"{n:,}" for n in extents)
    items += " work-items" if len(extents) > 1 or prod(extents) != 1 else " work-item"
    kept = [p.buffer for p in promotions if p.submission in members and p.scope == "private"]
    return StageLabel(
        names, f"{which}: {items}", f"in private memory: {', '.join(kept)}" if kept else ""
    )
