"""The launches of a list in which halos are computed anew (overlapped tiles).

Holewinski, Pouchet, Sadayappan: "High-performance code generation for stencil computations on GPU
architectures", 2012; Halide's ``compute_at`` is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.validity import ScalarPlace, Validity
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.planning.cost import OverlapEstimate, launches_seconds
from fusionq.planning.layout import promoted
from fusionq.planning.list_work import launch_operations, launches_work
from fusionq.planning.overlapped_list import OverlappedList, overlapped_list, unchanged_list
from fusionq.planning.overlapped_tiles import TiledStages
from fusionq.planning.plan import PromotionDecision, Recomputation, StagePlan
from fusionq.planning.promotion import Promotions
from fusionq.planning.recomputing import Temporaries, Temporary, temporaries
from fusionq.planning.stage_kernels import StageKernels
from fusionq.planning.stages import SplitOptions, split

NOTHING_FLAGGED = (
    "no temporary is computed anew: none is flagged (promote_private, promote_local, or "
    "internal=True with promote='internal')"
)


WAYS: tuple[Literal["inlined", "tiled"], ...] = ("inlined", "tiled")
"""How temporaries are computed anew where there are several ways: by each work-item that reads
them, or by work-groups in local memory.  Tests leave one out."""


@dataclass(frozen=True)
class Overlap:
    """The launches of a list whose temporaries ``recomputed`` are computed anew, with what
    planning found out about them, all in the numbers of the user's list."""

    found: tuple[PairScope, ...]
    layout: Promotions
    plans: tuple[StagePlan, ...]
    recomputed: tuple[Recomputation, ...]
    validity: Validity
    """For which lists of the same structure that is right."""


def with_overlap(
    questions: Questions,
    options: FusionOptions,
    target: Target,
    fixed: Mapping[ScalarPlace, int],
    varying: Collection[ScalarPlace],
    barrierless: str | None,
) -> Steps[Overlap | str]:
    """The list with the flagged temporaries computed anew of which that is proved, in the way that
    takes least on ``target``; or why there are none."""
    found = yield from temporaries(questions, options)
    finder = _Ways(questions, options, target, fixed, varying, barrierless)
    exchanged = frozenset(
        t.producer for t in found.found.values() if any(prod(n) > 1 for n in t.halo.values())
    )
    grouped = exchanged and barrierless is None and options.barriers == "auto"
    ways: list[Overlap | str] = []
    for tiled in (frozenset[int](), *([exchanged] if grouped else [])):
        if not tiled or "tiled" in WAYS:
            own = Temporaries(dict(found.found), dict(found.refused))
            ways.append((yield from finder.way(own, tiled)))
    made = [way for way in ways if isinstance(way, Overlap)]
    if len(made) > 1 and "inlined" not in WAYS:
        del made[0]
    if not made:
        assert isinstance(ways[0], str)
        return ways[0]
    best = min(made, key=finder.cost)
    questions.validity.add(best.validity, range(len(questions.submissions)))
    return best


@dataclass(frozen=True)
class _Ways:
    """Ways to compute the temporaries of a list anew."""

    questions: Questions
    options: FusionOptions
    target: Target
    fixed: Mapping[ScalarPlace, int]
    varying: Collection[ScalarPlace]
    barrierless: str | None

    def way(self, found: Temporaries, tiled: frozenset[int]) -> Steps[Overlap | str]:
        """The list in which the work of the producers ``tiled`` is done for a tile and its halo by
        work-groups, and that of the other producers of ``found`` by each work-item that reads it;
        or why there is none."""
        questions = self.questions
        inlined = {g: t for g, t in found.found.items() if t.producer not in tiled}
        apart = {g: t for g, t in found.found.items() if t.producer in tiled}
        rest = Temporaries(inlined)
        made = yield from overlapped_list(questions, rest)
        for group, reason in rest.refused.items():
            if tiled:
                return (yield from self.way(found, tiled | {found.found[group].producer}))
            found.refuse(group, reason)
        if made is None:
            if not tiled:
                return _nothing(questions, found)
            made = unchanged_list(questions)
        varies = [place for place, origin in made.origins.items() if origin in self.varying]
        values = {place: self.fixed[o] for place, o in made.origins.items() if o in self.fixed}
        asked = Questions(made.submissions, varies)
        raw = yield from direct_dependences(asked)
        decided = {
            asked.place[t.producer, t.argument].group: _decision(questions, t, t.producer in tiled)
            for t in found.found.values()
        }
        producers: dict[int, tuple[int, ...]] = {}
        for t in apart.values():
            producers[t.producer] = (*producers.get(t.producer, ()), t.argument)
        tiles = TiledStages(asked, producers, self.target)
        decided |= tiles.kept()
        always = self.options.require
        absent = {*made.absent, *producers}
        split_options = SplitOptions(self.barrierless, always, self.target, absent)
        stages = yield from split(asked, tiles.dependences(raw), split_options)
        scopes, layout = yield from promoted(
            asked, raw, stages, self.options, self.target, decided
        )
        unfit = tiles.unfit(layout.stages, layout.moved)
        if unfit is not None:
            return unfit
        kernels = StageKernels(
            asked, self.options, self.target.device, values, made.absent
        )
        plans: list[StagePlan] = []
        for stage, moved in zip(layout.stages, layout.moved, strict=True):
            if tiles.of_stage(stage):
                plan = yield from tiles.launch(stage, moved, kernels)
                if isinstance(plan, str):
                    return plan
            else:
                plan = kernels.plan(stage, kernels.fused(stage, moved))
                yield "passes"
            plans.append(replace(plan, sources=tuple(map(made.source, plan.sources))))
        return Overlap(
            found=tuple(_in_list(tiles.in_group(d), made) for d in scopes),
            layout=replace(layout, decisions=_decisions(questions, layout, found, made)),
            plans=tuple(plans),
            recomputed=tuple(_recomputation(questions, t) for t in found.found.values()),
            validity=made.validity(asked.validity.result()),
        )

    def cost(self, overlap: Overlap) -> tuple[float, float]:
        """What launches take, and, where a launch itself takes longer than its work, how many
        operations they do."""
        submissions = self.questions.submissions
        return (
            launches_seconds(*launches_work(self.questions, overlap.plans), self.target),
            sum(launch_operations(submissions, plan) for plan in overlap.plans),
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


def _decision(questions: Questions, t: Temporary, tiled: bool) -> PromotionDecision:
    label = questions.buffer_name(t.producer, t.argument)
    if tiled:
        return PromotionDecision(
            label, t.producer, t.argument, "local",
            "a work-group computes what its tile reads, its halo too",
        )  # fmt: skip
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
