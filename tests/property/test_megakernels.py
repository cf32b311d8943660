"""Random lists of submissions as persistent kernels, and unfused: bit for bit the same."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.megakernel import schedule
from fusionq.megakernel.tiling import Assignment, Tiling
from tests.property.kernel_expressions import Features
from tests.property.programs import Program, programs
from tests.property.running import assert_identical, examples, needs_device
from tests.property.stage_programs import stage_programs
from tests.property.test_programs import made, submit, unfused

EXACT = Features(statements=3, transcendental=False)
SEEDS = st.integers(0, 1 << 30)
ASSIGNMENTS: tuple[Assignment, ...] = ("stages", "turns", "tickets")
REPLAYS = 3


@contextmanager
def random_tilings(seed: int) -> Iterator[None]:
    """Persistent kernels that are prepared inside have random tiles, blocks and assignments."""
    generator = random.Random(seed)

    def choose(extents: Sequence[tuple[int, ...]], *_: object) -> Tiling:
        tiles = tuple(
            tuple(generator.choice([1, 2, 3, 5, 16, n, max(n // 2, 1)]) for n in extent)
            for extent in extents
        )
        block = generator.choice([1, 2, len(extents)])
        return Tiling(tiles, block, generator.choice(ASSIGNMENTS))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "choose_tiling", choose)
        yield


def check(program: Program, target: str | None, seed: int) -> None:
    """Run ``program`` as persistent kernels where it can be, and replay it."""
    expected = unfused(program, target)
    flagged = any(spec.flag != "none" for spec in program.buffers)
    with fq.FusionQueue(target) as queue, random_tilings(seed):
        buffers = made(program)
        with fq.fusion(queue, strategy="megakernel", barriers="none", promote="none") as f:
            submit(queue, program, buffers)
        event(f.report.strategy)
        assert_identical([b.numpy() for b in buffers], expected)
        if flagged:
            return
        for _ in range(REPLAYS):
            f.replay()
        again = [b.numpy() for b in buffers]
    assert_identical(again, unfused(program, target, rounds=1 + REPLAYS))


@examples(200)
@given(stage_programs(), SEEDS)
def test_stages_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@examples(60)
@given(programs(EXACT), SEEDS)
def test_programs_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@needs_device
@examples(15)
@given(stage_programs(), SEEDS)
def test_stages_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@needs_device
@examples(5)
@given(programs(EXACT), SEEDS)
def test_programs_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
