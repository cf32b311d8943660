"""Damaged entries of the disk cache: the run is as if they were not there."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import fusionq as fq
from tests.property.damaged_entries import KINDS, ON_DEVICES, Case, cases
from tests.property.damaged_entry_checks import DamagedRuns, check_damaged
from tools.long_runs.piece import Piece

DAMAGED = 200
"""In one piece."""


def run(piece: Piece, busy: int) -> None:
    """Caches of one device, every third piece's the SYCL device."""
    on_device = piece.result.piece % 3 == 0
    counts = piece.result.counts
    warnings.simplefilter("ignore", RuntimeWarning)
    with (
        tempfile.TemporaryDirectory() as directory,
        fq.FusionQueue(None if on_device else "reference") as queue,
    ):
        runs = DamagedRuns(Path(directory), queue)

        def check(case: Case) -> None:
            found = check_damaged(runs, case)
            counts[f"{'sycl' if on_device else 'reference'}, from {found}"] += 1

        piece.draw(cases(ON_DEVICES if on_device else tuple(KINDS)), DAMAGED, check)
