"""C's operator precedences, and source text that knows its own."""

from __future__ import annotations

from typing import NamedTuple

PRIMARY, UNARY, PRODUCT, SUM, SHIFT, ORDER, EQUALITY = 15, 14, 13, 12, 11, 10, 9
BIT_AND, BIT_XOR, BIT_OR, AND, OR, CONDITIONAL = 8, 7, 6, 5, 4, 3


class Text(NamedTuple):
    """Source text and the precedence of its outermost operator."""

    text: str
    precedence: int

    def at(self, precedence: int) -> str:
        """The text as an operand of an operator that needs at least ``precedence``."""
        return self.text if self.precedence >= precedence else f"({self.text})"
