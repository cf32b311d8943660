"""A list in which submissions over the parts of points are over points.

    submit(solve, n, a, x)                    # x[i, 0], …, x[i, 3]
    submit(move, (n, 4), x, p)                # p[i, k] -= x[i, k]

The second reads what other work-items have written.  Where each of its work-items does a point, as
the first one's do, it reads its own: they are one launch, and what is between them may be private.

On CPUs neighbouring work-items are lanes of a vector, of which the parts of one point, `(h, w, 3)`,
fill a few.  There all submissions over parts are over points, if all are of the kind of which
compilers make whole vectors then: without loops, of elements of up to four bytes, and with no
conditions on ids but what bounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.small_extents import SMALL_EXTENT
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.validity import ScalarPlace
from fusionq.base.frozen import dataclass
from fusionq.base.identity_cache import cached_by_identity
from fusionq.base.options import FusionOptions
from fusionq.base.steps import Steps
from fusionq.base.target import Target
from fusionq.ir.nodes import ArrayParam, Assign, Block, For, If, Kernel, Store
from fusionq.ir.walk import statements
from fusionq.language.ranges import Range
from fusionq.passes.points_of_items import points_of_items
from fusionq.passes.sources import ExtentSource
from fusionq.planning.plan import StagePlan
from fusionq.planning.profitability import Wanted
from fusionq.planning.recomputing import impure
from fusionq.planning.split_launches import is_beside_bounds
from fusionq.planning.stages import SplitOptions, Stage, split
from fusionq.planning.users_list import UsersList

Shape = tuple[ExtentSource, ...]
"""Where the extents of a range are found, of a submission whose arrays have them."""


@dataclass(frozen=True)
class PointsList:
    """``questions`` about the list, in which the submissions of ``shapes`` are over points, and
    about the user's (``users``)."""

    questions: Questions
    users: Questions
    shapes: Mapping[int, Shape]

    def launches(self, plans: Sequence[StagePlan]) -> tuple[StagePlan, ...]:
        """The launches ``plans`` of the list as those of the user's."""
        return self._users_list.launches(plans)

    def rest(self) -> None:
        """Let the user's list's validity be what was found out about this list, and its points as
        large as they are."""
        every = range(len(self.users.submissions))
        self.users.validity.add(self._users_list.validity(self.questions.validity), every)
        for s in self.shapes:
            parts = _parts(self.users.submissions[s])
            self.users.validity.demand_between(parts, parts, parts + 1)

    def are_launched(self, plans: Sequence[StagePlan]) -> bool:
        """Whether no launch ``plans`` of the list does points beside something else, of which the
        ranges are put together."""
        return all(part.geometry not in self.shapes for plan in plans for part in plan.beside)

    @property
    def _users_list(self) -> UsersList:
        return UsersList.in_place(self.users, self.shapes)


def points_list(
    questions: Questions,
    varying: Collection[ScalarPlace],
    options: FusionOptions,
    wanted: Wanted,
    target: Target,
    measured: Callable[[], Target],
) -> Steps[PointsList | None]:
    """The list with submissions over points where that makes fewer launches, or as many with fewer
    barriers; None where it does not."""
    if target.device.jams_rows and options.strategy != "overlap":
        return _of_lanes(questions, varying, target)
    others = options.strategy in ("unfused", "overlap", "megakernel")
    if others or options.barriers == "none" or not target.costs.chain_seconds:
        return None
    wholes = {tuple(s.range) for s in questions.submissions if isinstance(s.range, Range)}
    shapes: Mapping[int, Shape] = _shapes(
        questions.submissions,
        [
            s
            for s, submission in enumerate(questions.submissions)
            if isinstance(submission.range, Range) and tuple(submission.range[:-1]) in wholes
        ],
    )
    made = {s: _of_points(questions.submissions[s]) for s in shapes}
    split_options = SplitOptions(None, wanted, target, measured)
    while shapes:
        submissions = [
            made[s] if s in shapes else submission
            for s, submission in enumerate(questions.submissions)
        ]
        asked = Questions(submissions, varying, questions.numbers, answers=questions.answers)
        dependences = yield from direct_dependences(asked)
        stages = yield from split(asked, dependences, split_options)
        alone: set[int] = set()
        for stage in stages:
            if shapes.keys() >= set(stage.members):
                alone |= set(stage.members)
        if not alone:
            raw = yield from direct_dependences(questions)
            before = yield from split(questions, raw, split_options)
            fewer = _cost(stages) < _cost(before)
            return PointsList(asked, questions, shapes) if fewer else None
        shapes = {s: shape for s, shape in shapes.items() if s not in alone}
    return None


MOST_BYTES = 4
"""Of the elements of which compilers make whole vectors of points' parts: of three doubles they did
not (AVX-512)."""

FEWEST_VECTORS = 2
"""Of a row of points."""

_PLAIN = (Assign, Store, If, For, Block)


def _of_lanes(
    questions: Questions, varying: Collection[ScalarPlace], target: Target
) -> PointsList | None:
    """The list with all submissions over parts over points, where all may be; None where one may
    not, or there is none."""
    of_parts = _of_parts(questions.submissions)
    shapes = _shapes(questions.submissions, of_parts)
    if not shapes or len(shapes) < len(of_parts):
        return None
    made = list(questions.submissions)
    fewest = FEWEST_VECTORS * target.sub_group_size
    for s in shapes:
        made[s] = _of_points(questions.submissions[s])
        row = global_range(made[s])[-1]
        if not _is_vectors(made[s].ir) or not questions.validity.are_at_least((row,), fewest):
            return None
    asked = Questions(made, varying, questions.numbers, answers=questions.answers)
    return PointsList(asked, questions, shapes)


def _of_parts(submissions: Sequence[Submission]) -> list[int]:
    """The submissions over several parts of points."""
    return [
        s
        for s, submission in enumerate(submissions)
        if isinstance(submission.range, Range) and len(submission.range) > 1
        if 1 < submission.range[-1] <= SMALL_EXTENT
    ]


@cached_by_identity
def _is_vectors(kernel: Kernel) -> bool:
    """Whether compilers make whole vectors of what work-items do with all parts of a point."""
    arrays = [p for p in kernel.params if isinstance(p, ArrayParam)]
    if any(p.dtype.nbytes > MOST_BYTES for p in arrays):
        return False
    loops = sum(isinstance(s, For) for s in statements(kernel.body))
    plain = all(isinstance(s, _PLAIN) for s in statements(kernel.body))
    return plain and loops <= 1 and not is_beside_bounds(kernel, kernel.body)


def _cost(stages: Sequence[Stage]) -> tuple[int, int]:
    """How many launches there are, and how many dependences inside of them that barriers keep."""
    return len(stages), sum(len(stage.crossing) for stage in stages)


def _shapes(submissions: Sequence[Submission], among: Collection[int]) -> dict[int, Shape]:
    """Those ``among`` the submissions that may be over points, with the ranges that they have
    then."""
    found: dict[int, Shape] = {}
    for s in among:
        submission = submissions[s]
        range_, kernel = submission.range, submission.ir
        if not isinstance(range_, Range) or len(range_) < 2 or not 0 < range_[-1] <= SMALL_EXTENT:
            continue
        if kernel.arrays or impure(kernel, atomics=True):
            continue
        shape = tuple(_extent(s, submission, extent) for extent in range_[:-1])
        if None not in shape:
            found[s] = tuple(extent for extent in shape if extent is not None)
    return found


def _extent(s: int, submission: Submission, extent: int) -> ExtentSource | None:
    """Where an array of a submission has such an ``extent``; equal sizes are so in every list of
    one structure."""
    for k, argument in enumerate(submission.arguments):
        if isinstance(argument, ArrayArgument) and extent in argument.shape:
            return ExtentSource(s, k, argument.shape.index(extent))
    return None


def _parts(submission: Submission) -> int:
    assert isinstance(submission.range, Range)
    return submission.range[-1]


def _of_points(submission: Submission) -> Submission:
    """``submission``, whose work-items do a point each."""
    assert isinstance(submission.range, Range)
    parts = _parts(submission)
    return replace(
        submission,
        kernel=points_of_items(submission.ir, parts),
        range=Range(*submission.range[:-1]),
        fingerprint=f"{submission.fingerprint} points of {parts}",
        form=None,
    )
