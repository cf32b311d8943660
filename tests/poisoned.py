"""Memory that is not filled has contents that no kernel leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import fusionq as fq
from fusionq.submission import overwritten_memory


@contextmanager
def poisoned(queue: fq.FusionQueue, least: int = 0) -> Iterator[list[int]]:
    """Inside of the block that is so of new memory of ``least`` bytes and more; gives the bytes of
    each."""
    found: list[int] = []

    def unfilled(self: Any, nbytes: int) -> Any:
        found.append(nbytes)
        return self.filled(nbytes, np.full(nbytes, 0xAD, np.uint8))

    backend = type(queue._state.launcher.backend)
    with (
        patch.object(overwritten_memory, "LEAST", least),
        patch.object(backend, "unfilled", unfilled),
    ):
        yield found
