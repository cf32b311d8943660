"""Long computations as generators of short steps, between which they may stop and go on later."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[str, None, T]
"""Yields after each step the phase (``base.phases``) that the step was part of; returns the
result."""
