"""A list whose submissions over linear ids that they divide are over rows.

Work-groups of linear ids are parts of a row, or several rows and a half: what their work-items read
above and below lies in no box of bounded size, or in one that is many rows wide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from fusionq.analysis.questions import Questions
from fusionq.analysis.row_items import are_rows
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.validity import ScalarPlace, Validity
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Extent, Kernel
from fusionq.language.ranges import Range
from fusionq.passes.rows_of_items import rows_of_items
from fusionq.passes.sources import ExtentSource
from fusionq.planning.recomputing import impure
from fusionq.planning.renamed_list import Place
from fusionq.planning.users_list import UsersList


@dataclass(frozen=True)
class RowsList:
    """``questions`` about the list, and about the user's (``users``), which is the same where
    nothing is over rows; ``shapes``: for each submission that is the sources of its extents, those
    of its arrays."""

    questions: Questions
    users: Questions
    shapes: Mapping[int, tuple[ExtentSource, ...]]

    def users_list(
        self, numbers: Sequence[int], origins: Mapping[Place, Place], ranges: Mapping[int, int]
    ) -> UsersList:
        """See ``UsersList``, for a list that was made of this one."""
        return UsersList(self.users, numbers, origins, ranges, self.shapes)

    def rests_on(self, validity: Validity) -> None:
        """Let the user's list's validity be ``validity`` too, and what was found out about this
        list."""
        every = range(len(self.users.submissions))
        if self.shapes:
            users = UsersList.in_place(self.users, self.shapes)
            found = users.validity(self.questions.validity)
            self.users.validity.add(found, every)
        self.users.validity.add(validity, every)


def rows_list(questions: Questions, varying: Collection[ScalarPlace]) -> RowsList:
    """The list with what is over linear ids over rows, where it is proved that these are the same
    work-items."""
    made = list(questions.submissions)
    shapes: dict[int, tuple[ExtentSource, ...]] = {}
    kernels: dict[object, tuple[Kernel, tuple[Extent, ...]] | None] = {}
    for s, submission in enumerate(questions.submissions):
        if not isinstance(submission.range, Range) or len(submission.range) != 1:
            continue
        sizes = extents_of(submission)
        key = (id(submission.ir), submission.range[0], *sizes.values())
        if key not in kernels:
            pure = impure(submission.ir, atomics=True) is None
            items = submission.range[0]
            kernels[key] = rows_of_items(submission.ir, sizes, items) if pure and items else None
        found = kernels[key]
        if found is None:
            continue
        kernel, extents = found
        position = {a.name: k for k, a in enumerate(submission.arguments)}
        places = tuple((position[e.array], e.dim) for e in extents)
        if not questions.ask((s,), ("rows", places), partial(are_rows, places=places)):
            continue
        shapes[s] = tuple(ExtentSource(s, k, dim) for k, dim in places)
        made[s] = replace(
            submission,
            kernel=kernel,
            range=Range(*(sizes[e] for e in extents)),
            fingerprint=f"{submission.fingerprint} over rows {list(kernels).index(key)}",
            form=None,
        )
    if not shapes:
        return RowsList(questions, questions, shapes)
    rows = Questions(made, varying, questions.numbers, answers=questions.answers)
    return RowsList(rows, questions, shapes)


def extents_of(submission: Submission) -> dict[Extent, int]:
    """The extents of the arrays that the kernel has."""
    params = {param.name for param in submission.ir.params}
    return {
        Extent(argument.name, dim): extent
        for argument in submission.arguments
        if isinstance(argument, ArrayArgument) and argument.name in params
        for dim, extent in enumerate(argument.shape)
    }
