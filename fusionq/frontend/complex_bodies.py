"""NumPy's complex division, written in the kernel language; ``complex_numbers`` inlines it."""

from __future__ import annotations

from typing import Any


def quotient(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The parts of (a + bj) / (c + dj) by Smith's algorithm, in NumPy's order of operations."""
    if abs(c) >= abs(d):
        if abs(c) == 0 and abs(d) == 0:
            return a / abs(c), b / abs(c)
        ratio = d / c
        scale = 1.0 / (c + d * ratio)
        return (a + b * ratio) * scale, (b - a * ratio) * scale
    ratio = c / d
    scale = 1.0 / (d + c * ratio)
    return (a * ratio + b) * scale, (b * ratio - a) * scale
