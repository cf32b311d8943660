"""Source positions."""

from __future__ import annotations

from fusionq.base.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node comes from: a file, a 1-based line, and that line's text."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NO_SPAN = Span("<generated>", 0)
