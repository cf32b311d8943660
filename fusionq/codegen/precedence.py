"""C's operator precedences."""

from __future__ import annotations

from fusionq.ir.text import PRIMARY, PRODUCT, SHIFT, SUM, UNARY

__all__ = [
    "AND", "BIT_AND", "BIT_OR", "BIT_XOR", "CONDITIONAL", "EQUALITY", "OR", "ORDER", "PRIMARY",
    "PRODUCT", "SHIFT", "SUM", "UNARY",
]  # fmt: skip

ORDER, EQUALITY, BIT_AND, BIT_XOR, BIT_OR, AND, OR, CONDITIONAL = 10, 9, 8, 7, 6, 5, 4, 3
