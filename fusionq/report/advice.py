"""What would have to change for more of a list to share a launch or to leave global memory."""

from __future__ import annotations

from collections.abc import Iterator

from fusionq.planning.plan import Dependence, Plan, PromotionDecision
from fusionq.report.progressions import progressions, written

_DEPENDENCES = {
    "GROUP": (
        "work-items of one work-group exchange elements here, which takes a barrier. The "
        "kernels fuse for certain if every work-item reads only elements that it wrote itself"
    ),
    "GLOBAL": (
        "work-items of different work-groups exchange elements here, which takes a launch "
        "boundary. The kernels fuse if every work-item touches only its own elements (the same "
        "index expression over the same range in both), or those of its work-group"
    ),
    "UNKNOWN": (
        "the access cannot be analysed. The kernels may fuse if its index is a sum of work-item "
        "ids, loop variables, sizes and integer scalars with constant factors"
    ),
}

_BOUNDARIES = {
    "explicit work-group sizes differ": (
        "submit both with one work-group size, or with a plain Range, which leaves it to fusionq"
    ),
    "no common index space": (
        "submit with ranges that differ in the first dimension only, or without explicit "
        "work-group sizes"
    ),
    "the ranges differ, and": (
        "submit both over the same range, so that no guard has to stand around the barrier"
    ),
    "no work-group size keeps": (
        "submit with an NdRange whose work-groups hold the work-items that exchange elements"
    ),
}

_PROMOTIONS = {
    "more than one work-item": (
        "promote_local keeps what one work-group exchanges in local memory"
    ),
    "more than one work-group": (
        "let work-groups keep to themselves, for example with an NdRange whose work-groups match "
        "the tiles"
    ),
    "flagged for promotion and some are not": "flag the buffer itself, or every access of it",
    "marked internal": "mark the buffer itself, of which all views take the mark",
    "through views that differ": "pass one and the same view to every kernel",
    "not certain to be preceded by a write": (
        "write each element in the same work-item before it is read, without a condition on data"
    ),
    "so it has to survive": "the launches that use it would have to fuse, see above",
    "of local memory, and": "smaller work-groups, or fewer elements a work-item, take less",
    "is not affine": (
        "use an index that is a sum of work-item ids, loop variables, sizes and integer scalars"
    ),
}


def advice(plan: Plan) -> tuple[str, ...]:
    """One line for each obstacle: where it is, what it is, what to do."""
    return tuple(dict.fromkeys((*_for_dependences(plan), *_for_launches(plan))))


def _for_dependences(plan: Plan) -> Iterator[str]:
    stage_of = {index: n for n, stage in enumerate(plan.stages) for index in stage.submissions}
    for d in plan.dependences:
        if d.scope in _DEPENDENCES and stage_of.get(d.producer) != stage_of.get(d.consumer):
            yield f"{_place(d)}: {_DEPENDENCES[d.scope]}."


def _for_launches(plan: Plan) -> Iterator[str]:
    concerned: dict[str, list[int]] = {}
    for number, stage in enumerate(plan.stages):
        for part, remedy in _BOUNDARIES.items():
            if stage.boundary is not None and part in stage.boundary:
                concerned.setdefault(remedy, []).append(number)
    for remedy, numbers in concerned.items():
        which = ", ".join(map(written, progressions(numbers)))
        yield f"launch{'es' if len(numbers) > 1 else ''} {which}: {remedy}."


def _place(d: Dependence) -> str:
    return f"{d.buffer} ({d.producer_span} and {d.consumer_span})"


def promotion_advice(decision: PromotionDecision) -> str | None:
    """What would let a buffer leave global memory; None where it has, or where nobody knows."""
    if decision.scope != "global":
        return None
    for part, remedy in _PROMOTIONS.items():
        if part in decision.reason:
            return remedy
    return None
