"""Runs random lists, unfused and fused, and compares all that they leave."""

from __future__ import annotations

from collections.abc import Sequence

import fusionq as fq
from fusionq.base.options import Barriers, FusionOptions, Promote, Strategy, checked_options
from fusionq.frontend.kernel import KernelFunction
from tests.property.launches import Array
from tests.property.programs import Program, View
from tests.property.running import assert_identical

Held = fq.Buffer | Array
"""What holds a buffer's contents."""


def made(program: Program) -> list[Held]:
    return [
        data
        if spec.holder == "array"
        else fq.Buffer(
            data,
            promote_private=spec.flag == "private",
            promote_local=spec.flag == "local",
            internal=spec.flag == "internal",
            copy=spec.holder == "buffer",
        )
        for spec, data in zip(program.buffers, program.contents(), strict=True)
    ]


def runs_on_gpus(program: Program) -> bool:
    """Whether its arrays are Buffers with memory of their own, which every device reaches."""
    return all(spec.holder == "buffer" for spec in program.buffers)


def held(queue: fq.FusionQueue, buffers: Sequence[Held]) -> list[Array]:
    """The contents of ``buffers``, when all that was submitted has run."""
    queue.wait()
    return [b.numpy() if isinstance(b, fq.Buffer) else b for b in buffers]


def submit(
    queue: fq.FusionQueue,
    program: Program,
    buffers: Sequence[Held],
    known: dict[int, KernelFunction] | None = None,
) -> None:
    """Submit the whole list; ``known`` keeps its kernels from one time to the next."""
    kernels: dict[int, KernelFunction] = {} if known is None else known
    for submission in program.submissions:
        kernel = kernels.setdefault(id(submission.kernel), submission.kernel.made())
        arguments = [
            buffers[a.buffer][a.slices] if isinstance(a, View) else a for a in submission.arguments
        ]
        queue.submit(kernel, submission.range, *arguments)


def unfused(program: Program, target: str | None, rounds: int = 1) -> list[Array]:
    with fq.FusionQueue(target) as queue:
        buffers = made(program)
        for _ in range(rounds):
            submit(queue, program, buffers)
        return [contents.copy() for contents in held(queue, buffers)]


def check_fused(
    program: Program,
    target: str | None,
    expected: list[Array],
    promote: Promote = "flagged",
    barriers: Barriers = "auto",
    strategy: Strategy = "auto",
) -> fq.Report:
    """Run ``program`` fused and compare every buffer; where nothing is flagged, replay it too.
    The report."""
    with fq.FusionQueue(target) as queue:
        options = checked_options(strategy=strategy, promote=promote, barriers=barriers)
        buffers, f = fused(queue, program, expected, options)
        if all(spec.flag == "none" for spec in program.buffers):
            f.replay()
            assert_identical(held(queue, buffers), unfused(program, target, rounds=2))
        return f.report


def fused(
    queue: fq.FusionQueue,
    program: Program,
    expected: list[Array],
    options: FusionOptions,
    known: dict[int, KernelFunction] | None = None,
) -> tuple[list[Held], fq.Fusion]:
    """Run ``program`` fused and compare every buffer: what was promoted has its first contents,
    everything else the unfused run's."""
    buffers = made(program)
    with fq.fusion(queue, **options._asdict()) as f:
        submit(queue, program, buffers, known)
    promoted = set()
    for decision in f.report.promotions:
        if decision.scope != "global":
            argument = program.submissions[decision.submission].arguments[decision.argument]
            assert isinstance(argument, View)
            promoted.add(argument.buffer)
    assert_identical(
        held(queue, buffers),
        [program.buffers[n].data if n in promoted else result for n, result in enumerate(expected)],
    )
    assert str(f.report)
    return buffers, f
