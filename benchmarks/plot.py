"""Results as a picture: the median time of every variant, one panel a case and size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusionq.base.units import format_seconds
from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.results import CaseResult, Result

COLOURS = {"fusionq": "#1f77b4", "baseline": "#b0b0b0"}


def save_plot(results: Sequence[Result], path: Path) -> None:
    """Write a bar chart to ``path``; its suffix sets the format.

    Bars are medians, whiskers the first and last decile.  Unavailable where matplotlib is
    missing or no case has run.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        raise Unavailable("matplotlib is not installed: pip install matplotlib") from None
    cases = [result for result in results if isinstance(result, CaseResult)]
    if not cases:
        raise Unavailable("there is nothing to plot: no case has run")
    heights = [1.1 + 0.34 * sum(v.timing is not None for v in case.variants) for case in cases]
    figure = Figure(figsize=(9, sum(heights)), layout="constrained")
    panels = figure.subplots(len(cases), 1, squeeze=False, height_ratios=heights)
    for axes, case in zip(panels[:, 0], cases, strict=True):
        timed = [(v, v.timing) for v in case.variants if v.timing is not None]
        medians = [timing.median * 1e3 for _, timing in timed]
        low = [(t.median - t.quantile(0.1)) * 1e3 for _, t in timed]
        high = [(t.quantile(0.9) - t.median) * 1e3 for _, t in timed]
        axes.barh(
            range(len(timed)),
            medians,
            xerr=(low, high),
            color=[COLOURS[variant.group] for variant, _ in timed],
            error_kw={"linewidth": 1, "capsize": 2},
        )
        axes.set_yticks(range(len(timed)), [variant.name for variant, _ in timed])
        axes.invert_yaxis()
        axes.set_xlabel("median in ms (whiskers: first to last decile; ×: speed-up over unfused)")
        axes.set_title(f"{case.case}, {case.size:,} elements", loc="left")
        right = max(median + spread for median, spread in zip(medians, high, strict=True))
        axes.set_xlim(0, right * 1.2)
        for row, (variant, timing) in enumerate(timed):
            ratio = case.ratio(variant, case.variants[0].name)
            note = f" {format_seconds(timing.median)}, {ratio:.2f}×"
            axes.text(medians[row] + high[row], row, note, va="center", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    patches = [Patch(color=colour, label=group) for group, colour in COLOURS.items()]
    figure.legend(handles=patches, loc="outside upper right", ncols=len(patches), frameon=False)
    figure.savefig(path, dpi=120)
