"""Random lists of submissions as persistent kernels, and unfused: bit for bit the same."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.base import Binding
from fusionq.base.target import Target
from fusionq.frontend.kernel import KernelFunction
from fusionq.ir.nodes import Kernel
from fusionq.megakernel import launch, schedule
from fusionq.megakernel.tiling import Assignment, Tiling
from fusionq.submission.run import PreparedRun
from tests.property.kernel_expressions import Features
from tests.property.programs import Program, programs
from tests.property.running import assert_identical, examples, needs_device
from tests.property.stage_programs import stage_programs
from tests.property.test_programs import made, submit, unfused

EXACT = Features(statements=3, transcendental=False)
SEEDS = st.integers(0, 1 << 30)
ASSIGNMENTS: tuple[Assignment, ...] = ("stages", "turns", "tickets")
REPLAYS = 3
WORKERS = (1, 2, 2, 3, 4, 5, 8, 17)
PLANS, LAUNCHES = 20, 50
"""For each list of the long run: ways to cut and deal it out, and launches of each."""


@contextmanager
def random_tilings(seed: int) -> Iterator[None]:
    """Persistent kernels that are prepared inside have random tiles, blocks, assignments and
    numbers of workers."""
    generator = random.Random(seed)

    def choose(extents: Sequence[tuple[int, ...]], *_: object) -> Tiling:
        tiles = tuple(
            tuple(generator.choice([1, 2, 3, 5, 16, n, max(n // 2, 1)]) for n in extent)
            for extent in extents
        )
        block = generator.choice([1, 2, len(extents)])
        return Tiling(tiles, block, generator.choice(ASSIGNMENTS))

    def scheduled(
        kernel: Kernel, bindings: Mapping[str, Binding], target: Target
    ) -> schedule.Schedule:
        workers = replace(target, resident_workers=generator.choice(WORKERS))
        return schedule_for(kernel, bindings, workers)

    schedule_for = launch.schedule_for
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "choose_tiling", choose)
        patch.setattr(launch, "schedule_for", scheduled)
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


@examples(40)
@given(stage_programs(), SEEDS)
def test_stages_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@examples(40)
@given(programs(EXACT), SEEDS)
def test_programs_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@needs_device
@examples(10)
@given(stage_programs(), SEEDS)
def test_stages_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@needs_device
@examples(5)
@given(programs(EXACT), SEEDS)
def test_programs_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@pytest.mark.slow
@needs_device
@examples(1)
@given(stage_programs(), SEEDS)
def test_no_launch_hangs_or_differs(program: Program, seed: int) -> None:
    """A thousand launches of each list; all begin with the same memory."""
    expected = unfused(program, None)
    with fq.FusionQueue() as queue:
        buffers = made(program)
        kernels: dict[int, KernelFunction] = {}
        for plan in range(PLANS):
            queue._state.launcher.cache.runs.clear()  # so that the list is cut again
            restore(program, buffers)
            with (
                random_tilings(seed + plan),
                fq.fusion(queue, strategy="megakernel", barriers="none", promote="none") as f,
            ):
                submit(queue, program, buffers, kernels)
            assume(any(stage.inner for stage in run_of(queue).built.plan.stages))
            for number in range(LAUNCHES):
                if number:
                    restore(program, buffers)
                    f.replay()
                assert_identical([b.numpy() for b in buffers], expected)
            event("launches of persistent kernels", LAUNCHES)


def restore(program: Program, buffers: Sequence[fq.Buffer]) -> None:
    for buffer, spec in zip(buffers, program.buffers, strict=True):
        buffer.numpy()[...] = spec.data


def run_of(queue: fq.FusionQueue) -> PreparedRun:
    (run,) = queue._state.launcher.cache.runs.values()
    return run


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
