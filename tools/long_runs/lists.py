"""Random lists by every strategy: fused against unfused, device against reference."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import strategies as st

import fusionq as fq
from tests.property.strategy_checks import GENERATORS, ListCase, check_list, list_cases, ways
from tools.long_runs.piece import Piece

LISTS = 100
"""In one piece."""


def run(piece: Piece, busy: int) -> None:
    """Lists of one generator on one device: every third piece's, and all on a GPU, is the device,
    the others' is the reference backend."""
    number = piece.result.piece
    generators = tuple(GENERATORS)
    generator = generators[number // 3 % len(generators)]
    run_lists(piece, generator, list_cases(generator), piece.device == "cuda" or number % 3 == 0)


def run_lists(
    piece: Piece, generator: str, cases: st.SearchStrategy[ListCase], on_device: bool
) -> None:
    """Lists of a generator, drawn from ``cases``, on the piece's device or the reference backend,
    with what they become and which ways they have been through."""
    device = piece.device if on_device else "reference"
    target = None if device == "sycl" else device
    counts = piece.result.counts

    def check(case: ListCase) -> None:
        report = check_list(case, target)
        counts[f"{device}, {generator}"] += 1
        counts[f"{device}, {case.strategy} asked, {report.strategy} run"] += 1
        counts[f"{device}, persistent kernels"] += sum(bool(s.tiled) for s in report.stages)
        for way in ways(case, report):
            counts[f"{device}, {way}"] += 1

    warnings.simplefilter("error", fq.FusionAborted)
    with np.errstate(all="ignore"):
        piece.draw(cases, LISTS, check)
