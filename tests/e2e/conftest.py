from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import fusionq as fq
from fusionq.execution import autotune
from tests.e2e.halo_lists import lists, reference_queue, way
from tests.e2e.tuned_lists import Measured, forget
from tests.unit.runtime.conftest import queue, sycl_queue, target

__all__ = ["lists", "queue", "reference_queue", "sycl_queue", "target", "way"]


@pytest.fixture
def reference() -> fq.FusionQueue:
    """A queue on the reference backend."""
    return fq.FusionQueue("reference")


@pytest.fixture
def nothing_is_planned(disk_cache: Path) -> Iterator[None]:
    """A disk cache that is empty, and a process that has planned nothing."""
    forget()
    yield
    forget()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """What was measured; nothing is the fastest until the test says so."""
    made = Measured()
    monkeypatch.setattr(autotune, "medians", made)
    return made
