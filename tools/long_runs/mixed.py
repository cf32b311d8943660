"""Random lists with halos or work-groups in persistent kernels, commands, reductions, as graphs."""

from __future__ import annotations

from tests.property.strategy_checks import MIXED
from tools.long_runs.lists import run_lists
from tools.long_runs.piece import Piece


def run(piece: Piece, busy: int) -> None:
    """Lists on one device; every third piece's is the reference backend, which takes longer."""
    run_lists(piece, MIXED, piece.result.piece % 3 != 2)
