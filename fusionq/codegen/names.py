"""User names as identifiers of the device language."""

from __future__ import annotations

import re
from collections.abc import Callable


def _spelled(match: re.Match[str]) -> str:
    """A character that C identifiers do not have: a letter as its code point, others as _."""
    character = match.group()
    return f"u{ord(character):04x}" if character.isalnum() else "_"


class Names:
    """Hands out identifiers: each is legal, unique, and as close to the wanted name as can be."""

    def __init__(self, is_reserved: Callable[[str], bool]) -> None:
        self._is_reserved = is_reserved
        self._taken: set[str] = set()
        self._of: dict[str, str] = {}

    def fresh(self, wanted: str) -> str:
        """A new identifier like ``wanted``."""
        stem = re.sub(r"[^A-Za-z0-9_]", _spelled, wanted)
        if not stem or stem[0].isdigit() or self._is_reserved(stem):
            stem = f"v_{stem.lstrip('_')}"
        identifier, number = stem, 2
        while identifier in self._taken:
            identifier, number = f"{stem}_{number}", number + 1
        self._taken.add(identifier)
        return identifier

    def of(self, name: str) -> str:
        """The identifier for the kernel's name ``name``: one and the same at each call."""
        if name not in self._of:
            self._of[name] = self.fresh(name)
        return self._of[name]
