"""Which of the flagged buffers can leave global memory, by the table in the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from fusionq.analysis.footprint import Footprint, Use
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.local_footprint import local_footprint
from fusionq.analysis.private_footprint import private_footprint
from fusionq.analysis.submission import ArrayArgument, Promotion, Submission
from fusionq.analysis.work_groups import candidates, keeps_inside, largest_extents
from fusionq.base.errors import PromotionConflict
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.ir.walk import local_bytes
from fusionq.planning.plan import PromotionDecision
from fusionq.planning.stages import Stage

Place = tuple[int, int]
"""A submission and the position of one of its arguments."""

View = tuple[int, int]
"""An alias group and a view in it."""


@dataclass(frozen=True, slots=True)
class Promotions:
    """The decisions; the stages, perhaps with a work-group size that local memory needed; and
    for each stage the views to move, with scope and footprint."""

    decisions: tuple[PromotionDecision, ...]
    stages: tuple[Stage, ...]
    moved: tuple[dict[View, tuple[Promotion, Footprint]], ...]


def check_flags(submission: Submission) -> None:
    """Raise PromotionConflict if an accessor contradicts its buffer."""
    for argument in submission.arguments:
        if not isinstance(argument, ArrayArgument):
            continue
        buffer, accessor = argument.buffer_flag, argument.access_flag
        if buffer and accessor and buffer != accessor:
            raise PromotionConflict(
                f"`{argument.label}`, submitted at {submission.span}, is flagged for {buffer} "
                f"promotion and its access for {accessor}: flag one of the two, or both alike"
            )


def promotions(
    analysis: ListAnalysis, stages: Sequence[Stage], options: FusionOptions, target: Target
) -> Promotions:
    """Decide for every flagged buffer of the list."""
    return _Promoter(analysis, list(stages), options, target).run()


class _Promoter:
    def __init__(
        self,
        analysis: ListAnalysis,
        stages: list[Stage],
        options: FusionOptions,
        target: Target,
    ) -> None:
        self.analysis = analysis
        self.stages = stages
        self.options = options
        self.target = target
        self.moved: list[dict[View, tuple[Promotion, Footprint]]] = [{} for _ in stages]
        self.local_bytes = [
            sum(local_bytes(analysis.submissions[s].ir) for s in stage.members) for stage in stages
        ]

    def run(self) -> Promotions:
        decisions = []
        for places in self._flagged():
            scope, reason = self._decide(places)
            submission, argument = places[0]
            label = self.analysis.submissions[submission].arguments[argument].label
            decisions.append(PromotionDecision(label, submission, argument, scope, reason))
        return Promotions(tuple(decisions), tuple(self.stages), tuple(self.moved))

    def _flagged(self) -> Iterator[list[Place]]:
        """The uses of each alias group in which something is flagged."""
        groups: dict[int, list[Place]] = {}
        for position, place in self.analysis.place.items():
            groups.setdefault(place.group, []).append(position)
        for places in groups.values():
            arguments = [self._argument(p) for p in places]
            if any(_flag(a) for a in arguments) or (
                self.options.promote == "internal" and any(a.internal for a in arguments)
            ):
                yield places

    def _decide(self, places: Sequence[Place]) -> tuple[Literal["private", "local", "global"], str]:
        """Where the buffer goes, and why."""
        if self.options.promote == "none":
            return "global", "promote='none' was asked for"
        if self.options.strategy == "unfused":
            return "global", "nothing is fused, so other kernels may read it"
        arguments = [self._argument(p) for p in places]
        flags = {_flag(a) for a in arguments}
        if flags == {None}:
            if not all(a.internal for a in arguments):
                return "global", "only some accesses of this memory are marked internal"
        elif None in flags:
            return "global", "some accesses of it are flagged for promotion and some are not"
        used_in = [
            n for n, stage in enumerate(self.stages) if any(s in stage.members for s, _ in places)
        ]
        if len(used_in) > 1:
            return "global", (
                f"launches {' and '.join(map(str, used_in))} use it, so it has to survive the first"
            )
        stage = used_in[0]
        uses = self._uses(stage, self.analysis.place[places[0]].group)
        if not uses:
            return "global", "no kernel of the list touches it"
        place = self.analysis.place[places[0]]
        view = (place.group, place.view)
        if "local" in flags:
            return self._local(stage, uses, view, arguments[0])
        decision = self._private(stage, uses, view)
        if decision[0] == "global" and "private" not in flags and self._exchanged(stage, uses):
            return self._local(stage, uses, view, arguments[0])
        return decision

    def _exchanged(self, stage: int, uses: Sequence[Use]) -> bool:
        """Whether work-items of a group pass elements of this memory to each other."""
        submissions = {s for s, _ in uses}
        return any(
            {d.producer, d.consumer} <= submissions
            and any(
                s == d.consumer
                and self.analysis.argument_index(s, access.array) == d.consumer_argument
                for s, access in uses
            )
            for d in self.stages[stage].crossing
        )

    def _private(
        self, stage: int, uses: Sequence[Use], view: View
    ) -> tuple[Literal["private", "global"], str]:
        footprint = private_footprint(
            self.analysis, uses, self.stages[stage].space.mode, self.target.private_bytes
        )
        if isinstance(footprint, str):
            return "global", footprint
        self.moved[stage][view] = "private", footprint
        owned = (
            "one element a work-item"
            if footprint.is_scalar
            else f"{_size(footprint)} elements a work-item"
        )
        return "private", (
            f"{owned}, each written before it is read and touched by no other work-item"
        )

    def _local(
        self, number: int, uses: Sequence[Use], view: View, argument: ArrayArgument
    ) -> tuple[Literal["local", "global"], str]:
        stage = self.stages[number]
        extents = largest_extents(self.analysis, stage.members, stage.space)
        reason = "no work-group size was tried"
        tried = candidates(self.analysis, stage.crossing, stage.space, extents, self.target)
        for local in tried:
            footprint = local_footprint(self.analysis, uses, stage.space.mode, local)
            if isinstance(footprint, str):
                reason = footprint
                continue
            taken = prod(footprint.extents) * argument.dtype.nbytes
            free = self.target.device.local_memory_bytes - self.local_bytes[number]
            if taken > free:
                reason = (
                    f"a work-group's {_size(footprint)} elements take {taken} bytes of local "
                    f"memory, and {free} are free"
                )
                continue
            if stage.crossing and not keeps_inside(
                self.analysis, stage.crossing, stage.space.mode, local
            ):
                continue
            self.local_bytes[number] += taken
            self.stages[number] = replace(stage, space=replace(stage.space, local_range=local))
            self.moved[number][view] = "local", footprint
            return "local", (
                f"{_size(footprint)} elements a work-group of {_extents(local)}, each written "
                "before it is read and touched by no other work-group"
            )
        return "global", reason

    def _uses(self, stage: int, group: int) -> list[Use]:
        return [
            (s, access)
            for s in self.stages[stage].members
            for access in self.analysis.accesses[s].accesses
            if self.analysis.shares(s, access).group == group
        ]

    def _argument(self, place: Place) -> ArrayArgument:
        argument = self.analysis.submissions[place[0]].arguments[place[1]]
        assert isinstance(argument, ArrayArgument)
        return argument


def _flag(argument: ArrayArgument) -> Promotion | None:
    return argument.access_flag or argument.buffer_flag


def _size(footprint: Footprint) -> str:
    return _extents(footprint.extents)


def _extents(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents))
