"""Which submissions run together: neighbours join while nothing between them needs a launch
boundary, perhaps with a work-group barrier or in work-groups of a chosen size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fusionq.analysis.dependence import Found, inside_groups
from fusionq.analysis.item_space import ItemSpace, common_space, global_range, local_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.work_groups import candidates, keeps_inside, largest_extents
from fusionq.backends.base import DeviceInfo
from fusionq.ir.walk import local_bytes
from fusionq.passes.guard import unguardable
from fusionq.planning.validity import size_order

RESHAPED_ITEMS = 1 << 11
"""Up to so many work-items of ranges of different shapes join unasked: they find their ids by
division, and neighbours read what does not lie together, which for more costs more than a
launch."""

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
    reshape: bool,
    info: DeviceInfo,
) -> tuple[Stage, ...]:
    """The stages of a list, in order; one for each submission if not ``fuse``.

    ``barrierless`` says why there are to be no work-group barriers between submissions, so that no
    dependence may cross work-items; None if there may.  Without ``reshape`` ranges of
    different shapes join only if they are small.
    """
    stages: list[Stage] = []
    for s, submission in enumerate(analysis.submissions):
        boundary: str | None = None
        if stages:
            if not fuse:
                boundary = "the unfused strategy was asked for"
            else:
                joined = _join(analysis, stages[-1], s, dependences, barrierless, reshape, info)
                if isinstance(joined, Stage):
                    stages[-1] = joined
                    continue
                boundary = joined
        alone = common_space([submission])
        assert isinstance(alone, ItemSpace)
        stages.append(Stage((s,), alone, boundary))
    return tuple(stages)


def _join(
    analysis: ListAnalysis,
    stage: Stage,
    s: int,
    dependences: Sequence[Found],
    barrierless: str | None,
    reshape: bool,
    info: DeviceInfo,
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
    if space.mode == "linear" and not reshape:
        refused = _too_many_to_reshape(analysis, members)
        if refused is not None:
            return refused
    trapped = _trapped_barrier(analysis, members)
    if trapped is not None:
        return trapped
    taken = sum(local_bytes(analysis.submissions[m].ir) for m in members)
    if taken > info.local_memory_bytes:
        return (
            f"their LocalAccessors take {taken} bytes of local memory for each work-group, and "
            f"the device has {info.local_memory_bytes}"
        )
    waiting = [d for d in between if d.scope in WAITS]
    crossing = (*stage.crossing, *waiting)
    if not crossing:
        return Stage(members, space, stage.boundary)
    if barrierless is not None:
        return _because(waiting[0], barrierless)
    extents = largest_extents(analysis, members, space)
    for local in candidates(analysis, crossing, space, extents, info.max_work_group_size):
        if keeps_inside(analysis, crossing, space.mode, local):
            return Stage(members, replace(space, local_range=local), stage.boundary, crossing)
    if not waiting:
        return "no work-group size keeps the dependences of the launch before inside a work-group"
    return _because(waiting[0], "work-groups would have to wait for each other")


def _too_many_to_reshape(analysis: ListAnalysis, members: Sequence[int]) -> str | None:
    """Why ranges of different shapes had better not join; None if they may.  The plan serves sizes
    near these only, as they decide."""
    symbols = analysis.symbols
    ranges = [global_range(analysis.submissions[m]) for m in members]
    for extent in {extent for range_ in ranges for extent in range_}:
        analysis.proofs.demand_between(symbols.size(extent), *size_order(extent, bits=1))
    if max(range_.size for range_ in ranges) <= RESHAPED_ITEMS:
        return None
    shapes = ", ".join(dict.fromkeys(str(tuple(range_)) for range_ in ranges))
    return (
        f"ranges {shapes} differ in shape: one kernel would find the ids by division, which costs "
        "more than a launch; strategy='fused' joins them all the same"
    )


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
