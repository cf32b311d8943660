"""The work-items of one submission that each work-group of another would do: some neighbouring
ones, or a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod

from fusionq.analysis.group_items import are_items_of_groups, are_rows_of_groups
from fusionq.analysis.isl_operations import in_steps
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.questions import Questions
from fusionq.analysis.row_items import are_rows
from fusionq.analysis.submission import Submission
from fusionq.base.frozen import dataclass
from fusionq.base.steps import Steps
from fusionq.ir.nodes import Extent, Kernel
from fusionq.language.ranges import NdRange
from fusionq.passes.items_of_groups import items_of_groups, lanes_of, rows_of_groups
from fusionq.passes.rows_of_items import rows_of_items
from fusionq.planning.rows_list import extents_of

Places = tuple[tuple[int, int], ...]
"""Extents: array arguments, each with a dimension."""


@dataclass(frozen=True)
class Share:
    """``each`` work-items of one submission for each of ``groups`` work-groups of another one,
    which are rows of ``lanes``; ``row`` of them are beside each other.  ``kernel``: what does one
    work-item, over rows if ``inner`` has the extents but the first of these.  ``whole``: all
    extents of the rows where ids are linear."""

    kernel: Kernel
    each: int
    groups: int
    lanes: int
    row: int
    inner: Places = ()
    whole: Places = ()

    def over_groups(self, host: Submission, submission: Submission) -> Submission:
        """``submission`` over the work-groups of ``host``."""
        range_ = host.range
        assert isinstance(range_, NdRange)
        local = tuple(range_.local_range)
        if self.inner:
            inner = [Extent(submission.arguments[k].name, dim) for k, dim in self.inner]
            kernel = rows_of_groups(self.kernel, local, inner)
            share = f"rows of {self.inner}"
        else:
            kernel = items_of_groups(self.kernel, local, self.each, self.groups == 1)
            share = f"all {self.each}" if self.groups == 1 else str(self.each)
        return replace(
            submission,
            kernel=kernel,
            range=range_,
            fingerprint=f"{submission.fingerprint} {share} in each of {local}",
            form=None,
        )

    def is_whole(self, questions: Questions, host: int, s: int) -> Steps[bool]:
        """Whether the work-groups of submission ``host`` do all work-items of ``s``, each once."""
        if self.whole and not questions.ask(
            (s,), ("rows", self.whole), partial(are_rows, places=self.whole)
        ):
            return False
        alone = self.groups == 1
        about: tuple[object, ...] = "items of groups", self.each, alone
        answer = partial(are_items_of_groups, each=self.each, alone=alone)
        if self.inner:
            about = "rows of groups", self.inner, self.whole
            answer = partial(are_rows_of_groups, inner=self.inner, whole=self.whole)
        found: bool = yield from in_steps(lambda: questions.ask((host, s), about, answer))
        return found


def share_of(questions: Questions, host: int, s: int) -> Share | None:
    """What each work-group of submission ``host`` would do of ``s``, which is over a plain range;
    None if there is no whole number of work-items, or of rows, for each."""
    of_host, submission = questions.submissions[host], questions.submissions[s]
    local = local_range(of_host)
    lanes = None if local is None else lanes_of(local)
    space = global_range(of_host)
    if local is None or lanes is None or (len(local) == 2 and space[1] != lanes):
        return None
    groups, range_ = prod(space) // lanes, global_range(submission)
    if groups < 1 or range_.size < groups or range_.size % groups:
        return None
    each, kernel = range_.size // groups, submission.ir
    if tuple(range_) == tuple(space):
        return None  # its ids are the work-groups' own
    share = Share(kernel, each, groups, lanes, each)
    sizes = extents_of(submission)
    if len(range_) == 1:
        rows = None if kernel.arrays else _of_linear_ids(share, submission, sizes)
        return rows or (share if each <= lanes or not kernel.arrays else None)
    if kernel.arrays:
        return None  # of one work-item each, so that they begin anew with each
    inner = [_place(submission, sizes, extent, tuple(range_)) for extent in range_[1:]]
    if range_[0] != groups or None in inner:
        return None
    places = tuple(place for place in inner if place is not None)
    return replace(share, row=range_[-1], inner=places)


def _of_linear_ids(
    share: Share, submission: Submission, sizes: Mapping[Extent, int]
) -> Share | None:
    """``share`` where the kernel divides its linear ids by the extents of rows."""
    found = rows_of_items(share.kernel, sizes, share.each * share.groups)
    if found is None or sizes[found[1][0]] != share.groups:
        return None
    kernel, extents = found
    position = {a.name: k for k, a in enumerate(submission.arguments)}
    whole = tuple((position[e.array], e.dim) for e in extents)
    row = sizes[extents[-1]]
    return replace(share, kernel=kernel, row=row, inner=whole[1:], whole=whole)


def _place(
    submission: Submission, sizes: Mapping[Extent, int], extent: int, shape: tuple[int, ...]
) -> tuple[int, int] | None:
    """Where an array of the kernel has such an ``extent``: one that is of the range's ``shape``,
    else any."""
    position = {a.name: k for k, a in enumerate(submission.arguments)}
    alike = [e for e, size in sizes.items() if size == extent]

    def is_other(e: Extent) -> bool:
        return tuple(sizes.get(Extent(e.array, d)) for d in range(len(shape))) != shape

    first = min(alike, key=is_other, default=None)
    return None if first is None else (position[first.array], first.dim)
