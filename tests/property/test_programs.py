"""Random lists of submissions: fused, unfused and the Python functions agree bit for bit.

``FUSIONQ_EXAMPLES`` multiplies the number of examples, for long runs.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.registry import list_devices
from tests.property.kernel_expressions import Features
from tests.property.launches import Array
from tests.property.programs import Program, View, programs
from tests.property.test_single_kernels import assert_identical

TIMES = float(os.environ.get("FUSIONQ_EXAMPLES", "1"))
HAS_DEVICE = any(info.kind != "reference" for info in list_devices())
EXACT = Features(statements=3, transcendental=False)
ANY = Features(statements=3)
PROMOTE = st.sampled_from(["flagged", "internal", "none"])
BARRIERS = st.sampled_from(["auto", "auto", "all", "none"])

needs_device = pytest.mark.skipif(not HAS_DEVICE, reason="there is no SYCL device")


def examples(number: int) -> settings:
    return settings(
        deadline=None,
        max_examples=max(int(number * TIMES), 1),
        suppress_health_check=list(HealthCheck),
    )


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


def submit(queue: fq.FusionQueue, program: Program, buffers: list[fq.Buffer]) -> None:
    kernels: dict[int, object] = {}
    for submission in program.submissions:
        kernel = kernels.setdefault(
            id(submission.kernel), fq.kernel(submission.kernel.define())
        )
        arguments = [
            buffers[a.buffer][a.slices] if isinstance(a, View) else a
            for a in submission.arguments
        ]
        queue.submit(kernel, submission.range, *arguments)


def unfused(program: Program, target: str | None) -> list[Array]:
    with fq.FusionQueue(target) as queue:
        buffers = made(program)
        submit(queue, program, buffers)
        return [buffer.numpy().copy() for buffer in buffers]


def check_fused(
    program: Program, target: str | None, expected: list[Array], **options: str
) -> None:
    """Run ``program`` fused, twice through replay's path too, and compare every buffer: what was
    promoted has its first contents, everything else the unfused run's."""
    with fq.FusionQueue(target) as queue:
        buffers = made(program)
        with fq.fusion(queue, **options) as f:
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


@examples(150)
@given(programs(EXACT), PROMOTE, BARRIERS)
def test_the_reference_device_agrees_with_python(
    program: Program, promote: str, barriers: str
) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, "reference"), expected)
    check_fused(program, "reference", expected, promote=promote, barriers=barriers)


@needs_device
@examples(25)
@given(programs(EXACT), PROMOTE, BARRIERS)
def test_the_sycl_device_agrees_with_python(
    program: Program, promote: str, barriers: str
) -> None:
    expected = program.run_python()
    assert_identical(unfused(program, None), expected)
    check_fused(program, None, expected, promote=promote, barriers=barriers)


@needs_device
@examples(15)
@given(programs(ANY), PROMOTE)
def test_fusion_changes_no_bit_of_any_function(program: Program, promote: str) -> None:
    check_fused(program, None, unfused(program, None), promote=promote)


@pytest.fixture(autouse=True)
def _quiet() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fq.FusionAborted)
        with np.errstate(all="ignore"):
            yield
