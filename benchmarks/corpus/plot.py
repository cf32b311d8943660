"""The corpus as a picture: what auto gains, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.corpus.results import AUTO, FormResult

COLOURS = {"tiny": "#b0b0b0", "in cache": "#1f77b4", "out of cache": "#2ca02c"}


def save_plot(results: Sequence[FormResult], path: Path) -> None:
    """Write a bar chart to ``path``; its suffix sets the format.

    Bars are auto's speed-up over unfused, the greatest on top, ticks the best candidate's.
    Unavailable where matplotlib is missing or nothing was measured.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        raise Unavailable("matplotlib is not installed: pip install matplotlib") from None
    found = [(gain, r) for r in results if (gain := r.speed_up(AUTO)) is not None]
    if not found:
        raise Unavailable("there is nothing to plot: auto has no result")
    found.sort(key=lambda pair: pair[0])
    figure = Figure(figsize=(9, 1.5 + 0.17 * len(found)), layout="constrained")
    axes = figure.subplots()
    rows = range(len(found))
    gains = [gain for gain, _ in found]
    axes.barh(
        rows, [gain - 1 for gain in gains], left=1,
        color=[COLOURS[result.working_set] for _, result in found],
    )  # fmt: skip
    for row, (gain, result) in enumerate(found):
        best = None if result.best is None else result.speed_up(result.best.name)
        if best is not None:
            axes.plot([best, best], [row - 0.4, row + 0.4], color="black", linewidth=1)
        axes.text(max(gain, best or 0.0, 1.0) * 1.02, row, f"{gain:.2f}×", va="center", fontsize=6)
    axes.axvline(1, color="black", linewidth=0.6)
    axes.set_xscale("log")
    axes.set_yticks(rows, [f"{r.program}/{r.form}" for _, r in found], fontsize=6)
    axes.set_ylim(-0.7, len(found) - 0.3)
    axes.set_xlabel("unfused over auto, medians (black tick: the best candidate)")
    axes.spines[["top", "right"]].set_visible(False)
    used = {result.working_set for _, result in found}
    patches = [Patch(color=c, label=name) for name, c in COLOURS.items() if name in used]
    figure.legend(handles=patches, loc="outside upper right", ncols=len(patches), frameon=False)
    figure.savefig(path, dpi=120)
