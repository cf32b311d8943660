"""The options of a fusion, as the queue carries them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, TypeAlias

from fusionq.base.errors import ArgumentError
from fusionq.base.target import FloatMode

OptionValues: TypeAlias = tuple[Any, Any, bool, Any, Any, bool]
"""strategy, barriers, require, promote, fp, tune; see ``fusion``."""

Strategy: TypeAlias = Literal["auto", "fused", "megakernel", "sequence", "unfused"]
Barriers: TypeAlias = Literal["auto", "all", "none"]
Promote: TypeAlias = Literal["flagged", "internal", "none"]

_CHOICES: dict[str, tuple[object, ...]] = {
    "strategy": ("auto", "fused", "megakernel", "sequence", "unfused"),
    "barriers": ("auto", "all", "none"),
    "require": (False, True),
    "promote": ("flagged", "internal", "none"),
    "fp": ("strict", "fast"),
    "tune": (False, True),
}


@lru_cache(maxsize=256)
def option_values(
    strategy: Strategy = "auto",
    barriers: Barriers = "auto",
    require: bool = False,
    promote: Promote = "flagged",
    fp: FloatMode = "strict",
    tune: bool = False,
) -> OptionValues:
    """The options, checked: ArgumentError for a value that there is not, and for options that
    contradict each other."""
    values = (strategy, barriers, require, promote, fp, tune)
    for (name, allowed), value in zip(_CHOICES.items(), values, strict=True):
        if value not in allowed:
            raise ArgumentError(
                f"the fusion option {name}={value!r} is not one of {', '.join(map(repr, allowed))}"
            )
    if tune and strategy != "auto":
        raise ArgumentError(
            f"tune=True measures which strategy is the fastest, and strategy={strategy!r} says "
            "which to take; leave one of the two out"
        )
    return values


DEFAULT = option_values()
UNFUSED = option_values(strategy="unfused")
"""Each submission by itself, as outside fusion mode."""
