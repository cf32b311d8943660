"""Long lines on a terminal, and where the output is piped."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from fusionq.cli.console import show_lines

LINE = "  a report: " + "word " * 12 + "end"


def shown(terminal: bool) -> list[str]:
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=terminal, width=40, color_system=None, highlight=False
    )
    show_lines(console, Text("short\n\n") + Text(LINE))
    return file.getvalue().splitlines()


def test_terminals_get_whole_words_under_their_line() -> None:
    short, blank, first, *rest = shown(terminal=True)
    assert (short, blank) == ("short", "")
    assert first.startswith("  a report: word")
    assert rest
    assert all(line.startswith("    ") and line[4] != " " for line in rest)
    assert all(len(line) <= 40 for line in (first, *rest))
    assert " ".join([first.strip(), *(line.strip() for line in rest)]) == LINE.strip()


def test_pipes_get_whole_lines() -> None:
    assert shown(terminal=False) == ["short", "", LINE]
