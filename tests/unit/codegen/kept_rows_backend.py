"""The reference backend with the planning of a GPU, on which kernels run with rows of arrays in
registers, as they are printed for GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.base.target import FloatMode
from fusionq.codegen.kept_rows import with_kept_rows
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import Kernel
from fusionq.ir.verifier import verify
from fusionq.planning import kept_launches
from tests.unit.cuda.compile_only import TARGET


class KeepingBackend(ReferenceBackend):
    """``built``: kernels, and what they became where rows are kept."""

    def __init__(self) -> None:
        super().__init__(order="shuffled")
        self.target = replace(TARGET)  # another one, so that programs are its own
        self.built: list[tuple[Kernel, Kernel | None]] = []

    def build(self, kernel: Kernel, fp: FloatMode) -> Any:
        kept = with_kept_rows(kernel, flatten_blocks(kernel.body), loads_early=True)
        made = None
        if kept is not None:
            made = replace(kept.kernel, body=kept.early + kept.body, kept_turns=None)
            verify(made)
        self.built.append((kernel, made))
        return super().build(made or kernel, fp)


@contextmanager
def keeping_queue(turns: tuple[int, ...] = (1, 2, 3, 5)) -> Iterator[Any]:
    """A queue on a new such backend, and the backend; rows are kept if they are as long as so many
    times a work-group of any size."""
    backend = KeepingBackend()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "backend_for", lambda target, profiling=False: backend)
        patch.setattr(kept_launches, "TURNS", turns)
        patch.setattr(kept_launches, "FEWEST_LANES", 1)
        with fq.FusionQueue() as queue:
            yield queue, backend
