"""One piece of a long run, inside its process: cases drawn by Hypothesis from a seed."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from tools.long_runs.pieces import Finding, PieceResult

T = TypeVar("T")


class Piece:
    """The cases of piece ``number`` of a run of ``command`` on ``device``, and what is found."""

    def __init__(
        self, command: str, number: int, directory: Path, seed: int, device: str = "sycl"
    ) -> None:
        self.command = command
        self.device = device
        self.result = PieceResult(number)
        self.seed = seed * 1_000_003 + number
        self._case = directory / f"{command}-{number}.case"
        self._directory = directory

    def begin(self, case: object) -> None:
        """Tell what runs next, for whoever has to find out why this process has gone."""
        self._case.write_text(str(case), encoding="utf-8")

    def draw(
        self, strategy: st.SearchStrategy[T], cases: int, check: Callable[[T], object]
    ) -> None:
        """Check so many examples; the first that raises becomes as small as it gets, is kept as a
        finding, and ends the piece."""
        failed: list[Finding] = []

        @seed(self.seed)
        @settings(
            max_examples=cases, database=None, deadline=None, verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False, print_blob=False,
        )  # fmt: skip
        @given(strategy)
        def each(example: T) -> None:
            self.begin(example)
            try:
                check(example)
            except Exception:
                failed[:] = [Finding(traceback.format_exc(), repr(example))]
                raise
            if not failed:
                self.result.cases += 1

        try:
            each()
        except Exception:
            if not failed:
                raise
        self.result.findings += failed

    def end(self) -> None:
        """Keep the result."""
        self.result.write(self._directory, self.command)
