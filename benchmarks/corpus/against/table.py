"""Results against PyTorch as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten

from rich.table import Table

from fusionq.base.units import format_seconds
from fusionq.benchmarks.corpus.against.results import (
    AUTO,
    BY_COMPILE,
    COMPILED,
    COMPILED_GRAPH,
    EAGER,
    EAGER_GRAPH,
    REDUCED,
    TORCH,
    TUNED_GRAPH,
    AgainstSummary,
    gain,
)
from fusionq.benchmarks.corpus.results import FormResult
from fusionq.benchmarks.corpus.table import REASON_WIDTH
from fusionq.benchmarks.gpu import GRAPH

COLUMNS = {
    GRAPH: "unfused, graph",
    EAGER: "eager",
    EAGER_GRAPH: "eager, graph",
    COMPILED: "compile",
    REDUCED: "reduce-overhead",
    COMPILED_GRAPH: "compile, graph",
    TUNED_GRAPH: "max-autotune, graph",
}
"""A column each, and its heading."""


def against_table(results: Sequence[FormResult]) -> Table:
    """Median times, and how many times as fast as the fastest of PyTorch's auto is."""
    table = Table(title=f"auto and PyTorch, {results[0].working_set}")
    table.add_column("program", no_wrap=True)
    for heading in ("auto", *COLUMNS.values(), "fastest/auto", "compile/auto", "launches"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(*_cells(result))
    return table


def _cells(result: FormResult) -> Iterator[str]:
    yield f"{result.program}/{result.form}"
    for name in (AUTO, *COLUMNS):
        seconds = result.median(name)
        yield "–" if seconds is None else format_seconds(seconds)
    for names in (TORCH, BY_COMPILE):
        ratio = gain(result, *names)
        yield "–" if ratio is None else f"{ratio:.2f}"
    auto = result.variant(AUTO)
    yield "" if auto is None else f"{result.submissions} → {auto.launches} {auto.strategy}"


def against_notes(results: Sequence[FormResult]) -> Iterator[str]:
    """Why something has no time, a line each."""
    for result in results:
        if result.error is not None:
            yield f"{result.name}: {result.error}"
        for variant in result.variants:
            if variant.unavailable is not None:
                reason = shorten(variant.unavailable, REASON_WIDTH, placeholder=" …")
                yield f"{result.name}, {variant.name}: {reason}"


def against_summary(summaries: Mapping[str, AgainstSummary]) -> Table:
    """Geometric means and the least, by size."""
    table = Table(title="auto is so many times as fast as")
    table.add_column("")
    for name in summaries:
        table.add_column(name, justify="right")
    rivals = dict.fromkeys(name for summary in summaries.values() for name in summary.gains)
    for rival in rivals:
        cells = []
        for summary in summaries.values():
            found = summary.gains.get(rival)
            cells.append(
                "–"
                if found is None
                else f"{found.mean:.2f} ({found.results}; least {found.worst.value:.2f}, "
                f"{found.worst.name.partition(',')[0]}; below 0.95: {len(found.slower)})"
            )
        table.add_row(rival, *cells)
    return table
