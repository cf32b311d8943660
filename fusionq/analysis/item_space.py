"""When work-items of two submissions are one and the same work-item of a fused kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from fusionq.analysis.submission import Sized, Submission
from fusionq.base.frozen import dataclass
from fusionq.language.ranges import NdRange, Range


def global_range(submission: Sized) -> Range:
    """The submission's global extents."""
    r = submission.range
    return r.global_range if isinstance(r, NdRange) else r


def local_range(submission: Sized) -> tuple[int, ...] | None:
    """The submission's explicit work-group size, or None for a plain Range."""
    r = submission.range
    return tuple(r.local_range) if isinstance(r, NdRange) else None


Mode = Literal["ids", "first", "last", "hull", "linear"]


@dataclass(frozen=True, slots=True)
class ItemSpace:
    """The fused kernel's index space for some submissions.

    ``ids``: equal ids are one work-item.
    ``first``, ``last``: so are the ``i`` of a one-dimensional range and ``(i, 0)``, or ``(0, i)``,
    of two-dimensional ones: a row's, or a column's, first work-item does what is to be done for
    the whole row or column.
    ``hull``: as ``ids``, or ``last`` for those of one dimension beside two; none of the ranges
    holds all others, and the least one that does is the kernel's.
    ``linear``: equal linear ids are one work-item; the fused kernel is one-dimensional.

    But for ``hull`` and ``linear``, one of the ranges holds all others in every dimension.
    """

    mode: Mode
    ndim: int
    local_range: tuple[int, ...] | None

    def extents_of(self, range_: Sequence[int]) -> tuple[int, ...]:
        """The extents of what a submission over ``range_`` takes of the space."""
        if self.mode == "linear":
            return (prod(range_),)
        more = (1,) * (self.ndim - len(range_))
        return (*range_, *more) if self.mode == "first" else (*more, *range_)


def common_space(submissions: Sequence[Submission]) -> ItemSpace | str:
    """The index space that holds all ``submissions``, or the reason why there is none.

    What it is rests on the order of the extents and on which are zero, not on their values.
    """
    ranges = [global_range(s) for s in submissions]
    locals_ = {local for s in submissions if (local := local_range(s)) is not None}
    if len(locals_) > 1:
        sizes = " and ".join(str(size) for size in sorted(locals_))
        return f"explicit work-group sizes differ ({sizes})"
    local = next(iter(locals_), None)
    if differ_in_first_only(ranges):
        return ItemSpace("ids", len(ranges[0]), local)
    if local is None:
        mode = _mode(ranges)
        return ItemSpace(mode, 1 if mode == "linear" else max(map(len, ranges)), None)
    return (
        f"ranges {', '.join(dict.fromkeys(str(tuple(r)) for r in ranges))} have no common index "
        f"space that keeps the explicit work-group size {local}"
    )


def _mode(ranges: Sequence[Range]) -> Mode:
    """How plain ranges of different shapes meet."""
    ndim = max(map(len, ranges))
    full = [r for r in ranges if len(r) == ndim]
    most = tuple(max(r[d] for r in full) for d in range(ndim))
    if all(tuple(r) != most for r in full) or 0 in most:
        return "linear"
    if len(full) == len(ranges):
        return "ids"
    if ndim > 2:
        return "linear"
    longest = max(r[0] for r in ranges if len(r) == 1)
    return "last" if longest == most[1] else "first" if longest == most[0] else "linear"


def hull_space(submissions: Sequence[Submission]) -> ItemSpace | None:
    """The index space over the hull of plain ranges, none of which holds all others, of one number
    of dimensions, or of one and two; None where there is none."""
    ranges = [global_range(s) for s in submissions]
    dims = set(map(len, ranges))
    if any(local_range(s) is not None for s in submissions) or any(r.size == 0 for r in ranges):
        return None
    return ItemSpace("hull", max(dims), None) if len(dims) == 1 or dims == {1, 2} else None


def hull(ranges: Sequence[Range]) -> Range:
    """The least range that holds all of ``ranges``; those of one dimension are rows of it."""
    ndim = max(map(len, ranges))
    whole = [(1,) * (ndim - len(r)) + tuple(r) for r in ranges]
    return Range(*map(max, zip(*whole, strict=True)))


def whole_range(submissions: Sequence[Submission], members: Sequence[int], mode: Mode) -> Range:
    """The range that holds those of all ``members``, which meet in ``mode``; by linear ids that of
    the one with the most work-items."""
    if mode == "hull":
        return hull([global_range(submissions[s]) for s in members])
    return global_range(submissions[largest(submissions, members)])


def share_items(submissions: Sequence[Submission], mode: Mode) -> bool:
    """Whether those work-items of two submissions that meet in their own common space are the
    same as in one for more submissions, in ``mode``."""
    own = common_space(submissions)
    if isinstance(own, str):
        return False
    if own.mode == mode:
        return True
    if mode == "linear":
        return differ_in_first_only([global_range(s) for s in submissions])
    if mode == "hull" and own.mode == "last":
        return True
    return own.mode == "ids"


def differ_in_first_only(ranges: Sequence[Range]) -> bool:
    """Whether ranges have one shape, but perhaps for the first dimension."""
    return len({(len(r), r[1:]) for r in ranges}) == 1


def largest(submissions: Sequence[Submission], members: Sequence[int]) -> int:
    """Which of ``members`` has the range that holds those of all others, if they meet by ids."""

    def extent(s: int) -> tuple[int, int]:
        range_ = global_range(submissions[s])
        return range_.size, len(range_)

    return max(members, key=extent)
