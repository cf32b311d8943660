"""Random lists by every strategy: fused against unfused, device against reference."""

from __future__ import annotations

import warnings

import numpy as np

import fusionq as fq
from tests.property.strategy_checks import GENERATORS, ListCase, check_list, list_cases
from tools.long_runs.piece import Piece

LISTS = 100
"""In one piece."""


def run(piece: Piece, busy: int) -> None:
    """Lists of one generator on one device; every third piece's is the SYCL device."""
    number = piece.result.piece
    generator = tuple(GENERATORS)[number // 3 % len(GENERATORS)]
    target, device = (None, "sycl") if number % 3 == 0 else ("reference", "reference")
    counts = piece.result.counts

    def check(case: ListCase) -> None:
        report = check_list(case, target)
        counts[f"{device}, {generator}"] += 1
        counts[f"{device}, {case.strategy} asked, {report.strategy} run"] += 1
        counts[f"{device}, persistent kernels"] += sum(bool(s.tiled) for s in report.stages)

    warnings.simplefilter("error", fq.FusionAborted)
    with np.errstate(all="ignore"):
        piece.draw(list_cases(generator), LISTS, check)
