"""Runs random lists, unfused and fused, and compares all that they leave."""

from __future__ import annotations

import fusionq as fq
from fusionq.base.options import Barriers, Promote, Strategy
from fusionq.frontend.kernel import KernelFunction
from tests.property.launches import Array
from tests.property.programs import Program, View
from tests.property.running import assert_identical


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
    strategy: Strategy = "auto",
) -> fq.Report:
    """Run ``program`` fused and compare every buffer: what was promoted has its first contents,
    everything else the unfused run's.  Where nothing is flagged, replay it too.  The report."""
    with fq.FusionQueue(target) as queue:
        buffers = made(program)
        with fq.fusion(queue, strategy=strategy, promote=promote, barriers=barriers) as f:
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
        return report
