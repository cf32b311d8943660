"""The ``fusionq`` command: options and arguments; the work is in the modules beside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fusionq.base.units import parse_quantity

_WORKING_SETS: dict[str, tuple[Literal["tiny", "in cache", "out of cache"], ...]] = {
    "tiny": ("tiny",),
    "in-cache": ("in cache",),
    "out-of-cache": ("out of cache",),
    "both": ("in cache", "out of cache"),
}

app = typer.Typer(
    name="fusionq",
    help="User-driven kernel fusion for SYCL queues.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from fusionq.base.version import __version__

        typer.echo(f"fusionq {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """User-driven kernel fusion for SYCL queues."""


cache = typer.Typer(help="Look at the disk cache, or empty it.", no_args_is_help=True)
app.add_typer(cache, name="cache")


def parse_size(text: str) -> int:
    """A number of elements: ``1000``, ``1_000``, ``1k``, ``100M``; BadParameter otherwise."""
    try:
        size = parse_quantity(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no number of elements, such as 1000 or 100M"
        ) from None
    if size < 1:
        raise typer.BadParameter(f"a size is at least 1, not {text}")
    return size


@app.command()
def devices() -> None:
    """List the devices that queues can run on."""
    from fusionq.cli.devices import show_devices

    show_devices()


@app.command()
def bench(
    cases: Annotated[
        list[str] | None, typer.Argument(metavar="[CASE]...", help="Default: all; see --list.")
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            parser=parse_size, metavar="N", help="Elements, such as 100M. May be repeated."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="D", help="A SYCL filter string, or reference.")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Interleaved rounds to take medians over (15; corpus: 5)."
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results as JSON.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the results (png, svg, pdf).")
    ] = None,
    single: Annotated[
        bool, typer.Option("--single", help="One run at a time, each waited for, not in batches.")
    ] = False,
    dpex_python: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="The Python of an environment with numba-dpex, to compare with."
        ),
    ] = None,
    half: Annotated[
        Literal["fit", "report", "all"] | None,
        typer.Option(help="Of the corpus: the half to fit on, to report on, or all (all)."),
    ] = None,
    working_set: Annotated[
        Literal["tiny", "in-cache", "out-of-cache", "both"] | None,
        typer.Option(help="Of the corpus: which size (both: in and out of cache)."),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="SECONDS", help="Of the corpus: for a candidate's first run (120)."
        ),
    ] = None,
    learning_only: Annotated[
        bool,
        typer.Option(
            "--learning-only", help="Of the corpus: only auto that has learned, and its candidates."
        ),
    ] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Of the corpus: times of replays, of the unfused list too: CUDA graphs on a GPU.",
        ),
    ] = False,
    busy: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Of the corpus: beside so many processes that compute (0)."
        ),
    ] = 0,
    against: Annotated[
        Literal["torch"] | None,
        typer.Option(help="Of the corpus, on a GPU: against PyTorch, eager and by torch.compile."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="With --against: programs that are compiled at a time (1)."
        ),
    ] = None,
    list_cases: Annotated[bool, typer.Option("--list", help="List the cases and stop.")] = False,
) -> None:
    """Run benchmark cases, check every result, and compare with the baselines.

    `corpus` and names of its programs (patterns such as `jacobi*` or `jacobi_2d/interior`) run
    programs from the literature by every strategy.
    """
    if cases and cases[0] == "corpus":
        from fusionq.cli import bench_corpus

        if size or dpex_python:
            raise typer.BadParameter("--size and --dpex-python are not for the corpus")
        part = half or "all"
        if list_cases:
            bench_corpus.show_programs(cases[1:], part)
            return
        if against is not None:
            if plot or learning_only or single or replay or busy:
                raise typer.BadParameter(
                    "--against takes no --plot, --learning-only, --single, --replay and --busy"
                )
            from fusionq.cli.bench_against import run_bench_against

            sets = _WORKING_SETS[working_set or "both"]
            run_bench_against(
                cases[1:], part, sets, device, rounds or 5, limit or 300, json, jobs or 1
            )
            return
        if jobs is not None:
            raise typer.BadParameter("--jobs is for --against")
        bench_corpus.run_bench_corpus(
            cases[1:],
            part,
            _WORKING_SETS[working_set or "both"],
            device,
            rounds or 5,
            limit or 120,
            json,
            plot,
            learning_only=learning_only,
            single=single,
            replay=replay,
            busy_processes=busy,
        )
        return
    if half or working_set or limit or learning_only or replay or busy or against or jobs:
        raise typer.BadParameter(
            "options of the corpus are for: fusionq bench corpus (--half, --working-set, --limit, "
            "--learning-only, --replay, --busy, --against, --jobs)"
        )
    from fusionq.cli import bench as command

    if list_cases:
        command.show_cases()
    else:
        command.run_bench(
            cases or [], size or [], device, rounds or 15, json, plot, single, dpex_python
        )


@app.command(context_settings={"ignore_unknown_options": True})
def explain(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", help="A Python script.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARG]...", help="The script's own arguments.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the plan (png, svg, pdf). Fusions that differ get a picture each: FILE-1, "
            "FILE-2, by the number of the fusion.",
        ),
    ] = None,
) -> None:
    """Run a script and print the report of each fusion."""
    from fusionq.cli.explain import explain_script

    raise typer.Exit(explain_script(script, arguments or [], plot))


@app.command(context_settings={"ignore_unknown_options": True})
def profile(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", help="A Python script.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARG]...", help="The script's own arguments.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Perfetto trace.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the timeline (png, svg, pdf).")
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results as JSON.")
    ] = None,
    compare: Annotated[
        bool, typer.Option(help="Also run each fused list unfused, on copies, and compare.")
    ] = True,
) -> None:
    """Run a script and show what its kernels did with their time."""
    from fusionq.cli.profile import profile_script

    raise typer.Exit(profile_script(script, arguments or [], trace, plot, json, compare))


@cache.command("info")
def cache_info() -> None:
    """Show where the disk cache is and what it holds."""
    from fusionq.cli.cache import show_cache

    show_cache()


@cache.command("clear")
def cache_clear() -> None:
    """Remove everything from the disk cache."""
    from fusionq.cli.cache import clear_cache

    clear_cache()


def main() -> None:
    """The entry point."""
    app()
