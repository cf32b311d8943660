"""Launches of small persistent kernels beside busy processes: none wrong, none stuck."""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import fusionq as fq
from tests.property.list_runs import made, submit, unfused
from tests.property.programs import Program
from tests.property.running import assert_identical
from tests.property.stage_programs import stage_programs
from tests.property.tilings import random_tilings
from tools.long_runs.piece import Piece

LISTS, LAUNCHES = 8, 2500
"""Persistent kernels of one piece, and launches of each."""


def run(piece: Piece, busy: int) -> None:
    """Random lists as persistent kernels of random tiles, launched again and again, all from the
    same memory; each time all that they leave is compared with the unfused run's."""
    counts = piece.result.counts
    kernels = 0

    def check(program: Program) -> None:
        nonlocal kernels
        if kernels == LISTS or any(spec.flag != "none" for spec in program.buffers):
            return
        launched = _launch(program, random.Random(piece.seed + kernels).getrandbits(30), piece)
        kernels += launched > 0
        counts["launches"] += launched
        counts["persistent kernels"] += launched > 0

    warnings.simplefilter("error", fq.FusionAborted)
    with np.errstate(all="ignore"), _busy_processes(busy):
        piece.draw(stage_programs(), 50 * LISTS, check)
    piece.result.cases = counts["launches"]


def _launch(program: Program, tiles: int, piece: Piece) -> int:
    """Launch the list; how often, 0 where it did not become one persistent kernel."""
    expected = unfused(program, None)
    with fq.FusionQueue() as queue, random_tilings(tiles):
        buffers = made(program)
        with fq.fusion(queue, strategy="megakernel", barriers="none", promote="none") as f:
            submit(queue, program, buffers)
        if not any(stage.tiled for stage in f.report.stages):
            return 0
        arrays = [buffer.numpy() for buffer in buffers]
        first: list[bytes] = []
        for number in range(LAUNCHES):
            if number:
                for array, spec in zip(arrays, program.buffers, strict=True):
                    array[...] = spec.data
                f.replay().wait()
            found = [array.tobytes() for array in arrays]
            if found != first:
                assert_identical(arrays, expected)  # equal but for the payload of NaNs
                first = found
            if number % 100 == 0:
                piece.begin(f"# launch {number}, tiles {tiles}\n{program!r}")
    return LAUNCHES


@contextmanager
def _busy_processes(number: int) -> Iterator[None]:
    """So many processes compute for as long as the block runs."""
    code = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(10 ** 6))"
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(number)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
