"""Schedules of persistent kernels that are there before the first launch."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.submission import Submission
from fusionq.base.options import FusionOptions
from fusionq.execution.compile import built_plan
from fusionq.execution.schedule_ahead import make_schedules
from fusionq.megakernel import launch


@fq.kernel
def smoothed(item: fq.Item, a, b, scale, last):
    i = item.get_id(0)
    if i > 0 and i < last:
        b[i] = (a[i - 1] + a[i + 1]) * scale


SIZE = 300


def submit(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer, scale: float, last: int) -> None:
    for _ in range(3):
        queue.submit(smoothed, SIZE, a, b, scale, last)
        queue.submit(smoothed, SIZE, b, a, scale, last)


def captured(queue: fq.FusionQueue, *arguments: object) -> tuple[Submission, ...]:
    queue.start_fusion()
    submit(queue, *arguments)  # type: ignore[arg-type]  # what submit takes
    pending = queue._state.list
    assert pending is not None
    submissions = pending.submissions()
    queue._state.leave_fusion_mode(pending)
    return submissions


@pytest.mark.parametrize("scale", [0.5, float("inf")])
def test_the_first_launch_finds_what_was_made(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch._latest.clear()
    queue = fq.FusionQueue("reference")
    a, b = fq.Buffer(np.arange(SIZE, dtype=np.float32)), fq.Buffer(np.zeros(SIZE, np.float32))
    submissions = captured(queue, a, b, scale, SIZE - 1)
    options = FusionOptions(strategy="megakernel")
    backend = queue._state.launcher.backend
    built, _ = built_plan(backend, submissions, options, {})
    assert built.plan.strategy == "megakernel"
    make_schedules(backend, built, submissions)
    made: list[object] = []
    make = launch.make_schedule
    monkeypatch.setattr(launch, "make_schedule", lambda *a: made.append(a) or make(*a))
    with fq.fusion(queue, strategy="megakernel") as fusion:
        submit(queue, a, b, scale, SIZE - 1)
    fusion.event.wait()
    assert fusion.report.strategy == "megakernel" and not made
    with fq.fusion(queue, strategy="megakernel") as fusion:
        submit(queue, a, b, scale, SIZE // 2)
    fusion.event.wait()
    assert fusion.report.strategy == "megakernel" and len(made) == 1, "other waits"


def test_few_schedules_are_kept() -> None:
    assert launch._latest.maxlen == launch.LATEST < 16
