"""Loops that only poll whether memory has changed, where one work-item runs at a time."""

from __future__ import annotations

from collections.abc import Iterator

from fusionq.base.errors import DeviceError
from fusionq.base.span import Span

MOST_POLLS = 10_000
"""The host may change memory meanwhile; nobody else can."""


def waiting(loop: Span) -> Iterator[None]:
    """The iterations of ``loop``; DeviceError where it does not end."""
    for _ in range(MOST_POLLS):
        yield
    raise DeviceError(
        f"{loop}: livelock: this loop waits until memory changes, and nothing that runs changes "
        f"it\n    {loop.text}\n  SYCL does not promise that a work-item makes progress while "
        "others wait for it.  Submit what writes before what reads."
    )
