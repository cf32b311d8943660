"""Random lists with halos or work-groups in persistent kernels, commands, reductions, as graphs."""

from __future__ import annotations

from tests.property.strategy_checks import mixed_cases
from tools.long_runs.lists import run_lists
from tools.long_runs.piece import Piece


def run(piece: Piece, busy: int) -> None:
    """Lists of one kind on one device; every third piece's is the reference backend, which takes
    longer, unless it is a GPU."""
    number, on_gpu = piece.result.piece, piece.device == "cuda"
    kinds = mixed_cases(sub_groups=not on_gpu)  # whose sizes differ from those in Python
    run_lists(piece, "mixed", kinds[number % len(kinds)], on_gpu or number % 3 != 2)
