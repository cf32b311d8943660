"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_HEADINGS = 4


def duration(ns: float) -> str:
    """Nanoseconds with three digits and a unit."""
    if ns == 0:
        return "0 ns"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{_three(ns / size)} {unit}"
    return f"{_three(ns)} ns"


def nbytes(number: float) -> str:
    """Bytes with three digits and a unit (powers of 1000)."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(number) >= size:
            return f"{_three(number / size)} {unit}"
    return f"{number:.0f} B"


def _three(value: float) -> str:
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"


def percent(share: float) -> str:
    """A part of the whole, such as ``12.3 %``."""
    return f"{100 * share:.1f} %"


def count(number: int, one: str, many: str | None = None) -> str:
    """Such as ``1 launch`` and ``2 launches``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def joined(headings: Sequence[str]) -> str:
    """Submissions that ran together; of many the first and the last."""
    if len(headings) <= _MOST_HEADINGS:
        return " + ".join(headings)
    return f"{headings[0]} + … + {headings[-1]} ({len(headings)} submissions)"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], indent: str = "  ") -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    if not rows:
        return []
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    return [
        indent
        + "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]
