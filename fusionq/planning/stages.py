"""Which submissions run together: neighbours join while nothing between them needs a launch
boundary, perhaps with a work-group barrier or in work-groups of a chosen size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from fusionq.analysis.dependence import Found, inside_groups
from fusionq.analysis.item_space import (
    ItemSpace,
    common_space,
    differ_in_first_only,
    global_range,
    local_range,
    meet_as,
)
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.work_groups import candidates, keeps_inside, largest_extents
from fusionq.base.target import Target
from fusionq.ir.walk import local_bytes
from fusionq.passes.guard import unguardable
from fusionq.planning.pays import too_slow

FARTHEST = 4
"""Stages that a submission looks back at for one to join."""

WAITS = ("GROUP", "GLOBAL")
"""Scopes for which work-items have to wait for others."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Neighbouring submissions in one index space; ``boundary`` says why they do not join the
    stage before.  ``crossing`` are the dependences between work-items of one group."""

    members: tuple[int, ...]
    space: ItemSpace
    boundary: str | None
    crossing: tuple[Found, ...] = field(default=())


def split(
    analysis: ListAnalysis,
    dependences: Sequence[Found],
    *,
    fuse: bool,
    barrierless: str | None,
    always: bool,
    target: Target,
) -> tuple[Stage, ...]:
    """The stages of a list, in order; one for each submission if not ``fuse``.

    A submission joins the last stage or, if it shares no element with the stages after that, an
    earlier one.
    ``barrierless`` says why there are to be no work-group barriers between submissions, so that no
    dependence may cross work-items; None if there may.  Unless ``always``, submissions join
    only where that is likely to pay.
    """
    stages: list[Stage] = []
    for s, submission in enumerate(analysis.submissions):
        boundary: str | None = None
        if stages:
            if not fuse:
                boundary = "the unfused strategy was asked for"
            else:
                reasons: list[str] = []
                for k in _within_reach(stages, s, dependences):
                    joined = _join(analysis, stages[k], s, dependences, barrierless, always, target)
                    if isinstance(joined, Stage):
                        stages[k] = joined
                        break
                    reasons.append(joined)
                else:
                    boundary = reasons[0]
                if boundary is None:
                    continue
        alone = common_space([submission])
        assert isinstance(alone, ItemSpace)
        stages.append(Stage((s,), alone, boundary))
    return tuple(stages)


def _within_reach(
    stages: Sequence[Stage], s: int, dependences: Sequence[Found]
) -> Iterator[int]:
    """The stages that submission ``s`` may be part of, the last first: it may run before those
    that it shares no element with."""
    producers = {d.producer for d in dependences if d.consumer == s and d.scope != "NONE"}
    for k in reversed(range(max(len(stages) - FARTHEST, 0), len(stages))):
        yield k
        if not producers.isdisjoint(stages[k].members):
            return


def _join(
    analysis: ListAnalysis,
    stage: Stage,
    s: int,
    dependences: Sequence[Found],
    barrierless: str | None,
    always: bool,
    target: Target,
) -> Stage | str:
    """``stage`` with submission ``s``, or why it cannot join."""
    between = [d for d in dependences if d.consumer == s and d.producer in stage.members]
    for d in between:
        if d.scope == "UNKNOWN":
            return _because(d, "what they touch is not known")
    members = (*stage.members, s)
    space = common_space([analysis.submissions[m] for m in members])
    if isinstance(space, str):
        return space
    if space.mode == "linear" and not always:
        slow = too_slow(analysis, members, space, target)
        if slow is not None:
            return slow
    apart = _meeting_apart(analysis, members, space, dependences)
    if apart is not None:
        return _because(apart, "beside the others their work-items would meet in another way")
    trapped = _trapped_barrier(analysis, members)
    if trapped is not None:
        return trapped
    taken = sum(local_bytes(analysis.submissions[m].ir) for m in members)
    if taken > target.device.local_memory_bytes:
        return (
            f"their LocalAccessors take {taken} bytes of local memory for each work-group, and "
            f"the device has {target.device.local_memory_bytes}"
        )
    waiting = [d for d in between if d.scope in WAITS]
    crossing = (*stage.crossing, *waiting)
    if not crossing:
        return Stage(members, space, stage.boundary)
    if barrierless is not None:
        return _because(waiting[0], barrierless)
    extents = largest_extents(analysis, members, space)
    slow = None
    for local in candidates(analysis, crossing, space, extents, target):
        if keeps_inside(analysis, crossing, space.mode, local):
            grouped = replace(space, local_range=local)
            why = None if always else too_slow(analysis, members, grouped, target)
            if why is None:
                return Stage(members, grouped, stage.boundary, crossing)
            slow = slow or why
    if slow is not None:
        return slow
    if not waiting:
        return "no work-group size keeps the dependences of the launch before inside a work-group"
    return _because(waiting[0], "work-groups would have to wait for each other")


def _meeting_apart(
    analysis: ListAnalysis,
    members: Sequence[int],
    space: ItemSpace,
    dependences: Sequence[Found],
) -> Found | None:
    """A dependence whose work-items are one and the same if its two submissions are alone, but
    not in ``space``."""
    submissions = analysis.submissions
    if differ_in_first_only([global_range(submissions[m]) for m in members]):
        return None
    for d in dependences:
        if d.scope == "ITEM" and d.producer in members and d.consumer in members:
            pair = (submissions[d.producer], submissions[d.consumer])
            if not meet_as(pair, space.mode):
                return d
    return None


def _trapped_barrier(analysis: ListAnalysis, members: Sequence[int]) -> str | None:
    """Why some member's barriers cannot stand outside the guard that a larger range of another
    member makes necessary; None if all can.  The largest range has no guard if the user has
    divided it into work-groups, as the launch is exactly that."""
    submissions = [analysis.submissions[s] for s in members]
    largest = max(global_range(s) for s in submissions)
    if all(global_range(s) == largest for s in submissions):
        return None
    for submission in submissions:
        if global_range(submission) == largest and local_range(submission) is not None:
            continue
        reason = unguardable(submission.ir.body)
        if reason is not None:
            return f"the ranges differ, and {reason}"
    return None


def _because(d: Found, why: str) -> str:
    return (
        f"{d.kind} dependence of submission {d.consumer} on submission {d.producer} has scope "
        f"{d.scope} ({d.reason}): {why}"
    )


def barriers_of(stage: Stage) -> tuple[int, ...]:
    """The members before which a work-group barrier has to stand: as few as possible, each as
    late as possible."""
    placed: list[int] = []
    since = 0
    for s in stage.members:
        if any(d.consumer == s and d.producer >= since for d in stage.crossing):
            placed.append(s)
            since = s
    return tuple(placed)


def settled(dependences: Sequence[Found], stages: Sequence[Stage]) -> tuple[Found, ...]:
    """``dependences`` with scope ``GROUP`` where the chosen work-group size makes it so."""
    inside = {
        id(d): stage.space.local_range
        for stage in stages
        for d in stage.crossing
        if stage.space.local_range is not None
    }

    def settle(d: Found) -> Found:
        local = inside.get(id(d))
        if d.scope != "GLOBAL" or local is None:
            return d
        reason = f"{inside_groups(local)}, the size that fusionq chose"
        return replace(d, scope="GROUP", reason=reason)

    return tuple(settle(d) for d in dependences)
