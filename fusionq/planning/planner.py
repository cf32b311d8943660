"""From a list of submissions to a plan: what runs together, what is promoted, and why."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Literal

from fusionq.analysis.bounds import check_bounds
from fusionq.analysis.convergence import check_convergence
from fusionq.analysis.dependence import Found, dependences
from fusionq.analysis.footprint import Footprint
from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_analysis import ListAnalysis, analyse
from fusionq.analysis.show import analysis_text
from fusionq.analysis.submission import ArrayArgument, Promotion, Submission
from fusionq.backends.base import DeviceInfo
from fusionq.config import debug_level
from fusionq.errors import FusionRefused
from fusionq.ir.nodes import Barrier
from fusionq.passes.pipeline import fused_kernel
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource, RangeSource
from fusionq.planning.plan import Dependence, FusionOptions, Plan, PromotionDecision, StagePlan
from fusionq.planning.promotion import View, check_flags, promotions
from fusionq.planning.specialise import constants, sources_of, varying_scalars
from fusionq.planning.stages import Stage, barriers_of, settled, split
from fusionq.planning.validity import Validity, validity_of

_lock = threading.RLock()
"""isl's context serves one thread at a time."""


def check_submission(submission: Submission) -> Validity:
    """Raise ArgumentError if an index provably exceeds an extent, KernelLanguageError if a barrier
    is provably missed, PromotionConflict if flags contradict each other.

    Returns for which submissions of the same structure the same is known to be right.
    """
    check_flags(submission)
    with _lock:
        analysis = analyse([submission])
        check_bounds(analysis)
        check_convergence(analysis, 0)
        return validity_of(analysis)


def make_plan(
    submissions: Sequence[Submission],
    options: FusionOptions,
    info: DeviceInfo,
    known: Sequence[Plan] = (),
) -> Plan:
    """Analyse the list and turn it into launches; ``known`` are plans of the same structure that
    do not serve it.

    Raises FusionRefused if ``options.require`` and something that was asked for cannot be had,
    PromotionConflict for contradictory flags.
    """
    for submission in submissions:
        check_flags(submission)
    with _lock:
        varying = varying_scalars([plan.validity for plan in known], submissions)
        return _make_plan(submissions, options, info, constants(submissions, varying))


def _make_plan(
    submissions: Sequence[Submission],
    options: FusionOptions,
    info: DeviceInfo,
    fixed: dict[tuple[int, int], int],
) -> Plan:
    started = time.perf_counter()
    analysis = analyse(submissions)
    found = dependences(analysis)
    split_up = split(
        analysis,
        found,
        fuse=options.strategy != "unfused",
        barriers=options.barriers != "none",
        info=info,
    )
    found = settled(found, split_up)
    if debug_level() >= 3:
        print(f"--- analysis\n{analysis_text(analysis, found)}", file=sys.stderr)
    promoted = promotions(analysis, split_up, options, info)
    stages = promoted.stages
    strategy = _strategy(stages, options)
    fallback = _fallback(strategy, stages, options)
    if options.require:
        _require(fallback, promoted.decisions)
    analysed = time.perf_counter()
    plans = tuple(
        _stage_plan(analysis, stage, moved, options, fixed)
        for stage, moved in zip(stages, promoted.moved, strict=True)
    )
    return Plan(
        strategy=strategy,
        stages=plans,
        dependences=tuple(_dependence(analysis, f) for f in found),
        promotions=promoted.decisions,
        fallback=fallback,
        validity=validity_of(analysis, sources_of(fixed)),
        timings={"analysis": analysed - started, "passes": time.perf_counter() - analysed},
    )


def _strategy(
    stages: Sequence[Stage], options: FusionOptions
) -> Literal["fused", "sequence", "unfused"]:
    if options.strategy == "unfused":
        return "unfused"
    if len(stages) == 1:
        return "sequence" if options.strategy == "sequence" else "fused"
    return "sequence" if any(len(stage.members) > 1 for stage in stages) else "unfused"


def _fallback(strategy: str, stages: Sequence[Stage], options: FusionOptions) -> str | None:
    """Why the list did not become what was asked for."""
    if options.strategy == "unfused" or (options.strategy == "sequence" and strategy == "sequence"):
        return None
    boundaries = [stage.boundary for stage in stages if stage.boundary is not None]
    if options.strategy == "megakernel":
        return "; ".join(["megakernels are not in this version", *boundaries[:1]])
    return boundaries[0] if boundaries else None


def _require(fallback: str | None, decisions: Sequence[PromotionDecision]) -> None:
    if fallback is not None:
        raise FusionRefused(
            f"require=True, but the list does not become one kernel: {fallback}. "
            "Leave require out to run it as several launches."
        )
    for decision in decisions:
        if decision.scope == "global":
            raise FusionRefused(
                f"require=True, but `{decision.buffer}` stays in global memory: "
                f"{decision.reason}. Leave require or the flag out."
            )


def _stage_plan(
    analysis: ListAnalysis,
    stage: Stage,
    moved: Mapping[View, tuple[Promotion, Footprint]],
    options: FusionOptions,
    fixed: dict[tuple[int, int], int],
) -> StagePlan:
    every = stage.members[1:] if options.barriers == "all" else barriers_of(stage)
    fused = fused_kernel(
        analysis,
        stage.members,
        stage.space,
        dict.fromkeys(every, Barrier()),
        moved,
        fixed,
        lambda s: _symbol_source(analysis, s),
    )
    largest = max(
        stage.members,
        key=lambda s: global_range(analysis.submissions[s]).size,
    )
    return StagePlan(
        submissions=stage.members,
        kernel=fused.kernel,
        sources=tuple(fused.sources[p.name] for p in fused.kernel.params),
        geometry=largest,
        mode=stage.space.mode,
        local_range=stage.space.local_range,
        boundary=stage.boundary,
    )


def _symbol_source(analysis: ListAnalysis, symbol: str) -> ParamSource:
    """An argument or range that has the value of ``symbol``."""
    symbols = analysis.symbols
    for s, submission in enumerate(analysis.submissions):
        for dim, extent in enumerate(global_range(submission)):
            if symbols.size(extent) == symbol:
                return RangeSource(s, dim)
        for k, argument in enumerate(submission.arguments):
            if isinstance(argument, ArrayArgument):
                for dim, extent in enumerate(argument.shape):
                    if symbols.size(extent) == symbol:
                        return ExtentSource(s, k, dim)
            elif analysis.shapes[s].params.get(argument.name) == symbol:
                return ArgumentSource(s, k)
    raise KeyError(symbol)


def _dependence(analysis: ListAnalysis, f: Found) -> Dependence:
    label = analysis.submissions[f.consumer].arguments[f.consumer_argument].label
    return Dependence(
        f.producer, f.consumer, label, f.consumer_argument, f.kind, f.scope, f.reason,
        f.producer_span, f.consumer_span,
    )  # fmt: skip


def holds_for(plan: Plan, submissions: Sequence[Submission]) -> bool:
    """Whether ``plan`` serves ``submissions``, which have the structure it was made for."""
    return plan.validity.holds(submissions)
