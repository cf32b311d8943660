"""The variants of a case: those through fusionq, and the case's baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import fusionq as fq
from fusionq.benchmarks.baselines import dpex
from fusionq.benchmarks.case import Traffic, Unavailable, Workload
from fusionq.benchmarks.timing import Sampler, Start, back_to_back, one_at_a_time, run_to_end

Group = Literal["fusionq", "baseline"]
UNFUSED = "unfused"
PROMOTED = "fused, promoted"
Strategy = Literal["sequence", "megakernel", "auto"]
STRATEGIES: tuple[Strategy, ...] = ("sequence", "megakernel", "auto")


@dataclass(frozen=True)
class Variant:
    """A way to compute a workload's output."""

    name: str
    group: Group
    traffic: Traffic
    start: Start
    launches: Callable[[], int] = lambda: 1
    """Kernel launches of the last run, for variants through fusionq."""
    strategy: str | None = None
    """What fusionq's report says the list became, where a strategy was asked for."""
    sampler: Sampler | None = None
    """How to time it, for a variant that runs in another process, or by a device's clock."""
    finish: Callable[[], object] | None = None
    """Puts the output where it is looked for; no part of a run."""
    is_checked: bool = True
    """Whether it computes the output."""
    check: Callable[[], str] | None = None
    """How the output is verified; None: as the case says."""

    def run(self) -> None:
        """One run, to its end: the output is there."""
        run_to_end(self.start)
        if self.finish is not None:
            self.finish()

    def timed(self, single: bool) -> Sampler:
        """Times its runs: one at a time if ``single``, else one after the other."""
        if self.sampler is not None:
            return self.sampler
        return one_at_a_time(self.start) if single else back_to_back(self.start)


@dataclass(frozen=True)
class MissingVariant:
    """A variant that cannot run here, and why."""

    name: str
    group: Group
    reason: str


def variants(
    workload: Workload, dpex_python: Path | None = None
) -> Iterator[Variant | MissingVariant]:
    """All variants of the workload's case; the unfused one first.

    ``dpex_python``: the interpreter of an environment with numba-dpex.
    """
    yield from own_variants(workload)
    for baseline in workload.case.baselines:
        if not workload.shares_memory:
            reason = "the host does not see the device's memory"
            yield MissingVariant(baseline.name, "baseline", reason)
            continue
        try:
            start = baseline.prepare(workload)
        except Unavailable as reason:
            yield MissingVariant(baseline.name, "baseline", str(reason))
        else:
            yield Variant(baseline.name, "baseline", baseline.traffic, start)
    if dpex.runs_on_dpex(workload.case):
        yield _dpex_variant(workload, dpex_python)


def own_variants(workload: Workload) -> Iterator[Variant | MissingVariant]:
    """Those through fusionq; the unfused one first."""
    if workload.case.compare == "promotion":
        return _promotion_variants(workload)
    return _strategy_variants(workload)


def _dpex_variant(workload: Workload, python: Path | None) -> Variant | MissingVariant:
    if python is None:
        reason = "give an environment's interpreter: --dpex-python PATH"
        return MissingVariant(dpex.NAME, "baseline", reason)
    try:
        chain = dpex.DpexChain(workload, python)
    except Unavailable as reason:
        return MissingVariant(dpex.NAME, "baseline", str(reason))
    steps = len(workload.case.steps)
    return Variant(
        dpex.NAME, "baseline", "unfused", chain.run, lambda: steps, sampler=chain.sample
    )


def submit_chain(workload: Workload, buffers: Mapping[str, fq.Buffer]) -> Callable[[], fq.Event]:
    """A callable that submits the case's kernels in order and returns the last event."""
    queue = workload.queue
    calls = [
        (step.kernel, workload.range_of(step), workload.arguments(step, buffers))
        for step in workload.case.steps
    ]

    def submit() -> fq.Event:
        for kernel, submit_range, arguments in calls:
            event = queue.submit(kernel, submit_range, *arguments)
        return event

    return submit


def _unfused(workload: Workload) -> Variant:
    steps = len(workload.case.steps)
    submit = submit_chain(workload, workload.buffers)
    return Variant(UNFUSED, "fusionq", "unfused", submit, lambda: steps)


def _promotion_variants(workload: Workload) -> Iterator[Variant | MissingVariant]:
    queue = workload.queue
    submit = submit_chain(workload, workload.buffers)
    submit_promoted = submit_chain(workload, workload.promoted_buffers())

    def fused(chain: Callable[[], fq.Event], promote: Literal["flagged", "none"]) -> fq.Fusion:
        with fq.fusion(queue, promote=promote) as fusion:
            chain()
        return fusion

    def last_launches() -> int:
        report = queue.last_report
        assert report is not None
        return launches(report)

    yield _unfused(workload)
    yield Variant("fused", "fusionq", "fused", lambda: fused(submit, "none").event, last_launches)
    yield Variant(
        PROMOTED,
        "fusionq",
        "promoted",
        lambda: fused(submit_promoted, "flagged").event,
        last_launches,
    )
    fusion = fused(submit_promoted, "flagged")
    yield Variant(
        "fused, promoted, replay",
        "fusionq",
        "promoted",
        fusion.replay,
        lambda: launches(fusion.report),
    )


def _strategy_variants(workload: Workload) -> Iterator[Variant | MissingVariant]:
    """Each strategy; the temporaries are internal, so each launch may promote its own.

    All are measured by the bytes of the unfused run: how many of them a strategy saves depends on
    where it has to keep a temporary.
    """
    chain = submit_chain(workload, workload.internal_buffers())
    yield _unfused(workload)
    for strategy in STRATEGIES:
        fusion = _fuse(workload.queue, chain, strategy)
        yield _strategy_variant(workload.queue, chain, strategy, fusion.report)
    yield Variant(
        "auto, replay",
        "fusionq",
        "unfused",
        fusion.replay,
        lambda: launches(fusion.report),
        fusion.report.strategy,
    )


def _strategy_variant(
    queue: fq.FusionQueue, chain: Callable[[], fq.Event], strategy: Strategy, report: fq.Report
) -> Variant | MissingVariant:
    became: str = report.strategy
    if strategy == "megakernel" and became != strategy:
        return MissingVariant(strategy, "fusionq", report.fallback or report.headline)

    def start() -> fq.Event:
        return _fuse(queue, chain, strategy).event

    return Variant(strategy, "fusionq", "unfused", start, lambda: launches(report), became)


def _fuse(queue: fq.FusionQueue, chain: Callable[[], fq.Event], strategy: Strategy) -> fq.Fusion:
    with fq.fusion(queue, strategy=strategy, promote="internal") as fusion:
        chain()
    return fusion


def launches(report: fq.Report) -> int:
    """How many kernels were launched; a list may become several, some of them persistent."""
    return len(report.stages)
