"""Runs of hours that look for what no test has found.

    python -m tools.long_runs lists --cases 20000 --directory long
    python -m tools.long_runs mixed --cases 5000 --directory long
    python -m tools.long_runs launches --cases 1000000 --busy 4 --directory long
    python -m tools.long_runs frontend --seconds 3600 --directory long
    python -m tools.long_runs cache --seconds 3600 --directory long

The same command again goes on where it was left, and ends at once where nothing is left to do.
Findings are printed with the case's source.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from fusionq.planning import overlap_choice
from tools.long_runs.pieces import Run

COMMANDS = ("lists", "mixed", "launches", "frontend", "cache")
"""Modules beside this one; each one's ``run`` does one piece."""


def main() -> int:
    """Run the command line."""
    # A list that is planned too slowly runs unfused, and shows nothing.
    os.environ.setdefault("FUSIONQ_PLANNING_SECONDS", "inf")
    overlap_choice.MOST_LONGER = float("inf")  # so does one whose halos would take too long
    parser = argparse.ArgumentParser(
        prog="python -m tools.long_runs", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("command", choices=COMMANDS, help="what to look at")
    parser.add_argument("--cases", type=int, default=1 << 60, help="end after so many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--seed", type=int, default=0, help="another has other cases")
    parser.add_argument("--jobs", type=int, default=1, help="pieces at once")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside it")
    parser.add_argument(
        "--case-seconds", type=float, default=600, help="a case that takes longer is a finding"
    )
    parser.add_argument(
        "--device", choices=("sycl", "cuda"), default="sycl", help="where lists and mixed run"
    )
    parser.add_argument("--directory", type=Path, required=True, help="where results are kept")
    parser.add_argument("--piece", type=int, help=argparse.SUPPRESS)  # one piece, in this process
    given = parser.parse_args()
    if given.piece is not None:
        return _piece(given)
    if given.cases == 1 << 60 and given.seconds == float("inf"):
        parser.error("say when it ends: --cases, --seconds or both")
    arguments = ["--seed", str(given.seed), "--busy", str(given.busy), "--device", given.device]
    run = Run(
        given.command, given.directory.resolve(), given.cases, given.seconds, given.case_seconds,
        given.jobs, arguments,
    )  # fmt: skip
    return run.go()


def _piece(given: argparse.Namespace) -> int:
    from tools.long_runs.piece import Piece

    piece = Piece(given.command, given.piece, given.directory, given.seed, given.device)
    importlib.import_module(f"tools.long_runs.{given.command}").run(piece, given.busy)
    piece.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
