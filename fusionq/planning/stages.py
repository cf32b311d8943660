"""Which submissions run together: neighbours join while nothing between them needs a launch
boundary, perhaps with a work-group barrier or in work-groups of a chosen size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import prod

from fusionq.analysis.dependence import PairScope, inside_groups
from fusionq.analysis.isl_operations import in_steps
from fusionq.analysis.item_space import (
    ItemSpace,
    common_space,
    differ_in_first_only,
    global_range,
    hull_space,
    local_range,
    share_items,
)
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import Submission
from fusionq.analysis.work_groups import largest_extents
from fusionq.base.device_info import private_items
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.ir.nodes import Kernel
from fusionq.passes.guard import unguardable
from fusionq.planning.crossing import Asked, group_sizes, is_multiple, key_of, proved_sizes
from fusionq.planning.members import KnownKinds, Members
from fusionq.planning.profitability import Wanted, is_slow_shape, unprofitable

JOIN_WINDOW = 4
"""Stages before the current one that a submission may join."""

MOST_JOINED = 1024
"""Submissions of a stage, unless all are to be joined: a launch saves microseconds for each, and
fusing and building them in one kernel, which cannot stop half-way, takes longer for each."""

MOST_REMEMBERED = 8
"""Submissions of a stage whose work-group size is remembered for stages that are alike."""

WAITS = ("GROUP", "GLOBAL", "UNKNOWN")
"""Scopes for which work-items have to wait for others."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Neighbouring submissions in one index space; ``boundary`` says why they do not join the
    stage before.  ``crossing`` are the dependences between work-items of one group.  ``beside``:
    whether it runs in one launch with the stage before, side by side."""

    members: tuple[int, ...]
    space: ItemSpace
    boundary: str | None
    crossing: tuple[PairScope, ...] = field(default=())
    beside: bool = False


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """``barrierless`` says why there are to be no work-group barriers between submissions, so that
    no dependence may cross work-items; None if there may.  ``own_groups``: there may all the same
    where submissions have explicit work-groups.  ``wanted``: which submissions join that
    may.  ``measured`` gives ``target`` with measured costs.  Those ``absent`` are part of no stage,
    as others do what they would.  The launches of those ``by_tiles`` go along rows, whose inside
    has code without conditions, so that guards that differ are no masks.  ``hulls``: whether those
    that depend on nothing of each other may meet in the hull of their ranges."""

    barrierless: str | None
    wanted: Wanted
    target: Target
    measured: Callable[[], Target]
    absent: Collection[int] = ()
    by_tiles: Collection[int] = ()
    own_groups: bool = False
    hulls: bool = False


LARGEST_HULL = 1.25
"""Work-items of a hull, most of which have something to do, for one of its largest range."""


def split(
    questions: Questions, dependences: Sequence[Sequence[PairScope]], options: SplitOptions
) -> Steps[tuple[Stage, ...]]:
    """The stages of a list, in order, whose submissions have the ``dependences``.

    A submission joins the last stage or, if it shares no element with the stages after that, an
    earlier one.
    """
    stages: list[_GrowingStage] = []
    stage_of: list[int] = []
    known = KnownKinds()
    for s, needed in enumerate(dependences):
        if s in options.absent:
            stage_of.append(-1)
            continue
        reasons: list[str] = []
        producers = {stage_of[d.producer] for d in needed if d.scope != "NONE"}
        for k in _within_reach(len(stages), producers):
            between = [d for d in needed if stage_of[d.producer] == k]
            reason = yield from in_steps(partial(stages[k].join, s, between))
            if reason is None:
                stage_of.append(k)
                break
            reasons.append(reason)
        else:
            stage_of.append(len(stages))
            boundary = reasons[0] if reasons else None
            stages.append(_GrowingStage(questions, s, boundary, options, known))
        yield "analysis"
    return tuple(stage.finished() for stage in stages)


def apart(questions: Questions, boundary: str) -> tuple[Stage, ...]:
    """A stage for each submission, for the reason ``boundary``."""
    return tuple(
        Stage((s,), space_of([submission]), boundary if s else None)
        for s, submission in enumerate(questions.submissions)
    )


def _within_reach(stages: int, producers: Collection[int]) -> Iterator[int]:
    """The stages that a submission may be part of, the last first: it may run before those that it
    shares no element with, which are not among its ``producers``."""
    for k in reversed(range(max(stages - JOIN_WINDOW, 0), stages)):
        yield k
        if k in producers:
            return


def space_of(submissions: Sequence[Submission]) -> ItemSpace:
    """The index space of submissions that have one."""
    space = common_space(submissions)
    assert isinstance(space, ItemSpace)
    return space


class _GrowingStage:
    """A stage that others may join."""

    def __init__(
        self,
        questions: Questions,
        first: int,
        boundary: str | None,
        options: SplitOptions,
        known: KnownKinds,
    ) -> None:
        self._questions = questions
        self._options = options
        self._boundary = boundary
        self._members = Members(questions, options.target, (first,), known)
        self._space = space_of(self._members.different)
        self._crossing: list[PairScope] = []
        self._different: dict[object, PairScope] = {}
        """Of ``crossing`` those that differ."""
        self._asked: Asked = {}
        """About dependences of stages that are longer than those that are remembered: in an answer
        that is kept for others, each question has to be asked."""
        self._meeting: dict[tuple[object, object], PairScope] = {}
        """A dependence of scope ``ITEM`` for each pair of ranges between which there is one."""

    def finished(self) -> Stage:
        return Stage(
            tuple(self._members.numbers), self._space, self._boundary, tuple(self._crossing)
        )

    def join(self, s: int, between: Sequence[PairScope]) -> str | None:
        """Let submission ``s`` join, whose dependences on members are ``between``; or say why it
        cannot."""
        if len(self._members.numbers) >= MOST_JOINED and self._options.wanted == "profitable":
            return f"a launch joins {MOST_JOINED:,} submissions at most"
        for d in between:
            if d.scope == "UNKNOWN" and not self._is_of_one_group(s, d):
                return self._because(d, "what they touch is not known")
        meeting = {self._ranges(d): d for d in between if d.scope == "ITEM"}
        waiting = [d for d in between if d.scope in WAITS]
        self._members.add(s)
        joined: ItemSpace | str = "it is not known yet"
        try:
            joined = self._joined(meeting, waiting)
        finally:
            if isinstance(joined, str):
                self._members.remove_last()
        if isinstance(joined, str):
            return joined
        self._space = joined
        self._meeting = {**meeting, **self._meeting}
        self._crossing += waiting
        for d in waiting:
            self._different.setdefault(key_of(self._questions, d), d)
        return None

    def _is_of_one_group(self, s: int, d: PairScope) -> bool:
        """Whether the work-items of a dependence of submission ``s``, on elements that are not
        known, may be those of one work-group: all of the stage's then."""
        if d.items is None:
            return False
        last = self._questions.submissions[s]
        members = (*self._members.different, last)
        local = next(filter(None, map(local_range, members)), None)
        most = self._options.target.largest_barrier_group if local is None else prod(local)
        return all(global_range(member).size <= most for member in members)

    def _joined(
        self, meeting: Mapping[tuple[object, object], PairScope], waiting: Sequence[PairScope]
    ) -> ItemSpace | str:
        """The index space with the last member, or why there is none."""
        members, target = self._members, self._options.target
        space = common_space(members.different)
        if isinstance(space, str):
            return space
        if space.mode == "linear" and not (waiting or self._crossing):
            space = self._hull({**self._meeting, **meeting}) or space
        if space.mode == "linear" or not waiting:
            slow = self._unprofitable(space)
            if slow is not None:
                return slow
        other = self._meeting_apart({**self._meeting, **meeting}, space)
        if other is not None:
            apart = "beside the others their work-items would meet in another way"
            return self._because(other, apart)
        sizes = {size for s in members.different if (size := s.ir.sub_group_size) is not None}
        if len(sizes) > 1:
            return f"their sub-groups have different sizes: {', '.join(map(str, sorted(sizes)))}"
        trapped = _trapped_barrier(members.different)
        if trapped is not None:
            return trapped
        taken = members.local_bytes
        if taken > target.device.local_memory_bytes:
            return (
                f"they take {taken} bytes of local memory for each work-group, and "
                f"the device has {target.device.local_memory_bytes}"
            )
        large = self._private_memory()
        if large is not None:
            return large
        if not waiting and not self._crossing:
            return space
        barrierless = self._options.barrierless
        if self._options.own_groups and space.local_range is not None:
            barrierless = None
        if barrierless is not None:
            return self._because(waiting[0], barrierless)
        grouped = self._grouped(space, waiting)
        if grouped is not None:
            return grouped
        if not waiting:
            return (
                "no work-group size keeps the dependences of the launch before inside a work-group"
            )
        farthest = next((d for d in waiting if d.scope != "GROUP"), waiting[0])
        return self._because(farthest, "work-groups would have to wait for each other")

    def _hull(self, meeting: Mapping[tuple[object, object], PairScope]) -> ItemSpace | None:
        """The index space over the hull of the members' ranges, which meet nowhere else."""
        members = self._members.different
        space = hull_space(members) if self._options.hulls else None
        if space is None or self._meeting_apart(meeting, space) is not None:
            return None
        most = max(global_range(s).size for s in members)
        return space if prod(largest_extents(members, space)) <= LARGEST_HULL * most else None

    def _private_memory(self) -> str | None:
        """Why the private arrays of all of them are too large for one launch."""
        members, target = self._members, self._options.target
        local = local_range(members.different[-1]) or (target.largest_barrier_group,)
        taken = members.private_bytes * private_items(target.device, local)
        most = target.device.private_memory_bytes
        if most is None or taken <= most:
            return None
        return (
            f"they take {members.private_bytes} bytes of private memory for each work-item, "
            f"{taken} for those that run at once, and the device has {most}"
        )

    def _grouped(self, space: ItemSpace, waiting: Sequence[PairScope]) -> ItemSpace | str | None:
        """``space`` with a work-group size that all dependences between work-items stay inside, or
        why the ones that do are not taken; None if there is none."""
        new = {key_of(self._questions, d): d for d in waiting}
        crossing = tuple({**self._different, **new}.values())
        members = tuple(self._members.numbers)
        if len(members) > MOST_REMEMBERED:
            return self._tried(space, crossing, self._asked)
        number = {s: k for k, s in enumerate(members)}
        about = tuple((number[d.producer], number[d.consumer], id(d.items)) for d in crossing)
        return self._questions.ask(
            members, ("group size", space, about), lambda _: self._tried(space, crossing)
        )

    def _tried(
        self, space: ItemSpace, crossing: Sequence[PairScope], asked: Asked | None = None
    ) -> ItemSpace | str | None:
        """As ``_grouped``, for the dependences ``crossing``."""
        questions, target = self._questions, self._options.target
        extents = largest_extents(self._members.different, space)
        sizes = list(group_sizes(questions, crossing, space, extents, target, asked))
        fit = [
            size
            for size in sizes
            if not is_slow_shape(
                self._members, replace(space, local_range=size), target, self._options.wanted
            )
        ]
        slow: str | None = None

        def wanted() -> Iterator[tuple[int, ...]]:
            """What proofs are asked about: of sizes that are not profitable one has to be proved,
            to say so, and those of which one that is too hard to prove may be a multiple."""
            yield from fit
            for size in sizes:
                if size not in fit and (slow is None or any(is_multiple(f, size) for f in fit)):
                    yield size

        for local in proved_sizes(questions, crossing, space.mode, wanted(), asked):
            grouped = replace(space, local_range=local)
            why = self._unprofitable(grouped)
            if why is None:
                return grouped
            slow = slow or why
        return slow

    def _unprofitable(self, space: ItemSpace) -> str | None:
        """Why members that may join over ``space`` do not."""
        options, validity = self._options, self._questions.validity
        masks = not any(s in options.by_tiles for s in self._members.numbers)
        return unprofitable(
            self._members, space, self._space, options.target, options.measured, options.wanted,
            validity, masks,
        )  # fmt: skip

    def _because(self, d: PairScope, why: str) -> str:
        consumer, producer = (self._questions.numbers[s] for s in (d.consumer, d.producer))
        return (
            f"{d.kind} dependence of submission {consumer} on submission {producer} has scope "
            f"{d.scope} ({d.reason}): {why}"
        )

    def _ranges(self, d: PairScope) -> tuple[object, object]:
        submissions = self._questions.submissions
        return submissions[d.producer].range, submissions[d.consumer].range

    def _meeting_apart(
        self, meeting: Mapping[tuple[object, object], PairScope], space: ItemSpace
    ) -> PairScope | None:
        """A dependence whose work-items are one and the same if its two submissions are alone, but
        not in ``space``."""
        if differ_in_first_only([global_range(m) for m in self._members.different]):
            return None
        submissions = self._questions.submissions
        for d in meeting.values():
            if not share_items((submissions[d.producer], submissions[d.consumer]), space.mode):
                return d
        return None


def _trapped_barrier(submissions: Sequence[Submission]) -> str | None:
    """Why some member's barriers cannot stand outside the guard that a larger range of another
    member makes necessary; None if all can.  The largest range has no guard if the user has
    divided it into work-groups, as the launch is exactly that."""
    largest = max(global_range(s) for s in submissions)
    if all(global_range(s) == largest for s in submissions):
        return None
    for submission in submissions:
        if global_range(submission) == largest and local_range(submission) is not None:
            continue
        reason = _unguardable(submission.ir)
        if reason is not None:
            return f"the ranges differ, and {reason}"
    return None


@cached_by_identity
def _unguardable(kernel: Kernel) -> str | None:
    return unguardable(kernel.body)


def barriers_of(stage: Stage) -> tuple[int, ...]:
    """The members before which a work-group barrier has to stand: as few as possible, each as
    late as possible."""
    latest: dict[int, int] = {}
    for d in stage.crossing:
        latest[d.consumer] = max(d.producer, latest.get(d.consumer, -1))
    placed: list[int] = []
    since = 0
    for s in stage.members:
        if latest.get(s, -1) >= since:
            placed.append(s)
            since = s
    return tuple(placed)


def group_scopes(
    dependences: Sequence[PairScope], stages: Sequence[Stage]
) -> tuple[PairScope, ...]:
    """``dependences`` with scope ``GROUP`` where the chosen work-group size makes it so."""
    inside = {
        id(d): stage.space.local_range
        for stage in stages
        for d in stage.crossing
        if stage.space.local_range is not None
    }

    def in_group(d: PairScope) -> PairScope:
        local = inside.get(id(d))
        if d.scope not in ("GLOBAL", "UNKNOWN") or local is None:
            return d
        reason = f"{inside_groups(local)}, the size that fusionq chose"
        return replace(d, scope="GROUP", reason=reason)

    return tuple(in_group(d) for d in dependences)
