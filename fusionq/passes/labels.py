"""The headings of a fused kernel's blocks, one for each submission: its number and its kernel.

The numbers are those among the launch's submissions, so that launches that are alike have one
kernel, and one program; people are shown those of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusionq.ir.nodes import Block, Kernel, Stmt
from fusionq.ir.walk import rewrite_body


def label(number: int, name: str) -> str:
    """The heading of submission ``number``, of kernel ``name``."""
    return f"{number}: {name}"


def number_in(label: str) -> int | None:
    """The number in a heading; None if it has none, as that of a lone submission."""
    number, colon, _ = label.partition(": ")
    return int(number) if colon and number.isdigit() else None


def renumbered(kernel: Kernel, numbers: Sequence[int]) -> Kernel:
    """``kernel`` with ``numbers`` by those that its headings have."""

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Block) and (number := number_in(s.label)) is not None:
            return (replace(s, label=label(numbers[number], s.label.partition(": ")[2])),)
        return (s,)

    return replace(kernel, body=rewrite_body(kernel.body, stmt=stmt))
