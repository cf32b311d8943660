"""The report of one fusion, as users hold it: its data, as text and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fusionq.report.model import ReportModel
from fusionq.report.text import lines

if TYPE_CHECKING:
    from rich.text import Text



class Report(ReportModel):
    """What became of a list of submissions.

    The same for a plan from the cache as for a fresh one, but for ``cache`` and ``timings``.
    ``print(report)`` gives plain text; rich consoles show it in colour.
    """

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
