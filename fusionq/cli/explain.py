"""``fusionq explain``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusionq.cli.console import output, show_lines
from fusionq.cli.scripts import run_script
from fusionq.queue_state import report_listeners
from fusionq.report import Report


def explain_script(script: Path, arguments: Sequence[str]) -> int:
    """Run ``script`` as ``__main__`` and print the report of each fusion when it is complete.

    Returns the script's exit code: its own, or 1 where an exception ended it.
    """
    console = output()

    def show(report: Report) -> None:
        show_lines(console, report.__rich__())
        console.print()

    report_listeners.append(show)
    try:
        return run_script(script, arguments)
    finally:
        report_listeners.remove(show)
