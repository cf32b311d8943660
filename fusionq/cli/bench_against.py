"""``fusionq bench corpus --against torch``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fusionq.benchmarks.corpus.against.results import summaries, to_json
from fusionq.benchmarks.corpus.against.runner import requests, run_against
from fusionq.benchmarks.corpus.against.table import against_notes, against_summary, against_table
from fusionq.benchmarks.corpus.program import CorpusHalf, WorkingSet
from fusionq.benchmarks.corpus.results import FormResult
from fusionq.benchmarks.corpus.torch_forms import WITHOUT_FORM
from fusionq.benchmarks.gpu import is_gpu
from fusionq.cli.bench import begin
from fusionq.cli.bench_corpus import selected
from fusionq.cli.console import bad_use, failed, output, progress_bar, show_table


def run_bench_against(
    filters: Sequence[str],
    half: CorpusHalf,
    working_sets: Sequence[WorkingSet],
    device: str | None,
    rounds: int,
    limit: float,
    json: Path | None,
    jobs: int,
) -> None:
    """Measure the selected part by fusionq and by PyTorch, print tables, write the file.  Exits
    with 1 where a result was wrong, or PyTorch is missing."""
    selection = selected(filters, half, working_sets)
    try:
        torch_version = version("torch")
    except PackageNotFoundError:
        failed("PyTorch is not installed: pip install torch")
    console, queue = begin(device, json, None)
    if not is_gpu(queue):
        bad_use("--against torch is for NVIDIA GPUs: --device cuda")
    console.print(f"driver: {queue.device.driver}; PyTorch {torch_version}", markup=False)
    asked = requests(selection, queue.device.filter_string, rounds)
    results: list[FormResult] = []
    with progress_bar() as progress:
        total = sum(len(r.forms) * len(r.working_sets) for r in asked)
        task = progress.add_task("corpus", total=total)
        for result in run_against(
            asked, limit, jobs, lambda doing: progress.update(task, description=doing)
        ):
            results.append(result)
            progress.advance(task)
            if json is not None:  # an interrupted run keeps what it has
                json.write_text(to_json(results, queue.device, torch_version))
    _show(results)
    for name, reason in WITHOUT_FORM.items():
        if any(name == program for program, *_ in selection.requests):
            console.print(f"{name} has no form of PyTorch: {reason}", markup=False, style="dim")
    if errors := [f"{r.name}: {r.error}" for r in results if r.error is not None]:
        failed("\n".join(errors))


def _show(results: Sequence[FormResult]) -> None:
    console = output()
    for working_set in dict.fromkeys(result.working_set for result in results):
        console.print()
        part = [result for result in results if result.working_set == working_set]
        show_table(console, against_table(part))
        for note in against_notes(part):
            console.print(note, markup=False, style="dim")
    show_table(console, against_summary(summaries(results)))
