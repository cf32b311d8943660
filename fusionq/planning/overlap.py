"""The launches of a list in which halos are computed anew (overlapped tiles).

Holewinski, Pouchet, Sadayappan: "High-performance code generation for stencil computations on GPU
architectures", 2012; Halide's ``compute_at`` is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.validity import ScalarPlace
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.planning.cost import OverlapEstimate, launches_seconds
from fusionq.planning.layout import all_launches, layout_of
from fusionq.planning.list_work import launches_work
from fusionq.planning.overlapped_list import OverlappedList, overlapped_list
from fusionq.planning.plan import PromotionDecision, Recomputation, StagePlan
from fusionq.planning.promotion import Promotions
from fusionq.planning.recomputing import Temporaries, Temporary, temporaries
from fusionq.planning.stage_kernels import StageKernels

NOTHING_FLAGGED = (
    "no temporary is computed anew: none is flagged (promote_private, promote_local, or "
    "internal=True with promote='internal')"
)


@dataclass(frozen=True)
class Overlap:
    """The launches of a list whose temporaries ``recomputed`` are computed anew, with what
    planning found out about them, all in the numbers of the user's list."""

    found: tuple[PairScope, ...]
    layout: Promotions
    plans: tuple[StagePlan, ...]
    recomputed: tuple[Recomputation, ...]


def with_overlap(
    questions: Questions,
    options: FusionOptions,
    target: Target,
    fixed: Mapping[ScalarPlace, int],
    varying: Collection[ScalarPlace],
    barrierless: str | None,
) -> Steps[Overlap | str]:
    """The list with the flagged temporaries computed anew of which that is proved; or why there
    are none."""
    found = yield from temporaries(questions, options)
    made = yield from overlapped_list(questions, found)
    if made is None:
        return _nothing(questions, found)
    varies = [place for place, origin in made.origins.items() if origin in varying]
    values = {place: fixed[o] for place, o in made.origins.items() if o in fixed}
    asked = Questions(made.submissions, varies)
    raw = yield from direct_dependences(asked)
    decided = {
        asked.place[t.producer, t.argument].group: _decision(questions, t)
        for t in found.found.values()
    }
    scopes, layout = yield from layout_of(
        asked, raw, options, target, barrierless, made.absent, decided
    )
    kernels = StageKernels(asked, options, values, made.absent)
    plans = yield from all_launches(kernels, layout)
    questions.validity.add(
        made.validity(asked.validity.result()), range(len(questions.submissions))
    )
    return Overlap(
        found=tuple(_in_list(d, made) for d in scopes),
        layout=replace(layout, decisions=_decisions(questions, layout, found, made)),
        plans=tuple(
            replace(plan, sources=tuple(map(made.source, plan.sources))) for plan in plans
        ),
        recomputed=tuple(_recomputation(questions, t) for t in found.found.values()),
    )


def compared_work(
    questions: Questions,
    launches: Sequence[StagePlan],
    overlapped: Sequence[StagePlan],
    target: Target,
) -> OverlapEstimate:
    """What two ways to run a list take on ``target``, by the model."""
    first, second = (
        launches_seconds(*launches_work(questions, plans), target)
        for plans in (launches, overlapped)
    )
    return OverlapEstimate(first, second)


def _nothing(questions: Questions, found: Temporaries) -> str:
    """Why nothing is computed anew."""
    if not found.refused:
        return NOTHING_FLAGGED
    label = {lies.group: place for place, lies in reversed(questions.place.items())}
    reasons = "; ".join(
        f"`{questions.buffer_name(s, k)}`: {reason}"
        for group, reason in found.refused.items()
        for s, k in (label[group],)
    )
    return f"no temporary is computed anew: {reasons}"


def _decision(questions: Questions, t: Temporary) -> PromotionDecision:
    label = questions.buffer_name(t.producer, t.argument)
    return PromotionDecision(
        label, t.producer, t.argument, "private",
        "nothing is stored: who reads an element computes it anew",
    )  # fmt: skip


def _decisions(
    questions: Questions, layout: Promotions, found: Temporaries, made: OverlappedList
) -> tuple[PromotionDecision, ...]:
    """What became of each flagged buffer, and why it is not computed anew where it is not."""
    decisions = []
    for decision in layout.decisions:
        submission, argument = made.origins[decision.submission, decision.argument]
        reason = decision.reason
        refused = found.refused.get(questions.place[submission, argument].group)
        if decision.scope == "global" and refused is not None and refused not in reason:
            reason = f"{reason}; it is not computed anew: {refused}"
        decisions.append(
            replace(decision, submission=submission, argument=argument, reason=reason)
        )
    return tuple(decisions)


def _in_list(d: PairScope, made: OverlappedList) -> PairScope:
    """A dependence in the numbers of the user's list: between the submissions whose accesses cause
    it, wherever they are made."""
    producer, first = made.origins[d.producer, d.producer_argument]
    consumer, second = made.origins[d.consumer, d.consumer_argument]
    return replace(
        d, producer=producer, consumer=consumer, producer_argument=first, consumer_argument=second
    )


def _recomputation(questions: Questions, t: Temporary) -> Recomputation:
    label = questions.buffer_name(t.producer, t.argument)
    return Recomputation(label, t.producer, t.argument, tuple(t.halo), tuple(t.halo.values()))
