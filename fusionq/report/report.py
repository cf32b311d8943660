"""The report of one fusion, as users hold it: its data, as text and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fusionq.analysis.submission import Submission
from fusionq.planning.plan import Plan
from fusionq.report.model import CacheOutcome, ReportModel
from fusionq.report.text import lines

if TYPE_CHECKING:
    from rich.text import Text

    from fusionq.megakernel.schedule import Schedule


class Report(ReportModel):
    """What became of a list of submissions.

    The same for a plan from the cache as for a fresh one, but for ``cache`` and ``timings``.
    ``print(report)`` gives plain text; rich consoles show it in colour.
    """

    @classmethod
    def from_run(
        cls,
        plan: Plan,
        submissions: Sequence[Submission],
        device_sources: tuple[str, ...],
        cache: CacheOutcome,
        timings: dict[str, float],
        schedules: Sequence[Schedule | None] = (),
    ) -> Report:
        """The report of ``submissions`` that ran by ``plan``; nothing is computed yet.

        ``device_sources`` and ``schedules`` have one entry a stage; ``timings`` are seconds by
        phase.
        """
        return cls(
            plan, tuple(submissions), device_sources, cache, dict(timings), tuple(schedules)
        )

    def plot(self, path: str | Path) -> None:
        """Draw the plan to ``path`` (png, svg, pdf): the launches with their submissions and the
        dependences between them; of a persistent kernel its tiles, barrier counters, waits and
        the order of its instructions.

        ArgumentError if ``path`` is no name for a picture; FusionqError without matplotlib.
        """
        from fusionq.report.pictures.fusion import draw_fusion

        draw_fusion(self, Path(path))

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line).rstrip() for line in lines(self))

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text("\n").join(Text.assemble(*line) for line in lines(self))
