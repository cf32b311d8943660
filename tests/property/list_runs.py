"""Runs random lists, unfused and fused, and compares all that they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import fusionq as fq
from fusionq.base.options import (
    OPTIONS,
    Barriers,
    FusionOptions,
    Promote,
    Strategy,
    checked_options,
)
from fusionq.frontend.kernel import KernelFunction
from tests.property.launches import Array
from tests.property.programs import CommandSpec, Program, View
from tests.property.reductions import ReductionSpec
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


def with_buffers(program: Program) -> Program:
    """The program over Buffers with memory of their own in place of arrays and others' memory."""
    buffers = tuple(replace(spec, holder="buffer") for spec in program.buffers)
    return replace(program, buffers=buffers)


def held(queue: fq.FusionQueue, buffers: Sequence[Held]) -> list[Array]:
    """The contents of ``buffers``, when all that was submitted has run."""
    queue.wait()
    return [b.numpy() if isinstance(b, fq.Buffer) else b for b in buffers]


def submit(
    queue: fq.FusionQueue,
    program: Program,
    buffers: Sequence[Held],
    known: dict[int, KernelFunction] | None = None,
) -> list[tuple[object, ...]]:
    """Submit the whole list; ``known`` keeps its kernels from one time to the next.  What each
    submission of the list was called with; a copy may be two."""
    kernels: dict[int, KernelFunction] = {} if known is None else known
    called: list[tuple[object, ...]] = []
    for submission in program.steps():
        if isinstance(submission, ReductionSpec):
            called += _reduction(queue, submission, buffers)
            continue
        if isinstance(submission, CommandSpec):
            called += _command(queue, submission, buffers)
            continue
        kernel = kernels.setdefault(id(submission.kernel), submission.kernel.made())
        arguments = [
            buffers[a.buffer][a.slices] if isinstance(a, View) else a for a in submission.arguments
        ]
        queue.submit(kernel, submission.range, *arguments)
        called.append(submission.arguments)
    return called


def _command(
    queue: fq.FusionQueue, command: CommandSpec, buffers: Sequence[Held]
) -> list[tuple[object, ...]]:
    target, source = command.target, command.source
    into = buffers[target.buffer][target.slices]
    if not isinstance(source, View):
        queue.fill(into, source)
        return [(target, source)]
    pending = queue._state.list
    before = 0 if pending is None else len(pending.entries)
    queue.memcpy(into, buffers[source.buffer][source.slices])
    added = 1 if pending is None else len(pending.entries) - before
    return [(target, source)] if added == 1 else [(None, source), (target, None)]


def _reduction(
    queue: fq.FusionQueue, reduction: ReductionSpec, buffers: Sequence[Held]
) -> list[tuple[object, ...]]:
    target, source = reduction.target, reduction.source
    pending = queue._state.list
    before = 0 if pending is None else len(pending.entries)
    into, read = buffers[target.buffer][target.slices], buffers[source.buffer][source.slices]
    reduction.submit(queue, into, read)
    added = 1 if pending is None else len(pending.entries) - before
    return [(source, target)] if added == 1 else [(source, None), (target, None)]


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
    graph: bool = False,
) -> fq.Report:
    """Run ``program`` fused, recorded as a ``graph`` first or at once, and compare every buffer;
    where nothing is flagged, launch or replay it too.  The report."""
    with fq.FusionQueue(target) as queue:
        options = checked_options(strategy=strategy, promote=promote, barriers=barriers)
        if graph:
            buffers, recorded = launched(queue, program, expected, options)
            (report,) = recorded.reports
        else:
            buffers, f = fused(queue, program, expected, options)
            report = f.report
        if all(spec.flag == "none" for spec in program.buffers):
            if graph:
                recorded.launch()
            else:
                f.replay()
            assert_identical(held(queue, buffers), unfused(program, target, rounds=2))
        return report


def _given(options: FusionOptions) -> dict[str, Any]:
    """``options`` as users give them."""
    return {name: getattr(options, name) for name in OPTIONS}


def fused(
    queue: fq.FusionQueue,
    program: Program,
    expected: list[Array],
    options: FusionOptions,
    known: dict[int, KernelFunction] | None = None,
) -> tuple[list[Held], fq.Fusion]:
    """Run ``program`` fused and compare every buffer: parts that were promoted have their first
    contents, everything else the unfused run's."""
    buffers = made(program)
    with fq.fusion(queue, **_given(options)) as f:
        called = submit(queue, program, buffers, known)
    _compare(queue, program, buffers, called, f.report, expected)
    return buffers, f


def launched(
    queue: fq.FusionQueue, program: Program, expected: list[Array], options: FusionOptions
) -> tuple[list[Held], fq.Graph]:
    """Record ``program``, launch it and compare as ``fused`` does."""
    buffers, graph = made(program), fq.Graph()
    with graph.record(queue, **_given(options)):
        called = submit(queue, program, buffers)
    graph.launch()
    _compare(queue, program, buffers, called, graph.reports[0], expected)
    return buffers, graph


def _compare(
    queue: fq.FusionQueue,
    program: Program,
    buffers: Sequence[Held],
    called: Sequence[tuple[object, ...]],
    report: fq.Report,
    expected: list[Array],
) -> None:
    assert not report.left_out
    expected = [contents.copy() for contents in expected]
    for decision in report.promotions:
        if decision.scope != "global":
            argument = called[decision.submission][decision.argument]
            assert argument is None or isinstance(argument, View)
            if argument is not None:  # other parts of the buffer may have been promoted or not
                first = program.buffers[argument.buffer].data
                expected[argument.buffer][argument.slices] = first[argument.slices]
    assert_identical(held(queue, buffers), expected)
    assert str(report)
