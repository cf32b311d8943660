"""A list in which work-groups of one submission do the work-items of others, over plain ranges,
that read what a work-group has written (producer-consumer fusion at the level of work-groups).

A product of a matrix and a vector gives each work-group some rows, and what comes next adds to, or
activates, an element a work-item; a sum over a row is a work-group's, and what divides by it is
over rows and columns: neither have their ranges an index space in common, nor are the elements
those of one and the same work-item.  Over the work-groups of the first
(``passes/items_of_groups.py``) the dependence stays inside a work-group, as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.item_space import ItemSpace, global_range
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.validity import ScalarPlace
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.codegen.kept_loops import arrays_over_rows
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.walk import loaded_arrays, written_arrays
from fusionq.language.ranges import Range
from fusionq.passes.propagate_ids import propagate_ids
from fusionq.passes.sources import RangeSource
from fusionq.planning.cost import MARGIN, grouped_seconds
from fusionq.planning.group_shares import Share, share_of
from fusionq.planning.joined_launches import launch_seconds
from fusionq.planning.members import Members
from fusionq.planning.plan import StagePlan
from fusionq.planning.profitability import Wanted
from fusionq.planning.recomputing import impure
from fusionq.planning.side_by_side import are_apart, connected
from fusionq.planning.stages import SplitOptions, Stage, split
from fusionq.planning.users_list import UsersList


@dataclass(frozen=True)
class ItemsInGroups:
    """``questions`` about the list, in which the submissions ``hosts`` are over work-groups, each
    over those of another one, and about the user's (``users``), the same where there are none; the
    ``dependences`` of the first."""

    questions: Questions
    users: Questions
    dependences: list[tuple[PairScope, ...]]
    hosts: Mapping[int, int]

    def launches(self, plans: Sequence[StagePlan]) -> tuple[StagePlan, ...]:
        """The launches ``plans`` of the list as those of the user's."""
        return self._users_list.launches(plans) if self.hosts else tuple(plans)

    def rest(self) -> None:
        """Let the user's list's validity be what was found out about this list."""
        if self.hosts:
            every = range(len(self.users.submissions))
            found = self._users_list.validity(self.questions.validity)
            self.users.validity.add(found, every)

    def are_hosted(self, plans: Sequence[StagePlan]) -> bool:
        """Whether all submissions that work-groups of others do run together with such in the
        launches ``plans`` of the list."""
        stages = [
            members
            for plan in plans
            for members in plan.inner or [p.submissions for p in plan.beside] or [plan.present]
        ]
        return not _alone(stages, self.hosts)

    @property
    def _users_list(self) -> UsersList:
        shapes = {
            s: tuple(RangeSource(host, d) for d in range(_ndim(self.users.submissions[host])))
            for s, host in self.hosts.items()
        }
        return UsersList.in_place(self.users, shapes)


def items_in_groups(
    questions: Questions,
    varying: Collection[ScalarPlace],
    options: FusionOptions,
    wanted: Wanted,
    target: Target,
    measured: Callable[[], Target],
) -> Steps[ItemsInGroups | None]:
    """The list with work-items that work-groups of others do, where they are then part of one
    launch with these; None if there are none.  What launches do side by side they do not do one
    after the other for that; stages of persistent kernels, for which others wait, do."""
    if options.barriers == "none" or options.strategy == "unfused":
        return None
    found = _Hosts(questions, wanted, target, measured)
    for s in range(len(questions.submissions)):
        yield from found.consider(s)
    hosts: Mapping[int, int] = found.hosts
    tried = _Trial(questions, found.made, varying, options, wanted, target, measured)
    first = _first_of_each(questions, hosts)
    if 2 * first <= len(questions.submissions):
        # What becomes of the first of each kind becomes of the others, mostly.
        few = {s: host for s, host in hosts.items() if s < first}
        while few and (alone := (yield from tried.alone(few, first))[2]):
            kinds = {_kind(questions, s, few) for s in alone}
            few = {s: host for s, host in few.items() if s not in alone}
            hosts = {s: h for s, h in hosts.items() if _kind(questions, s, hosts) not in kinds}
    while hosts:
        asked, dependences, alone = yield from tried.alone(hosts, len(questions.submissions))
        if not alone:
            return ItemsInGroups(asked, questions, dependences, hosts)
        hosts = {s: host for s, host in hosts.items() if s not in alone}
    return None


@dataclass(frozen=True)
class _Trial:
    """Lists in which submissions are those ``made`` over work-groups; the rest as of
    ``items_in_groups``."""

    questions: Questions
    made: Mapping[int, Submission]
    varying: Collection[ScalarPlace]
    options: FusionOptions
    wanted: Wanted
    target: Target
    measured: Callable[[], Target]

    def alone(
        self, hosts: Mapping[int, int], count: int
    ) -> Steps[tuple[Questions, list[tuple[PairScope, ...]], set[int]]]:
        """The first ``count`` submissions with those of ``hosts`` over work-groups, their
        dependences, and which of these are to be left as they are."""
        questions, target = self.questions, self.target
        submissions = [
            self.made[s] if s in hosts else submission
            for s, submission in enumerate(questions.submissions[:count])
        ]
        varying = [place for place in self.varying if place[0] < count]
        numbers, answers = questions.numbers[:count], questions.answers
        asked = Questions(submissions, varying, numbers, answers=answers)
        dependences = yield from direct_dependences(asked)
        split_options = SplitOptions(None, self.wanted, target, self.measured)
        stages = yield from split(asked, dependences, split_options)
        alone = _alone([stage.members for stage in stages], hosts)
        if self.wanted == "profitable" and self.options.strategy != "megakernel":
            for stage in stages:
                alone |= _connecting(asked, dependences, stage, hosts, target)
        return asked, dependences, alone


def _connecting(
    questions: Questions,
    dependences: Sequence[Sequence[PairScope]],
    stage: Stage,
    hosts: Mapping[int, int],
    target: Target,
) -> set[int]:
    """Those of ``hosts`` in a stage without which parts of it would be stages side by side."""
    inside = hosts.keys() & set(stage.members)
    rest = [s for s in stage.members if s not in inside]
    if not inside or not are_apart(questions, dependences, stage, rest, target):
        return set()
    part_of = {s: part for part in connected(rest, dependences) for s in part}
    found: set[int] = set()
    for s in sorted(inside):
        producers = {d.producer for d in dependences[s] if d.scope != "NONE"}
        parts = {part_of[producer] for producer in producers if producer in part_of}
        if len(parts) > 1:
            found.add(s)
        for part in parts if len(parts) == 1 else ():
            part_of[s] = part
    return found


def _kind(questions: Questions, s: int, hosts: Mapping[int, int]) -> tuple[int, int]:
    return questions.kind(s), questions.kind(hosts[s])


def _first_of_each(questions: Questions, hosts: Mapping[int, int]) -> int:
    """How many submissions there are up to the last of those that are the first of their kind."""
    first: dict[tuple[int, int], int] = {}
    for s in sorted(hosts):
        first.setdefault(_kind(questions, s, hosts), s)
    return max(first.values(), default=-1) + 1


def _ndim(submission: Submission) -> int:
    return len(global_range(submission))


def _alone(stages: Sequence[Sequence[int]], hosts: Mapping[int, int]) -> set[int]:
    """Those of ``hosts`` in whose stage no submission has such work-groups of its own before."""
    return {s for members in stages if min(members) in hosts for s in members if s in hosts}


class _Hosts:
    """Looks for the submissions whose work-groups do the work-items of others.

    ``hosts``: for each such its host; ``made``: the submissions over work-groups.
    """

    def __init__(
        self,
        questions: Questions,
        wanted: Wanted,
        target: Target,
        measured: Callable[[], Target],
    ) -> None:
        self._questions = questions
        self._wanted = wanted
        self._target = target
        self._measured = measured
        self._writers: dict[int, int] = {}
        """The last submission that writes each group of memory."""
        self._shares: dict[tuple[int, int], Share | None] = {}
        """By the kinds of host and submission."""
        self._known: dict[object, bool] = {}
        """Whether two of such kinds, with such memory in common, run together."""
        self.hosts: dict[int, int] = {}
        self.made: dict[int, Submission] = {}

    def consider(self, s: int) -> Steps[None]:
        """The next submission."""
        submission = self._questions.submissions[s]
        host = self._host(s, submission)
        share = None if host is None else self._share(host, s)
        if host is not None and share is not None and (yield from self._joins(host, s, share)):
            self.hosts[s] = host
            self.made[s] = share.over_groups(self._questions.submissions[host], submission)
        stored = written_arrays(submission.ir)
        for k, group, _, _ in self._questions.memory(s):
            if submission.arguments[k].name in stored:
                self._writers[group] = s

    def _host(self, s: int, submission: Submission) -> int | None:
        """Whose work-groups have written last what a submission over a plain range reads."""
        if not isinstance(submission.range, Range) or impure(submission.ir) is not None:
            return None
        loaded = loaded_arrays(submission.ir.body)
        writers = [
            self._writers[group]
            for k, group, _, _ in self._questions.memory(s)
            if group in self._writers and submission.arguments[k].name in loaded
        ]
        if not writers:
            return None
        last = max(writers)
        return self.hosts.get(last, last)

    def _share(self, host: int, s: int) -> Share | None:
        """What each work-group of ``host`` would do of ``s``."""
        kinds = self._questions.kind(host), self._questions.kind(s)
        if kinds not in self._shares:
            self._shares[kinds] = share_of(self._questions, host, s)
        return self._shares[kinds]

    def _joins(self, host: int, s: int, share: Share) -> Steps[bool]:
        """Whether the two run together then, and that takes no longer than a launch more."""
        questions = self._questions
        numbers: dict[int, int] = {}
        key = questions.kind(host), questions.kind(s), tuple(
            (k, numbers.setdefault(group, len(numbers)), view)
            for member in (host, s)
            for k, group, view, _ in questions.memory(member)
        )  # fmt: skip
        if key not in self._known:
            self._known[key] = yield from self._joined(host, s, share)
        return self._known[key] and (yield from share.is_whole(questions, host, s))

    def _joined(self, host: int, s: int, share: Share) -> Steps[bool]:
        if not self._is_wanted(host, s, share):
            return False
        first, second = (self._questions.submissions[m] for m in (host, s))
        both = [first, share.over_groups(first, second)]
        pair = Questions(both, answers=self._questions.answers)
        dependences = yield from direct_dependences(pair)
        options = SplitOptions(None, self._wanted, self._target, self._measured)
        stages = yield from split(pair, dependences, options)
        return len(stages) == 1

    def _is_wanted(self, host: int, s: int, share: Share) -> bool:
        """Whether one launch for both is wanted: see ``Wanted``."""
        if self._wanted == "required" or self._keeps_row(host, s, share):
            return True
        if self._wanted == "profitable":
            return self._is_profitable(s, share)
        inside, alone = self._seconds(s, share)
        return inside <= MARGIN * alone

    def _keeps_row(self, host: int, s: int, share: Share) -> bool:
        """Whether work-items of both go through the same rows, which can stay in registers, and
        there are work-groups for the whole device: what a launch of its own would load is there."""
        device = self._target.device
        if not device.loads_together or 2 * share.groups < device.compute_units:
            return False
        if share.row < share.lanes or share.lanes < CODE_LIMITS.early_step:
            return False
        first, second = (self._questions.submissions[m] for m in (host, s))
        kernels = first.ir, share.over_groups(first, second).ir
        sizes: list[dict[int, int]] = []
        for member, submission, ir in zip((host, s), (first, second), kernels, strict=True):
            kernel = propagate_ids(ir)
            rows = arrays_over_rows(kernel, flatten_blocks(kernel.body))
            sizes.append({
                group: max(argument.dtype.nbytes // 4, 1)
                for k, group, _, _ in self._questions.memory(member)
                for argument in (submission.arguments[k],)
                if isinstance(argument, ArrayArgument) and argument.name in rows
            })  # fmt: skip
        words = [words for group, words in sizes[0].items() if group in sizes[1]]
        return bool(words) and share.row <= share.lanes * CODE_LIMITS.kept_words // min(words)

    def _is_profitable(self, s: int, share: Share) -> bool:
        """Whether a work-group's work-items take no longer than a launch of all."""
        if self._target.costs.chain_seconds:
            if share.each > share.lanes:
                return False  # threads would wait for memory once for each of their work-items
        elif share.row < share.lanes:
            return False  # vectors would have work-items in a part of their lanes
        inside, alone = self._seconds(s, share)
        return inside <= alone

    def _seconds(self, s: int, share: Share) -> tuple[float, float]:
        """What submission ``s`` takes in work-groups, and in a launch of its own."""
        kind = Members(self._questions, self._target, (s,)).kinds[0]
        target, range_ = self._measured(), global_range(kind.submission)
        beside = min(share.lanes, share.row)

        def seconds(groups: int, idle: int = 0) -> float:
            work, operations = kind.work, kind.operations
            return grouped_seconds(work, operations, range_.size, groups, beside, target, idle)

        if target.costs.chain_seconds:
            inside = seconds(share.groups, share.groups * max(share.lanes - share.each, 0))
            space = ItemSpace("ids", len(range_), None)
            alone = launch_seconds([kind], space, [kind.submission], target)
        else:
            inside = seconds(share.groups)
            alone = seconds(-(-range_.size // target.preferred_work_group))
        return inside, alone + target.costs.launch_seconds
