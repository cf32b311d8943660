"""Source text that knows how strongly its outermost operator binds."""

from __future__ import annotations

from typing import NamedTuple

PRIMARY, UNARY, PRODUCT, SUM, SHIFT = 16, 14, 13, 12, 11
"""Precedences on which C and Python agree."""


class Text(NamedTuple):
    """Source text and the precedence of its outermost operator."""

    text: str
    precedence: int

    def at(self, precedence: int) -> str:
        """The text as an operand of an operator that needs at least ``precedence``."""
        return self.text if self.precedence >= precedence else f"({self.text})"
