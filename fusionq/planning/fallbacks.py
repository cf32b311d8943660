"""What a list of stages is called, and why it is not what was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.base.call_site import user_span
from fusionq.base.errors import FusionRefused
from fusionq.base.options import FusionOptions
from fusionq.planning.plan import Became, PromotionDecision, StagePlan
from fusionq.planning.side_by_side import launch_count
from fusionq.planning.stages import Stage


def strategy_of(stages: Sequence[Stage], options: FusionOptions) -> Became:
    """The strategy of which ``stages``, one launch each or side by side, are."""
    if options.strategy == "unfused":
        return "unfused"
    if launch_count(stages) == 1:
        return "sequence" if options.strategy == "sequence" else "fused"
    joined = any(len(stage.members) > 1 or stage.beside for stage in stages)
    return "sequence" if joined else "unfused"


def fallback_of(strategy: Became, stages: Sequence[Stage], options: FusionOptions) -> str | None:
    """Why the list did not become what was asked for; None if it did."""
    if options.strategy == "unfused" or (options.strategy == "sequence" and strategy == "sequence"):
        return None
    boundaries = [s.boundary for s in stages if s.boundary is not None and not s.beside]
    if options.strategy == "megakernel" and not boundaries:
        return "a megakernel is not needed: no dependence crosses work-groups, so one kernel does"
    return boundaries[0] if boundaries else None


def unjoined(plans: Sequence[StagePlan]) -> str | None:
    """Why the launches ``plans``, some of them of several stages, are not one; None if they are."""
    return next((plan.boundary for plan in plans[1:] if plan.boundary is not None), None)


def check_required(fallback: str | None, decisions: Sequence[PromotionDecision]) -> None:
    """Raises FusionRefused where the list does not become one kernel, or a flagged buffer is not
    promoted: for ``require=True``."""
    if fallback is not None:
        raise FusionRefused(
            f"{user_span()}: require=True, but the list does not become one kernel: {fallback}. "
            "Leave require out to run it as several launches."
        )
    for decision in decisions:
        if decision.scope == "global":
            raise FusionRefused(
                f"{user_span()}: require=True, but `{decision.buffer}` stays in global memory: "
                f"{decision.reason}. Leave require or the flag out."
            )
