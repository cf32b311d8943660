"""The words for what one submission needs of another."""

from __future__ import annotations

from typing import Literal

Scope = Literal["NONE", "ITEM", "GROUP", "GLOBAL", "UNKNOWN"]
"""The work-items that touch an element: none, one and the same, some of one group, some of
several; or it is not known."""

DependenceKind = Literal["RAW", "WAR", "WAW"]
