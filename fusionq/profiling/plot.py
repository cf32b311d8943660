"""A picture of a profile: one row a worker, time from left to right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fusionq.base.errors import FusionqError
from fusionq.base.units import format_seconds
from fusionq.profiling.accounting import KINDS
from fusionq.profiling.drawn_times import DrawnTimes
from fusionq.profiling.model import ProfileResults
from fusionq.profiling.text import percent
from fusionq.profiling.timeline import ACCOUNTED, Timeline

# Okabe and Ito's palette, which most people with impaired colour vision can tell apart.
_STAGES = ("#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#999933", "#44AA99", "#882255", "#117733")
_KINDS = {"barrier": "#D55E00", "wait": "#E69F00", "ticket": "#F0E442", "publish": "#000000"}
_IDLE = "#E8E8E8"
_MOST_LAUNCHES = 6
_MOST_NAMES = 48
_EDGED = 0.004
"""What takes this part of the width has an edge; that of anything shorter would hide it."""


def draw_timeline(profile: ProfileResults, path: Path) -> None:
    """Draw the first launches, and each worker's time by kind beside them, to ``path``.

    FusionqError without matplotlib, and where nothing was recorded.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise FusionqError(
            f'a picture needs matplotlib ({error}); install it with: pip install "fusionq[profile]"'
        ) from error
    timeline = profile.timeline
    if not len(timeline.accounted()):
        why = timeline.no_clock or "nothing was launched"
        raise FusionqError(f"there is no timeline to draw: {why}")
    shown = [k for k, launch in enumerate(timeline.launches) if launch.source == "device"][
        :_MOST_LAUNCHES
    ]
    part = timeline.select(shown)
    height = 1.6 + 0.5 * timeline.workers
    figure = Figure(figsize=(12, height + 1.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(5, 1), sharey=True)
    _draw_workers(left, part)
    _draw_shares(right, profile)
    more = len(timeline.launches) - len(shown)
    left.set_title(
        f"{len(shown)} launches" + (f" of {len(timeline.launches)}" if more > 0 else ""),
        loc="left",
    )
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 3),
                  frameon=False, fontsize="small")  # fmt: skip
    figure.savefig(path, dpi=130)


def _draw_workers(axes: Any, timeline: Timeline) -> None:
    drawn = DrawnTimes(timeline.launches)
    length = drawn.length
    scale, unit = next(
        (size, name) for size, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
        if length >= size or size == 1
    )  # fmt: skip
    for launch in timeline.launches:
        start, end = drawn.place(np.array([launch.start_ns, launch.end_ns])) / scale
        axes.broken_barh(
            [(start, end - start)], (-0.45, timeline.workers - 0.1), color=_IDLE, zorder=0
        )
        for edge in (start, end):
            axes.axvline(edge, color="#888888", linewidth=0.6, zorder=1)
    stages = [k for k, r in enumerate(timeline.regions) if r.kind == "stage"]
    used = set(timeline.intervals["region"].tolist())
    stages = [k for k in stages if k in used]
    named: set[str] = set()
    for number, region in enumerate(timeline.regions):
        if region.kind not in ACCOUNTED or number not in used:
            continue
        mine = timeline.intervals[timeline.intervals["region"] == number]
        is_stage = region.kind == "stage"
        color = _STAGES[stages.index(number) % len(_STAGES)] if is_stage else _KINDS[region.kind]
        label = region.name if is_stage else region.kind
        label = label if len(label) <= _MOST_NAMES else label[:_MOST_NAMES] + "…"
        for worker in range(timeline.workers):
            rows = mine[(mine["worker"] == worker) & (mine["end"] > mine["start"])]
            if not len(rows):
                continue
            first, last = drawn.place(rows["start"]), drawn.place(rows["end"])
            spans = np.stack([first, last - first], axis=1) / scale
            axes.broken_barh(
                spans, (worker - 0.36, 0.72), facecolors=color, edgecolors="white",
                linewidths=np.where(spans[:, 1] * scale > _EDGED * length, 0.5, 0.0),
                zorder=2 if is_stage else 3, label=None if label in named else label,
            )  # fmt: skip
            named.add(label)
    axes.set_yticks(range(timeline.workers), [f"worker {w}" for w in range(timeline.workers)])
    axes.set_ylim(timeline.workers - 0.5, -0.5)
    axes.set_xlim(0, length / scale)
    for before, after, gap in drawn.gaps:
        axes.axvspan(before / scale, after / scale, facecolor="white", edgecolor="#BBBBBB",
                     hatch="////", linewidth=0, zorder=0)  # fmt: skip
        axes.text(
            (before + after) / 2 / scale, (timeline.workers - 1) / 2, format_seconds(gap / 1e9),
            rotation=90, ha="center", va="center", fontsize="x-small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip
    cut = ", without what is hatched: nothing ran for so long" if drawn.gaps else ""
    axes.set_xlabel(f"time ({unit}){cut}")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _draw_shares(axes: Any, profile: ProfileResults) -> None:
    accounting = profile.accounting
    colors = {"work": _STAGES[0], "idle": _IDLE, **_KINDS}
    for worker, row in enumerate(accounting.table):
        left = 0.0
        for kind, ns in zip(KINDS, row, strict=True):
            share = ns / max(accounting.window_ns, 1)
            axes.barh(worker, share, 0.72, left=left, color=colors[kind])
            if share > 0.15:
                axes.text(
                    left + share / 2, worker, f"{kind}\n{percent(share)}", ha="center", va="center",
                    fontsize="x-small", color="black" if kind == "idle" else "white",
                )  # fmt: skip
            left += share
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 1], ["0", "100 %"])
    axes.set_title("all launches", loc="left", fontsize="medium")
    axes.tick_params(axis="y", length=0, labelleft=False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
