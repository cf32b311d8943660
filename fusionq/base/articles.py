"""The indefinite article of a noun, for messages that name types."""

from __future__ import annotations

import re

_VOWEL = re.compile(r"[aeio]|u(?!int|ni)|nd", re.IGNORECASE)
"""How nouns begin that are spoken with a vowel first: `uint8` is not, `ndarray` is."""


def with_article(noun: str) -> str:
    """``noun`` behind ``a`` or ``an``."""
    return f"{'an' if _VOWEL.match(noun) else 'a'} {noun}"
