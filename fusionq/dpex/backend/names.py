"""User names as Python identifiers."""

from __future__ import annotations

import builtins
import keyword
import re

from fusionq.codegen.names import Names
from fusionq.dpex.backend.helpers import PREFIX


class PythonNames(Names):
    """Hands out identifiers: each is legal, unique, and as close to the wanted name as can be."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken | {*keyword.kwlist, *dir(builtins)}
        self._of: dict[str, str] = {}

    def fresh(self, wanted: str) -> str:
        """A new identifier like ``wanted``."""
        stem = re.sub(r"\W", "_", wanted) or "_"
        identifier = stem = f"v_{stem}" if stem[0].isdigit() or stem.startswith(PREFIX) else stem
        number = 2
        while identifier in self._taken:
            identifier, number = f"{stem}_{number}", number + 1
        self._taken.add(identifier)
        return identifier
