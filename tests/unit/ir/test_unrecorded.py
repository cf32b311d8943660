"""Persistent kernels without the records of their tiles."""

from __future__ import annotations

from dataclasses import replace

from fusionq.execution.cost_measurement import _steps
from fusionq.ir.nodes import Kernel, Persistent
from fusionq.ir.unrecorded import unrecorded
from fusionq.ir.verifier import verify
from fusionq.profiling.instructions import lower_persistent
from tests.unit.targets import TWO_CORES


def recording(instructions: bool = True) -> Kernel:
    kernel, _ = _steps()
    (body,) = kernel.body
    assert isinstance(body, Persistent)
    lowered = lower_persistent(
        kernel, body, instructions=instructions, occurrences=4, clock="clock", target=TWO_CORES
    )
    return lowered.kernel


def test_records_of_tiles_go_with_their_parameters() -> None:
    kernel, before = recording(), _steps()[0]
    assert len(kernel.params) == len(before.params) + 3
    plain = unrecorded(kernel)
    assert plain is not None
    verify(plain)
    assert plain.params == before.params
    (body,) = plain.body
    assert isinstance(body, Persistent) and body.records is None
    assert body.stages == before.body[0].stages  # type: ignore[union-attr]  # a Persistent


def test_what_has_no_records_of_tiles_stays() -> None:
    assert unrecorded(_steps()[0]) is None
    assert unrecorded(Kernel("empty", 1, (), (), ())) is None


def test_records_in_stages_cannot_go() -> None:
    kernel = recording()
    (body,) = kernel.body
    assert isinstance(body, Persistent) and body.records is not None
    stage = replace(body.stages[0], arguments=(*body.stages[0].arguments, body.records.buffer))
    stages = (stage, *body.stages[1:])
    assert unrecorded(replace(kernel, body=(replace(body, stages=stages),))) is None
