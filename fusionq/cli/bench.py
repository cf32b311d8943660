"""``fusionq bench``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

import fusionq as fq
from fusionq.base.call_site import user_span
from fusionq.base.errors import DeviceError
from fusionq.benchmarks import (
    first_fusion,
    host_cost,
    peak_memory,
    planning,
    profiling_overhead,
    warm_start,
)
from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.cases import CASES
from fusionq.benchmarks.planning_lists import FAMILIES
from fusionq.benchmarks.plot import save_plot
from fusionq.benchmarks.results import CaseResult, Result, to_json
from fusionq.benchmarks.runner import run_case
from fusionq.benchmarks.table import case_notes, case_table, special_table
from fusionq.cli.console import bad_use, check_files, failed, output, progress_bar, show_table
from fusionq.cli.explain import check_plot

SPECIAL = {
    module.NAME: module.DESCRIPTION
    for module in (host_cost, first_fusion, warm_start, peak_memory, planning, profiling_overhead)
}
UNASKED = [name for name in SPECIAL if name not in (planning.NAME, profiling_overhead.NAME)]
"""What runs beside the cases where none is named: the others take minutes, and planning's sizes are
lengths of lists."""
CHILD_ROUNDS = 5
"""Fresh processes for a median."""
HOST_ROUNDS_FACTOR = 20
"""Rounds of microseconds: many more fit."""


def show_cases() -> None:
    """A table of all cases."""
    table = Table(title="Benchmark cases")
    for heading in ("case", "what it does", "default sizes"):
        table.add_column(heading)
    for case in CASES.values():
        table.add_row(case.name, case.description, ", ".join(f"{size:,}" for size in case.sizes))
    for name, description in SPECIAL.items():
        table.add_row(name, description, "")
    table.add_row("corpus", "programs from the literature: fusionq bench corpus --list", "")
    show_table(output(), table)


def run_bench(
    names: Sequence[str],
    sizes: Sequence[int],
    device: str | None,
    rounds: int,
    json: Path | None,
    plot: Path | None,
    single: bool = False,
    dpex_python: Path | None = None,
) -> None:
    """Run the named cases (none: all), print a table for each as it is done, write files."""
    if dpex_python is not None and not dpex_python.is_file():
        bad_use(f"--dpex-python: there is no interpreter {dpex_python}")
    unknown = [name for name in names if name not in CASES and name not in SPECIAL]
    if unknown:
        bad_use(f"there is no case {', '.join(unknown)}; see fusionq bench --list")
    console, queue = begin(device, json, plot)
    results: list[Result] = []
    try:
        for result in _results(
            names or [*CASES, *UNASKED], sizes, queue, device, rounds, single, dpex_python
        ):
            results.append(result)
            console.print()
            if isinstance(result, CaseResult):
                show_table(console, case_table(result))
                for note in case_notes(result):
                    console.print(note, markup=False, style="dim")
            else:
                show_table(console, special_table(result))
    except AssertionError as error:
        failed(f"a result is wrong: {error}")
    except MemoryError:
        failed("there is not enough memory for this size; give a smaller --size")
    if json is not None:
        json.write_text(to_json(results, queue.device))
    if plot is not None:
        try:
            save_plot(results, plot)
        except (Unavailable, ValueError) as reason:
            failed(f"no plot: {reason}")


def begin(
    device: str | None, json: Path | None, plot: Path | None
) -> tuple[Console, fq.FusionQueue]:
    """Where to print, and a queue on the device, which is printed; exits with 2 where a file could
    not be written, or drawn, or there is no such device.  What is measured are plans, however long
    they take to make, by the cost model where no strategy is asked for, unless the environment
    says otherwise."""
    os.environ.setdefault("FUSIONQ_PLANNING_SECONDS", "inf")
    os.environ.setdefault("FUSIONQ_ADAPT", "0")
    check_files(json)
    if plot is not None:
        check_plot(plot)
    try:
        queue = fq.FusionQueue(device)
    except DeviceError as error:
        (failed if device is None else bad_use)(str(error).removeprefix(f"{user_span()}: "))
    console = output()
    console.print(f"device: {queue.device.name} ({queue.device.filter_string})", markup=False)
    return console, queue


def _results(
    names: Sequence[str],
    sizes: Sequence[int],
    queue: fq.FusionQueue,
    device: str | None,
    rounds: int,
    single: bool,
    dpex_python: Path | None,
) -> Iterator[Result]:
    for name in names:
        if name in CASES:
            for size in sizes or CASES[name].sizes:
                yield _case_result(name, size, queue, rounds, single, dpex_python)
            continue
        with progress_bar() as progress:
            task = progress.add_task(name, total=None)
            if name == host_cost.NAME:
                yield host_cost.run_host_cost(queue, rounds * HOST_ROUNDS_FACTOR)
            elif name == first_fusion.NAME:
                yield first_fusion.run_first_fusion(device, min(rounds, CHILD_ROUNDS))
            elif name == warm_start.NAME:
                yield warm_start.run_warm_start(device, min(rounds, CHILD_ROUNDS))
            elif name == profiling_overhead.NAME:
                yield profiling_overhead.run_profiling_overhead(queue, rounds)
            elif name == planning.NAME:
                yield from _planning(device, sizes or planning.LENGTHS, progress, task)
            else:
                for size in sizes or [peak_memory.SIZE]:
                    yield peak_memory.run_peak_memory(device, size)


def _planning(
    device: str | None, lengths: Sequence[int], progress: Progress, task: TaskID
) -> Iterator[Result]:
    """Of each family of lists and length."""
    progress.update(task, total=len(FAMILIES) * len(lengths))
    for result in planning.run_planning(
        device, lengths, doing=lambda what: progress.update(task, description=f"planning {what}")
    ):
        progress.advance(task)
        yield result


def _case_result(
    name: str,
    size: int,
    queue: fq.FusionQueue,
    rounds: int,
    single: bool,
    dpex_python: Path | None,
) -> CaseResult:
    with progress_bar() as progress:
        task = progress.add_task(name, total=None)

        def report(what: str, done: int, total: int) -> None:
            progress.update(
                task,
                description=f"{name}, {size:,} elements: {what}",
                completed=done,
                total=total or None,
            )

        return run_case(CASES[name], size, queue, rounds, report, single, dpex_python)
