"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.base.units import format_seconds

_MOST_HEADINGS = 4


def duration(ns: float) -> str:
    """Nanoseconds with three digits and a unit."""
    return format_seconds(ns * 1e-9)


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
