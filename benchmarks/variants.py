"""The variants of a case: four through fusionq, and the case's baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import fusionq as fq
from fusionq.benchmarks.case import Traffic, Unavailable, Workload

Group = Literal["fusionq", "baseline"]
UNFUSED = "unfused"
PROMOTED = "fused, promoted"


@dataclass(frozen=True)
class Variant:
    """A way to compute a workload's output; ``run`` returns when the output is there."""

    name: str
    group: Group
    traffic: Traffic
    run: Callable[[], object]
    launches: Callable[[], int] = lambda: 1
    """Kernel launches of the last run, for variants through fusionq."""


@dataclass(frozen=True)
class MissingVariant:
    """A variant that cannot run here, and why."""

    name: str
    group: Group
    reason: str


def variants(workload: Workload) -> Iterator[Variant | MissingVariant]:
    """All variants of the workload's case; the unfused one first."""
    yield from _fusionq_variants(workload)
    for baseline in workload.case.baselines:
        try:
            run = baseline.prepare(workload)
        except Unavailable as reason:
            yield MissingVariant(baseline.name, "baseline", str(reason))
        else:
            yield Variant(baseline.name, "baseline", baseline.traffic, run)


def submit_chain(workload: Workload, buffers: Mapping[str, fq.Buffer]) -> Callable[[], fq.Event]:
    """A callable that submits the case's kernels in order and returns the last event."""
    queue, submit_range = workload.queue, workload.range
    calls = [
        (step.kernel, [buffers[a] if isinstance(a, str) else a for a in step.arguments])
        for step in workload.case.steps
    ]

    def submit() -> fq.Event:
        for kernel, arguments in calls:
            event = queue.submit(kernel, submit_range, *arguments)
        return event

    return submit


def _fusionq_variants(workload: Workload) -> Iterator[Variant]:
    queue = workload.queue
    submit = submit_chain(workload, workload.buffers)
    submit_promoted = submit_chain(workload, workload.promoted_buffers())

    def fused(chain: Callable[[], fq.Event], promote: Literal["flagged", "none"]) -> fq.Fusion:
        with fq.fusion(queue, promote=promote) as fusion:
            chain()
        assert fusion.event is not None
        fusion.event.wait()
        return fusion

    def last_launches() -> int:
        report = queue.last_report
        assert report is not None
        return len(report.stages)

    steps = len(workload.case.steps)
    yield Variant(UNFUSED, "fusionq", "unfused", lambda: submit().wait(), lambda: steps)
    yield Variant("fused", "fusionq", "fused", lambda: fused(submit, "none"), last_launches)
    yield Variant(
        PROMOTED, "fusionq", "promoted", lambda: fused(submit_promoted, "flagged"), last_launches
    )
    fusion = fused(submit_promoted, "flagged")
    yield Variant(
        "fused, promoted, replay",
        "fusionq",
        "promoted",
        lambda: fusion.replay().wait(),
        lambda: len(fusion.report.stages),
    )
