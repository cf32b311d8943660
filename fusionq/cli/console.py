"""Output for people on a terminal, and plain where it is piped."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 200


def output() -> Console:
    """Standard output; wide and without colour where it is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPED_WIDTH, no_color=True)
    return console


def errors() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def show_table(console: Console, table: Table) -> None:
    """Print ``table``, with rules on a terminal, with spaces alone where piped."""
    console.print(table.title, style="bold")
    table.title = None
    table.pad_edge = False
    table.box = box.SIMPLE_HEAD if console.is_terminal else None
    table.padding = (0, 1) if console.is_terminal else (0, 2, 0, 0)
    console.print(table)


def show_lines(console: Console, text: Text) -> None:
    """Print ``text``; on a terminal each line is wrapped between words and the rest of it
    indented under its beginning."""
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        return
    for line in text.split("\n", allow_blank=True):
        indent = len(line.plain) - len(line.plain.lstrip()) + 2
        width = console.width - indent
        pieces = line.wrap(console, width) if len(line.plain) > console.width else [line]
        for number, piece in enumerate(pieces):
            console.print(" " * indent if number else "", piece, sep="", soft_wrap=True)


def progress_bar() -> Progress:
    """A progress bar on standard error; nothing where that is no terminal."""
    console = errors()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def bad_use(message: str) -> NoReturn:
    """Say what is wrong with the command line, and exit with 2."""
    errors().print(f"fusionq: {message}", style="red", markup=False)
    raise typer.Exit(2)


def check_files(*files: Path | None) -> None:
    """Exit with 2 where one could not be written, before anything has run."""
    for path in files:
        if path is not None and not path.parent.is_dir():
            bad_use(f"cannot write {path}: there is no folder {path.parent}")
        if path is not None and path.is_dir():
            bad_use(f"cannot write {path}: it is a folder; give a file's name")


def failed(message: str) -> NoReturn:
    """Say what went wrong, and exit with 1."""
    errors().print(f"fusionq: {message}", style="red", markup=False)
    raise typer.Exit(1)
