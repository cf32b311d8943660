"""When work-items of two submissions are one and the same work-item of a fused kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fusionq.analysis.submission import Submission
from fusionq.language.ranges import NdRange, Range


def global_range(submission: Submission) -> Range:
    """The submission's global extents."""
    r = submission.range
    return r.global_range if isinstance(r, NdRange) else r


def local_range(submission: Submission) -> tuple[int, ...] | None:
    """The submission's explicit work-group size, or None for a plain Range."""
    r = submission.range
    return tuple(r.local_range) if isinstance(r, NdRange) else None


Mode = Literal["ids", "linear"]


@dataclass(frozen=True, slots=True)
class ItemSpace:
    """The fused kernel's index space for some submissions.

    ``ids``: equal ids are one work-item; all ranges agree but for the first dimension.
    ``linear``: equal linear ids are one work-item; the fused kernel is one-dimensional.
    """

    mode: Mode
    ndim: int
    local_range: tuple[int, ...] | None


def common_space(submissions: Sequence[Submission]) -> ItemSpace | str:
    """The index space that holds all ``submissions``, or the reason why there is none."""
    ranges = [global_range(s) for s in submissions]
    locals_ = {local for s in submissions if (local := local_range(s)) is not None}
    if len(locals_) > 1:
        sizes = " and ".join(str(size) for size in sorted(locals_))
        return f"explicit work-group sizes differ ({sizes})"
    local = next(iter(locals_), None)
    if len({(len(r), r[1:]) for r in ranges}) == 1:
        return ItemSpace("ids", len(ranges[0]), local)
    if local is None:
        return ItemSpace("linear", 1, None)
    return (
        f"ranges {', '.join(dict.fromkeys(str(tuple(r)) for r in ranges))} have no common index "
        f"space that keeps the explicit work-group size {local}"
    )
