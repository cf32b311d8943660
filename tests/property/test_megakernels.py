"""Random lists of submissions as persistent kernels, and unfused: bit for bit the same."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.frontend.kernel import KernelFunction
from fusionq.submission.run import PreparedRun
from tests.property.commands import with_commands
from tests.property.group_programs import group_programs
from tests.property.kernel_expressions import Features
from tests.property.list_runs import Held, held, made, submit, unfused
from tests.property.programs import Program, programs
from tests.property.running import assert_identical, examples, needs_device
from tests.property.stage_programs import stage_programs
from tests.property.tilings import random_tilings

EXACT = Features(statements=3, transcendental=False)
SEEDS = st.integers(0, 1 << 30)
REPLAYS = 3
PLANS, LAUNCHES = 20, 50
"""For each list of the long run: ways to cut and deal it out, and launches of each."""


def check(program: Program, target: str | None, seed: int) -> None:
    """Run ``program`` as persistent kernels where it can be, and replay it."""
    expected = unfused(program, target)
    flagged = any(spec.flag != "none" for spec in program.buffers)
    with fq.FusionQueue(target) as queue, random_tilings(seed):
        buffers = made(program)
        with fq.fusion(queue, strategy="megakernel", barriers="none", promote="none") as f:
            submit(queue, program, buffers)
        event(f.report.strategy)
        assert_identical(held(queue, buffers), expected)
        if flagged:
            return
        for _ in range(REPLAYS):
            f.replay()
        again = held(queue, buffers)
    assert_identical(again, unfused(program, target, rounds=1 + REPLAYS))


@examples(40)
@given(with_commands(stage_programs()), SEEDS)
def test_stages_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@examples(40)
@given(with_commands(programs(EXACT)), SEEDS)
def test_programs_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@needs_device
@examples(10)
@given(with_commands(stage_programs()), SEEDS)
def test_stages_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@needs_device
@examples(5)
@given(with_commands(programs(EXACT)), SEEDS)
def test_programs_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@pytest.mark.slow
@examples(40)
@given(with_commands(group_programs(EXACT)), SEEDS)
def test_work_groups_on_the_reference_device(program: Program, seed: int) -> None:
    check(program, "reference", seed)


@needs_device
@examples(10)
@given(with_commands(group_programs(EXACT)), SEEDS)
def test_work_groups_on_the_sycl_device(program: Program, seed: int) -> None:
    check(program, None, seed)


@pytest.mark.slow
@needs_device
@examples(1)
@given(with_commands(stage_programs()), SEEDS)
def test_no_launch_hangs_or_differs(program: Program, seed: int) -> None:
    """A thousand launches of each list; all begin with the same memory."""
    expected = unfused(program, None)
    with fq.FusionQueue() as queue:
        buffers = made(program)
        kernels: dict[int, KernelFunction] = {}
        for plan in range(PLANS):
            queue._state.launcher.cache.runs.clear()  # so that the list is cut again
            restore(queue, program, buffers)
            with (
                random_tilings(seed + plan),
                fq.fusion(queue, strategy="megakernel", barriers="none", promote="none") as f,
            ):
                submit(queue, program, buffers, kernels)
            assume(any(stage.inner for stage in run_of(queue).built.plan.stages))
            for number in range(LAUNCHES):
                if number:
                    restore(queue, program, buffers)
                    f.replay()
                assert_identical(held(queue, buffers), expected)
            event("launches of persistent kernels", LAUNCHES)


def restore(queue: fq.FusionQueue, program: Program, buffers: Sequence[Held]) -> None:
    for contents, spec in zip(held(queue, buffers), program.buffers, strict=True):
        contents[...] = spec.data


def run_of(queue: fq.FusionQueue) -> PreparedRun:
    ended = queue._state.last_list
    assert ended is not None and ended.run is not None
    return ended.run


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
