"""Kernels whose source text has been changed: a result, or an error of fusionq."""

from __future__ import annotations

import warnings

from hypothesis import strategies as st

from fusionq.base.options import Check
from tests.property.changed_kernel_checks import CHECKS, check_changed
from tests.property.changed_kernels import ChangedKernel, changed_kernels
from tools.long_runs.piece import Piece

KERNELS = 500
"""In one piece."""


def run(piece: Piece, busy: int) -> None:
    """Changed kernels, every fourth piece's built for the SYCL device."""
    target, device = (None, "sycl") if piece.result.piece % 4 == 3 else ("reference", "reference")
    counts = piece.result.counts

    def check(case: tuple[ChangedKernel, Check]) -> None:
        counts[f"{device}, {check_changed(case[0], target, case[1])}"] += 1

    warnings.simplefilter("ignore")
    piece.draw(st.tuples(changed_kernels(), st.sampled_from(CHECKS)), KERNELS, check)
