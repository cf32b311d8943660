"""Which of the flagged buffers can leave global memory, by the table in the documentation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Literal

from fusionq.analysis.footprint import Footprint, Use
from fusionq.analysis.isl_operations import in_steps
from fusionq.analysis.item_space import Mode
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.live_accesses import accessed
from fusionq.analysis.local_footprint import local_footprint
from fusionq.analysis.private_footprint import private_footprint
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument, Promotion
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.passes.sources import ParamSource
from fusionq.passes.symbol_sources import sources_of_symbols
from fusionq.planning.crossing import different, group_sizes, keeps_inside
from fusionq.planning.flags import flag_of, is_flagged
from fusionq.planning.members import Members
from fusionq.planning.plan import PromotionDecision
from fusionq.planning.stages import Stage

MOST_NAMED = 8
"""Launches that one reason names."""

Place = tuple[int, int]
"""A submission and the position of one of its arguments."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A view that leaves global memory for ``scope``; ``place``: a use of it.  The ``symbols`` of
    its footprint have the values of sources by their numbers among ``users``."""

    place: Place
    scope: Promotion
    footprint: Footprint
    symbols: Mapping[str, ParamSource]
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Promotions:
    """The decisions; the stages, perhaps with a work-group size that local memory needed; and
    for each stage the views to move, with scope and footprint."""

    decisions: tuple[PromotionDecision, ...]
    stages: tuple[Stage, ...]
    moved: tuple[tuple[Moved, ...], ...]


def promotions(
    questions: Questions,
    stages: Sequence[Stage],
    options: FusionOptions,
    target: Target,
    decided: Mapping[int, PromotionDecision],
) -> Steps[Promotions]:
    """Decide for every flagged buffer of the list, by alias group, that is not ``decided``."""
    return _Promoter(questions, list(stages), options, target, decided).run()


PROMOTE_NONE = "promote='none' was asked for"


def flagged(questions: Questions, options: FusionOptions) -> Iterator[tuple[int, list[Place]]]:
    """The uses of each alias group in which something is flagged."""
    groups: dict[int, list[Place]] = {}
    found = set()
    for place, lies in questions.place.items():
        if _is_unused_field(questions, place):
            continue
        groups.setdefault(lies.group, []).append(place)
        argument = argument_at(questions, place)
        if is_flagged(argument, options):
            found.add(lies.group)
    for group in sorted(found):
        yield group, groups[group]


def _is_unused_field(questions: Questions, place: Place) -> bool:
    """Whether it is a field of records that the kernel leaves alone."""
    argument, kernel = argument_at(questions, place), questions.submissions[place[0]].ir
    return argument.field is not None and all(p.name != argument.name for p in kernel.params)


def not_promoted(
    questions: Questions, options: FusionOptions, places: Sequence[Place]
) -> str | None:
    """Why memory, with all its uses, is not to leave global memory; None if it is."""
    if options.promote == "none":
        return PROMOTE_NONE
    if options.strategy == "unfused":
        return "nothing is fused, so other kernels may read it"
    arguments = [argument_at(questions, p) for p in places]
    flags = {flag_of(a) for a in arguments}
    if flags == {None}:
        if not all(a.internal for a in arguments):
            return "only some accesses of this memory are marked internal"
    elif None in flags:
        return "some accesses of it are flagged for promotion and some are not"
    return None


def argument_at(questions: Questions, place: Place) -> ArrayArgument:
    """The array argument at ``place``."""
    argument = questions.submissions[place[0]].arguments[place[1]]
    assert isinstance(argument, ArrayArgument)
    return argument


class _Promoter:
    def __init__(
        self,
        questions: Questions,
        stages: list[Stage],
        options: FusionOptions,
        target: Target,
        decided: Mapping[int, PromotionDecision],
    ) -> None:
        self.questions = questions
        self.decided = decided
        self.stages = stages
        self.options = options
        self.target = target
        self.moved: list[list[Moved]] = [[] for _ in stages]
        self.taken: dict[int, int] = {}
        """Local memory that promoted buffers take, by stage."""
        self.stage_of = {s: n for n, stage in enumerate(stages) for s in stage.members}

    def run(self) -> Steps[Promotions]:
        decisions = []
        for group, places in flagged(self.questions, self.options):
            decision = self.decided.get(group)
            if decision is None:
                used = [place for place in places if place[0] in self.stage_of]
                decide = partial(self._decide, used or places)
                scope, reason = yield from in_steps(decide)
                label = self.questions.buffer_name(*places[0])
                decision = PromotionDecision(label, *places[0], scope, reason)
            decisions.append(decision)
            yield "analysis"
        return Promotions(tuple(decisions), tuple(self.stages), tuple(map(tuple, self.moved)))

    def _decide(self, places: Sequence[Place]) -> tuple[Literal["private", "local", "global"], str]:
        """Where the buffer goes, and why."""
        reason = not_promoted(self.questions, self.options, places)
        if reason is not None:
            return "global", reason
        flags = {flag_of(argument_at(self.questions, p)) for p in places}
        if not self._touched(places):
            return "global", "no kernel of the list touches it"
        used_in = sorted({self.stage_of[s] for s, _ in places})
        if len(used_in) > 1:
            return "global", (
                f"launches {_named(used_in)} use it, so it has to survive the first"
            )
        number = used_in[0]
        if "local" in flags:
            return self._local(number, places)
        decision = self._private(number, places)
        if decision[0] == "global" and "private" not in flags and self._exchanged(places):
            return self._local(number, places)
        return decision

    def _touched(self, places: Sequence[Place]) -> bool:
        """Whether some kernel has an access to the memory at ``places``."""
        return any(
            access.argument == position
            for s, position in places
            for access in accessed(self.questions, s)
        )

    def _exchanged(self, places: Sequence[Place]) -> bool:
        """Whether work-items of a group pass elements of this memory to each other."""
        return any(
            (d.producer, d.producer_argument) in places
            and (d.consumer, d.consumer_argument) in places
            for d in self.stages[self.stage_of[places[0][0]]].crossing
        )

    def _private(
        self, number: int, places: Sequence[Place]
    ) -> tuple[Literal["private", "global"], str]:
        mode, limit = self.stages[number].space.mode, self.target.private_bytes
        found = self._owned(
            places,
            ("private", mode),
            lambda analysis, uses: private_footprint(analysis, uses, mode, limit),
        )
        if isinstance(found, str):
            return "global", found
        footprint = found.footprint
        self.moved[number].append(self._moved(places, "private", found))
        owned = (
            "one element a work-item"
            if footprint.is_scalar
            else f"{_size(footprint)} elements a work-item"
        )
        return "private", (
            f"{owned}, each written before it is read and touched by no other work-item"
        )

    def _local(
        self, number: int, places: Sequence[Place]
    ) -> tuple[Literal["local", "global"], str]:
        questions, stage = self.questions, self.stages[number]
        members = Members(questions, self.target, stage.members)
        crossing = different(questions, stage.crossing)
        mode = stage.space.mode
        extents = largest_extents(members.different, stage.space)
        reason = "no work-group size was tried"
        for local in group_sizes(questions, crossing, stage.space, extents, self.target):
            found = self._owned(
                places,
                ("local", mode, local),
                partial(_local_footprint, mode=mode, local=local),
            )
            if isinstance(found, str):
                reason = found
                continue
            footprint = found.footprint
            taken = prod(footprint.extents) * argument_at(self.questions, places[0]).dtype.nbytes
            before = members.local_bytes + self.taken.get(number, 0)
            free = self.target.device.local_memory_bytes - before
            if taken > free:
                reason = (
                    f"a work-group's {_size(footprint)} elements take {taken} bytes of local "
                    f"memory, and {free} are free"
                )
                continue
            if not keeps_inside(questions, crossing, mode, local):
                continue
            self.taken[number] = self.taken.get(number, 0) + taken
            self.stages[number] = replace(stage, space=replace(stage.space, local_range=local))
            self.moved[number].append(self._moved(places, "local", found))
            return "local", (
                f"{_size(footprint)} elements a work-group of {_extents(local)}, each written "
                "before it is read and touched by no other work-group"
            )
        return "global", reason

    def _owned(
        self,
        places: Sequence[Place],
        question: tuple[Hashable, ...],
        answer: Callable[[ListAnalysis, Sequence[Use]], Footprint | str],
    ) -> _Owned | str:
        """What each owner has of the memory at ``places``, all of which one stage uses."""
        first = places[0][1]

        def asked(analysis: ListAnalysis) -> _Owned | str:
            group = analysis.place[0, first].group
            uses = [
                (s, access)
                for s, accesses in enumerate(analysis.accesses)
                for access in accesses.accesses
                if analysis.shares(s, access).group == group
            ]
            found = answer(analysis, uses)
            return found if isinstance(found, str) else _Owned(found, sources_of_symbols(analysis))

        return self.questions.ask(_users(places), (*question, first), asked)

    def _moved(self, places: Sequence[Place], scope: Promotion, found: _Owned) -> Moved:
        return Moved(places[0], scope, found.footprint, found.symbols, _users(places))


@dataclass(frozen=True, slots=True, eq=False)
class _Owned:
    """A footprint, and where the values of its symbols are found."""

    footprint: Footprint
    symbols: Mapping[str, ParamSource]


def _users(places: Sequence[Place]) -> tuple[int, ...]:
    """The submissions that use a memory, in order."""
    return tuple(dict.fromkeys(s for s, _ in places))


def _local_footprint(
    analysis: ListAnalysis, uses: Sequence[Use], mode: Mode, local: tuple[int, ...]
) -> Footprint | str:
    return local_footprint(analysis, uses, mode, local)


def _named(launches: Sequence[int]) -> str:
    """Such as ``0 and 1``; long lists shortened."""
    if len(launches) > MOST_NAMED:
        return f"{launches[0]}, {launches[1]} and {len(launches) - 2} more"
    return " and ".join(map(str, launches))


def _size(footprint: Footprint) -> str:
    return _extents(footprint.extents)


def _extents(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents))
