"""Random lists of submissions: fused, unfused and the Python functions agree bit for bit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.base.options import Barriers, Promote
from fusionq.frontend.kernel import KernelFunction
from tests.property.kernel_expressions import Features
from tests.property.launches import Array
from tests.property.programs import Program, View, programs
from tests.property.running import assert_identical, examples, needs_device

EXACT = Features(statements=3, transcendental=False)
ANY = Features(statements=3)
PROMOTE: st.SearchStrategy[Promote] = st.sampled_from(["flagged", "internal", "none"])
BARRIERS: st.SearchStrategy[Barriers] = st.sampled_from(["auto", "auto", "all", "none"])


def made(program: Program) -> list[fq.Buffer]:
    return [
        fq.Buffer(
            spec.data,
            promote_private=spec.flag == "private",
            promote_local=spec.flag == "local",
            internal=spec.flag == "internal",
        )
        for spec in program.buffers
    ]


def submit(
    queue: fq.FusionQueue,
    program: Program,
    buffers: list[fq.Buffer],
    known: dict[int, KernelFunction] | None = None,
) -> None:
    """Submit the whole list; ``known`` keeps its kernels from one time to the next."""
    kernels: dict[int, KernelFunction] = {} if known is None else known
    for submission in program.submissions:
        kernel = kernels.setdefault(id(submission.kernel), fq.kernel(submission.kernel.define()))
        arguments = [
            buffers[a.buffer][a.slices] if isinstance(a, View) else a for a in submission.arguments
        ]
        queue.submit(kernel, submission.range, *arguments)


def unfused(program: Program, target: str | None, rounds: int = 1) -> list[Array]:
    with fq.FusionQueue(target) as queue:
        buffers = made(program)
        for _ in range(rounds):
            submit(queue, program, buffers)
        return [buffer.numpy().copy() for buffer in buffers]


def check_fused(
    program: Program,
    target: str | None,
    expected: list[Array],
    promote: Promote = "flagged",
    barriers: Barriers = "auto",
) -> None:
    """Run ``program`` fused and compare every buffer: what was promoted has its first contents,
    everything else the unfused run's.  Where nothing is flagged, replay it too."""
    with fq.FusionQueue(target) as queue:
        buffers = made(program)
        with fq.fusion(queue, promote=promote, barriers=barriers) as f:
            submit(queue, program, buffers)
        report = f.report
        promoted = set()
        for decision in report.promotions:
            if decision.scope != "global":
                argument = program.submissions[decision.submission].arguments[decision.argument]
                assert isinstance(argument, View)
                promoted.add(argument.buffer)
        contents = [buffer.numpy() for buffer in buffers]
        assert_identical(
            contents,
            [
                program.buffers[n].data if n in promoted else result
                for n, result in enumerate(expected)
            ],
        )
        assert str(report)
        if all(spec.flag == "none" for spec in program.buffers):
            f.replay()
            contents = [buffer.numpy() for buffer in buffers]
            assert_identical(contents, unfused(program, target, rounds=2))


@examples(80)
@given(programs(EXACT), PROMOTE, BARRIERS)
def test_the_reference_device_agrees_with_python(
    program: Program, promote: Promote, barriers: Barriers
) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, "reference"), expected)
    check_fused(program, "reference", expected, promote=promote, barriers=barriers)


@needs_device
@examples(10)
@given(programs(EXACT), PROMOTE, BARRIERS)
def test_the_sycl_device_agrees_with_python(
    program: Program, promote: Promote, barriers: Barriers
) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, None), expected)
    check_fused(program, None, expected, promote=promote, barriers=barriers)


@needs_device
@examples(10)
@given(programs(ANY), PROMOTE)
def test_fusion_changes_no_bit_of_any_function(program: Program, promote: Promote) -> None:
    check_fused(program, None, unfused(program, None), promote=promote)


@examples(20)
@given(programs(EXACT))
def test_checked_accesses_change_no_bit(program: Program) -> None:
    with fq.FusionQueue("reference") as queue:
        buffers = made(program)
        with fq.fusion(queue, check=True):
            submit(queue, program, buffers)
        contents = [buffer.numpy() for buffer in buffers]
    assert_identical(contents, unfused(program, "reference"))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
