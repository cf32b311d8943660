"""The corpus and its results as tables, for a terminal or plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import shorten

from rich.table import Table

from fusionq.base.units import format_seconds
from fusionq.benchmarks.corpus.program import CorpusProgram
from fusionq.benchmarks.corpus.results import (
    AUTO,
    LEARNING,
    NUMBA,
    UNFUSED,
    Extreme,
    FormResult,
    Summary,
)

REASON_WIDTH = 150
"""Of a reason below a table; the JSON has it whole."""


def programs_table(programs: Sequence[CorpusProgram]) -> Table:
    """What is in the corpus."""
    table = Table(title=f"The corpus: {len(programs)} programs")
    for heading in ("program", "half", "what it does", "forms", "source"):
        table.add_column(heading)
    for program in programs:
        forms = ", ".join(form.name for form in program.forms)
        table.add_row(program.name, program.half, program.description, forms, program.source)
    return table


def results_table(results: Sequence[FormResult]) -> Table:
    """Results of one program at one size, a row a form."""
    first = results[0]
    size = first.nbytes / (1 << 20)
    table = Table(title=f"{first.program}, {first.working_set} ({size:,.1f} MiB of arrays)")
    table.add_column("form", no_wrap=True)
    strategies = list(dict.fromkeys(v.name for r in results for v in r.strategies))
    headings = [
        "launches", UNFUSED, *strategies, AUTO, "of best", "first call",
        LEARNING, "of best", "first call", "trials cost", "Numba",
    ]  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        table.add_row(*_cells(result, strategies))
    return table


def _cells(result: FormResult, strategies: Sequence[str]) -> Iterator[str]:
    yield result.form
    auto, unfused = result.variant(AUTO), result.median(UNFUSED)
    after = "?" if auto is None or auto.launches is None else str(auto.launches)
    yield f"{result.submissions} → {after}"
    yield "" if unfused is None else format_seconds(unfused)
    for name in strategies:
        yield _times(result.speed_up(name))
    for name in (AUTO, LEARNING):
        yield _times(result.speed_up(name))
        regret = result.regret(name)
        yield "" if regret is None else f"{1 / (1 + regret):.2f}"
        yield _times(result.first_call_ratio(name))
    yield "" if result.learning is None else f"{result.learning.cost:.1f} runs"
    yield _times(result.speed_up(NUMBA))


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def results_notes(results: Sequence[FormResult]) -> Iterator[str]:
    """Why a candidate has no time."""
    for result in results:
        if result.error is not None:
            yield f"{result.form}: {result.error}"
        for variant in result.variants:
            if variant.unavailable is not None:
                reason = shorten(variant.unavailable, REASON_WIDTH, placeholder=" …")
                yield f"{result.form}, {variant.name}: {reason}"


def summary_table(summaries: dict[str, Summary]) -> Table:
    """Summaries side by side, by what they are of."""
    table = Table(title="Summary")
    table.add_column("")
    for name in summaries:
        table.add_column(name, justify="right")
    rows: dict[str, list[str]] = {}
    for summary in summaries.values():
        for name, text in _figures(summary):
            rows.setdefault(name, []).append(text)
    for name, texts in rows.items():
        table.add_row(name, *texts)
    return table


def _figures(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "forms and sizes", str(summary.results)
    yield "auto against unfused, geometric mean", _times(summary.mean_speed_up)
    yield "auto against unfused, worst", _extreme(summary.worst_speed_up, "{:.2f}×")
    yield "best candidate against unfused, geometric mean", _times(summary.mean_speed_up_of_best)
    regret = summary.mean_regret
    yield "regret of auto, geometric mean", "–" if regret is None else f"{regret:+.1%}"
    yield "regret of auto, worst", _extreme(summary.worst_regret, "{:+.0%}")
    first = "first call, auto over unfused"
    yield f"{first}, geometric mean", _times(summary.mean_first_call_ratio)
    yield f"{first}, worst", _extreme(summary.worst_first_call_ratio, "{:.1f}×")
    learned = summary.learned
    yield "auto where it learns against unfused, geometric mean", _times(learned.mean_speed_up)
    yield "  worst", _extreme(learned.worst_speed_up, "{:.2f}×")
    yield "  worst regret", _extreme(learned.worst_regret, "{:+.0%}")
    yield "  first call over unfused, geometric mean", _times(learned.mean_first_call_ratio)
    yield "  first call over unfused, worst", _extreme(learned.worst_first_call_ratio, "{:.1f}×")
    yield "  runs of trials, median", f"{learned.median_runs or 0:.0f}"
    cost = learned.median_cost
    yield "  trials cost, median", "–" if cost is None else f"{cost:.1f} unfused runs"
    yield "  most that trials cost", _extreme(learned.most_cost, "{:.1f} unfused runs")
    yield "launches, before → after", f"{summary.submissions:,} → {summary.launches:,}"
    yield "without a result of auto in time", str(len(summary.without_auto))
    yield "wrong, or nothing ran", str(len(summary.errors))


def _extreme(extreme: Extreme | None, form: str) -> str:
    return "–" if extreme is None else f"{form.format(extreme.value)} {extreme.name}"
