"""Which stages run side by side in one launch: those that do not depend on each other, and whose
work-groups are alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from math import prod

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.item_space import ItemSpace, common_space, global_range, local_range
from fusionq.analysis.questions import Questions
from fusionq.analysis.validity import size_order
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.ir.nodes import SMALL
from fusionq.ir.walk import waits_in_groups
from fusionq.planning.joined_launches import launch_seconds
from fusionq.planning.members import Members
from fusionq.planning.profitability import Wanted
from fusionq.planning.promotion import Promotions, flagged
from fusionq.planning.stages import JOIN_WINDOW, Stage

MOST_SIDE_BY_SIDE = 8
"""Stages of a launch: each adds its code to the kernel."""

_OF_A_WAVE = "it needs nothing of the stage before, which leaves workers idle: they do both at once"

_MOST_ITEMS = SMALL // MOST_SIDE_BY_SIDE
"""Work-items of each."""


def launches_of_stages(stages: Sequence[Stage]) -> Iterator[list[int]]:
    """The numbers of the stages of each launch, in order."""
    launch: list[int] = []
    for number, stage in enumerate(stages):
        if launch and not stage.beside:
            yield launch
            launch = []
        launch.append(number)
    if launch:
        yield launch


def launch_count(stages: Sequence[Stage]) -> int:
    """How many launches ``stages`` are."""
    return sum(not stage.beside for stage in stages)


def in_parts(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    stages: Sequence[Stage],
    options: FusionOptions,
    target: Target,
) -> tuple[Stage, ...]:
    """``stages``, in which submissions that do not all depend on each other are stages side by
    side, where the device has room for the work-items of all of them, or where they wait at
    barriers and have little memory in common: threads that would do one submission after the
    other."""
    if not target.costs.chain_seconds or options.barriers == "all":
        return tuple(stages)
    for _ in flagged(questions, options):
        return tuple(stages)  # what is promoted may need work-groups of another size
    return tuple(
        part for stage in stages for part in _parts(questions, dependences, stage, target)
    )


def in_wave_parts(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    stages: Sequence[Stage],
    options: FusionOptions,
    target: Target,
) -> tuple[Stage, ...]:
    """``stages`` of a persistent kernel, in which submissions that do not depend on each other and
    wait at barriers are stages of their own, where one of them alone leaves work-items' places of
    workers idle: tiles of both are then of one wave."""
    if not target.device.groups_in_workers:
        return tuple(stages)
    for _ in flagged(questions, options):
        return tuple(stages)
    found: list[Stage] = []
    room = target.device.compute_units * target.streaming_lanes
    for stage in stages:
        parts = _several(stage, dependences)
        wait = all(waits_in_groups(questions.submissions[s].ir) for s in stage.members)
        if parts and wait and _items(questions, stage.members) <= room:
            first, *others = _apart(questions, stage, parts)
            found.append(first)
            found += (replace(s, beside=False, boundary=_OF_A_WAVE) for s in others)
        else:
            found.append(stage)
    return tuple(found)


def _parts(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    stage: Stage,
    target: Target,
) -> Sequence[Stage]:
    parts = _several(stage, dependences)
    if not parts:
        return (stage,)
    room = target.device.compute_units * target.costs.busy_items
    items = sum(_items(questions, part) for part in parts)
    if items > room and not _wait_apart(questions, stage, target):
        return (stage,)
    return _apart(questions, stage, parts)


def are_apart(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    stage: Stage,
    members: Sequence[int],
    target: Target,
) -> bool:
    """Whether ``members`` of a stage were stages side by side if the others were not there."""
    if not target.costs.chain_seconds:
        return False
    alone = replace(stage, members=tuple(members))
    return len(_parts(questions, dependences, alone, target)) > 1


def _several(
    stage: Stage, dependences: Sequence[Sequence[PairScope]]
) -> Sequence[tuple[int, ...]]:
    """The parts of a stage of which none depends on another one; empty where it is left as it
    is."""
    parts = connected(stage.members, dependences)
    few = 1 < len(parts) <= MOST_SIDE_BY_SIDE
    return parts if few and stage.space.mode == "ids" else ()


def _items(questions: Questions, members: Sequence[int]) -> int:
    """The work-items of the largest of ``members``; about as many as that the plan is for."""
    ranges = [global_range(questions.submissions[s]) for s in members]
    for n in {n for range_ in ranges for n in range_}:
        questions.validity.demand_between(n, *size_order(n, bits=2))
    return max(range_.size for range_ in ranges)


def _apart(
    questions: Questions, stage: Stage, members_of_parts: Sequence[tuple[int, ...]]
) -> Sequence[Stage]:
    """The parts of a stage, of which none depends on another one, as stages, if they can be some
    whose work-groups are alike."""
    submissions = questions.submissions
    parts: list[Stage] = []
    for members in members_of_parts:
        space = common_space([submissions[s] for s in members])
        if not isinstance(space, ItemSpace) or space.mode != "ids":
            return (stage,)
        inside = set(members)
        crossing = tuple(d for d in stage.crossing if d.consumer in inside)
        local = stage.space.local_range if crossing else space.local_range
        own = replace(space, local_range=local)
        parts.append(Stage(members, own, stage.boundary, crossing, beside=bool(parts)))
    first = parts[0]
    if any(_differ(questions, first, part) for part in parts[1:]):
        return (stage,)
    return parts


def _wait_apart(questions: Questions, stage: Stage, target: Target) -> bool:
    """Whether work-groups wait for themselves in each submission of a stage, for memory that the
    others do not read as well: loads of one would then stand behind barriers of another."""
    submissions = [questions.submissions[s] for s in stage.members]
    if not all(waits_in_groups(submission.ir) for submission in submissions):
        return False
    each = sum(Members(questions, target, (s,)).memory_bytes for s in stage.members)
    together = Members(questions, target, stage.members).memory_bytes
    return target.side_by_side_share * (each - together) <= each


def connected(
    members: Sequence[int], dependences: Sequence[Sequence[PairScope]]
) -> list[tuple[int, ...]]:
    """``members`` in parts of which none depends on another one, each in order."""
    part_of: dict[int, set[int]] = {}
    for s in members:
        part = {s}
        for d in dependences[s]:
            if d.scope != "NONE" and d.producer in part_of:
                part |= part_of[d.producer]
        part_of |= dict.fromkeys(part, part)
    found = {id(part): part for part in part_of.values()}
    return sorted(tuple(sorted(part)) for part in found.values())


def put_side_by_side(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    layout: Promotions,
    target: Target,
    measured: Callable[[], Target],
    wanted: Wanted,
) -> Promotions:
    """``layout`` with the stages that run side by side behind each other, and marked."""
    launches: list[_Launch] = []
    launch_of: dict[int, int] = {}
    short: dict[Hashable, bool] = {}
    for numbers in launches_of_stages(layout.stages):
        members = [s for number in numbers for s in layout.stages[number].members]
        producers = {
            launch_of[d.producer]
            for s in members
            for d in dependences[s]
            if d.scope != "NONE" and d.producer in launch_of
        }
        least = max(max(producers, default=-1) + 1, len(launches) - JOIN_WINDOW)
        for k in range(max(least, 0), len(launches)):
            if launches[k].takes(numbers):
                break
        else:
            k = len(launches)
            launches.append(_Launch(
                questions, layout.stages, target, measured, wanted, short, numbers))
        launch_of |= dict.fromkeys(members, k)
    order = [number for launch in launches for number in launch.numbers]
    first = {launch.numbers[0] for launch in launches}
    stages = tuple(replace(layout.stages[n], beside=n not in first) for n in order)
    return replace(layout, stages=stages, moved=tuple(layout.moved[n] for n in order))


class _Launch:
    """A launch, beside whose stages others may run."""

    def __init__(
        self,
        questions: Questions,
        stages: Sequence[Stage],
        target: Target,
        measured: Callable[[], Target],
        wanted: Wanted,
        short: dict[Hashable, bool],
        numbers: Sequence[int],
    ) -> None:
        """``short``: of stages of the list, by what that depends on, whether they are."""
        self._questions = questions
        self._stages = stages
        self._target = target
        self._measured = measured
        self._wanted = wanted
        self.numbers = list(numbers)
        self._is_short = short

    def takes(self, numbers: Sequence[int]) -> bool:
        """Whether stages may run beside the others, of which they then are."""
        every = [*self.numbers, *numbers]
        if len(every) > MOST_SIDE_BY_SIDE:
            return False
        first, other = (self._stages[n] for n in (self.numbers[0], numbers[0]))
        if _differ(self._questions, first, other):
            return False
        taken = sum(self._members(n).local_bytes for n in every)
        if taken > self._target.device.local_memory_bytes:
            return False
        if not self._are_few(every) or not (self._wanted == "required" or self._are_whole(every)):
            return False
        if self._wanted == "profitable" and not all(map(self._short, every)):
            return False
        self.numbers += numbers
        return True

    def _are_few(self, numbers: Sequence[int]) -> bool:
        """Whether 32 bits hold the ids of the launch, whatever sizes the plan serves."""
        submissions, validity = self._questions.submissions, self._questions.validity
        members = (s for n in numbers for s in self._stages[n].members)
        ranges = {tuple(global_range(submissions[s])) for s in members}
        if any(prod(range_) >= _MOST_ITEMS for range_ in ranges):
            return False
        for range_ in sorted(ranges):
            validity.demand_items(range_, 0, _MOST_ITEMS)
        return True

    def _are_whole(self, numbers: Sequence[int]) -> bool:
        """Whether no work-item of a group is beyond its range, where lanes are vectors: a compiler
        for those makes bounds of its loop of guards around a whole kernel, masks of others."""
        submissions = self._questions.submissions
        members = (s for n in numbers for s in self._stages[n].members)
        threads = bool(self._target.costs.chain_seconds)
        return threads or all(local_range(submissions[s]) is not None for s in members)

    def _members(self, number: int) -> Members:
        return Members(self._questions, self._target, self._stages[number].members)

    def _short(self, number: int) -> bool:
        """Whether a launch is a part worth saving of what the stage takes."""
        questions, members = self._questions, self._members(number)
        space = self._stages[number].space
        each = [(questions.kind(s), questions.integers(s)) for s in members.numbers]
        key = space, tuple(each), members.memory_bytes
        if key not in self._is_short:
            target = self._measured()
            seconds = launch_seconds(members.kinds, space, members.different, target)
            seconds = max(seconds, members.memory_bytes / target.costs.memory_bandwidth)
            short = seconds <= target.side_by_side_launches * target.costs.launch_seconds
            if not short:
                for s in self._stages[number].members:
                    for n in global_range(questions.submissions[s]):
                        questions.validity.demand_between(n, *size_order(n, bits=2))
            self._is_short[key] = short
        return self._is_short[key]


def _differ(questions: Questions, first: Stage, other: Stage) -> bool:
    """Whether work-groups of two stages are not alike, so that one launch has none that do for
    both."""
    spaces = first.space, other.space
    if any(space.mode in ("hull", "linear") for space in spaces):
        return True
    if spaces[0].ndim != spaces[1].ndim or spaces[0].local_range != spaces[1].local_range:
        return True
    submissions = questions.submissions
    (_, *rows), (_, *others) = (
        largest_extents([submissions[s] for s in stage.members], stage.space)
        for stage in (first, other)
    )
    sizes = {submissions[s].ir.sub_group_size for s in (*first.members, *other.members)}
    return rows != others or len(sizes) > 1
