"""Frozen dataclasses that type checkers keep from being changed, not the interpreter.

For each class ``dataclasses.dataclass(frozen=True)`` compiles two functions more when its module is
imported, and gives it an ``__init__`` that goes through ``object.__setattr__``: with a ``__repr__``
for each a quarter of what importing takes, and a half of what making an IR node does.  Types are
strict here, so that no such assignment gets as far as that.  What users hold, as reports, is frozen
at run time, too.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, **options: Any) -> Any:
        """As ``dataclasses.dataclass``; a frozen class is equal and hashed by its fields, unless
        not ``eq`` or by what the class defines itself."""
        if cls is not None:
            return dataclasses.dataclass(cls)

        def made(cls: type) -> type:
            own = vars(cls)
            hashed = frozen and options.get("eq", True) and own.get("__hash__") is None
            if "__repr__" not in own:
                cls.__repr__ = _represented
            return dataclasses.dataclass(unsafe_hash=hashed, repr=False, **options)(cls)

        return made


def _represented(value: Any) -> str:
    """As a dataclass's own ``__repr__``."""
    shown = [f"{f.name}={getattr(value, f.name)!r}" for f in dataclasses.fields(value) if f.repr]
    return f"{type(value).__qualname__}({', '.join(shown)})"
