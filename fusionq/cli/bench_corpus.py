"""``fusionq bench corpus``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusionq.base.device_info import DeviceInfo
from fusionq.benchmarks.busy import busy
from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.corpus.plot import save_plot
from fusionq.benchmarks.corpus.program import WORKING_SETS, CorpusHalf, WorkingSet
from fusionq.benchmarks.corpus.programs import PROGRAMS
from fusionq.benchmarks.corpus.results import FormResult, Summary, to_json
from fusionq.benchmarks.corpus.runner import Selection, run_corpus
from fusionq.benchmarks.corpus.table import (
    programs_table,
    results_notes,
    results_table,
    summary_table,
)
from fusionq.cli.bench import begin
from fusionq.cli.console import bad_use, failed, output, progress_bar, show_table


def show_programs(filters: Sequence[str], half: CorpusHalf) -> None:
    """A table of the selected programs."""
    selection = selected(filters, half, WORKING_SETS)
    programs = [program for program in PROGRAMS.values() if selection.forms(program)]
    show_table(output(), programs_table(programs))


def run_bench_corpus(
    filters: Sequence[str],
    half: CorpusHalf,
    working_sets: Sequence[WorkingSet],
    device: str | None,
    rounds: int,
    limit: float,
    json: Path | None,
    plot: Path | None,
    *,
    learning_only: bool = False,
    single: bool = False,
    replay: bool = False,
    busy_processes: int = 0,
) -> None:
    """Measure the selected part, print a table for each program and size as it is done, then the
    summary; write files.  ``busy_processes``: so many others compute meanwhile.  Exits with 1 where
    a result was wrong."""
    selection = selected(filters, half, working_sets)
    console, queue = begin(device, json, plot)
    results: list[FormResult] = []
    with busy(busy_processes), progress_bar() as progress:
        task = progress.add_task(
            "corpus", total=sum(len(forms) for *_, forms in selection.requests)
        )
        shown = 0
        for result in run_corpus(
            selection,
            device,
            rounds,
            limit,
            lambda doing: progress.update(task, description=doing),
            learning_only=learning_only,
            single=single,
            replay=replay,
        ):
            results.append(result)
            progress.advance(task)
            if json is not None:  # an interrupted run keeps what it has
                json.write_text(to_json(results, queue.device))
            if len(results) - shown == _forms(selection, result):
                _show(results[shown:])
                shown = len(results)
    show_table(console, summary_table(_summaries(results)))
    _write(results, queue.device, json, plot)
    if errors := Summary.of(results).errors:
        failed("\n".join(errors))


def selected(
    filters: Sequence[str], half: CorpusHalf, working_sets: Sequence[WorkingSet]
) -> Selection:
    selection = Selection(tuple(filters), half, tuple(working_sets))
    if selection.unknown:
        bad_use(
            f"no program of the corpus is called {', '.join(selection.unknown)}; see fusionq bench "
            "corpus --list"
        )
    if not selection.requests:
        bad_use(f"none of these programs is in the half {half!r}")
    return selection


def _forms(selection: Selection, result: FormResult) -> int:
    return len(selection.forms(PROGRAMS[result.program]))


def _show(results: Sequence[FormResult]) -> None:
    console = output()
    console.print()
    show_table(console, results_table(results))
    for note in results_notes(results):
        console.print(note, markup=False, style="dim")


def _summaries(results: Sequence[FormResult]) -> dict[str, Summary]:
    """Of each size, of each half, of all, where they differ."""
    parts = {"all": list(results)}
    for name in ("working_set", "half"):
        values = list(dict.fromkeys(getattr(result, name) for result in results))
        if len(values) > 1:
            parts |= {v: [r for r in results if getattr(r, name) == v] for v in values}
    return {name: Summary.of(part) for name, part in parts.items()}


def _write(
    results: Sequence[FormResult], device: DeviceInfo, json: Path | None, plot: Path | None
) -> None:
    if json is not None:
        json.write_text(to_json(results, device))
    if plot is not None:
        try:
            save_plot(results, plot)
        except (Unavailable, ValueError) as reason:
            failed(f"no plot: {reason}")
