"""Range and NdRange: the index space of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import index

import numpy as np

from fusionq.base.call_site import argument_error
from fusionq.base.units import shown

MOST_WORK_ITEMS = 2**63 - 1
"""Ids are int64."""


def _extents(values: Sequence[int]) -> tuple[int, ...]:
    if not 1 <= len(values) <= 3:
        raise argument_error(f"a range has 1 to 3 dimensions, not {len(values)}: {values!r}")
    extents = []
    for value in values:
        if isinstance(value, (bool, np.bool_)) or not hasattr(type(value), "__index__"):
            raise argument_error(f"a range takes integers, not {type(value).__name__}: {value!r}")
        try:
            extent = index(value)
        except TypeError:  # an array of one element or more has __index__, too
            raise argument_error(
                f"a range takes integers, not {type(value).__name__}: {value!r}"
            ) from None
        if extent < 0:
            raise argument_error(f"a range cannot be negative: {tuple(values)!r}")
        extents.append(extent)
    if prod(extents) > MOST_WORK_ITEMS:
        raise argument_error(
            "a range has at most 2**63 - 1 work-items, since ids are int64, not "
            f"{shown(tuple(values))}"
        )
    return tuple(extents)


class Range(tuple[int, ...]):
    """The global range of a submission: 1 to 3 extents, the last is fastest.

    ``Range(n)``, ``Range(rows, columns)``; raises ArgumentError for anything else.
    Source: SYCL 2020, section 4.9.1.1.
    """

    __slots__ = ()

    def __new__(cls, *extents: int) -> Range:
        return super().__new__(cls, _extents(extents))

    def __repr__(self) -> str:
        return f"Range({', '.join(map(str, self))})"

    def __getnewargs__(self) -> tuple[int, ...]:
        """For ``copy`` and ``pickle``."""
        return tuple(self)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self)

    @property
    def size(self) -> int:
        """Number of work-items."""
        return prod(self)


class NdRange:
    """A global range divided into work-groups of an explicit local range.

    ``NdRange(Range(n), Range(64))``: same dimensions, each global extent a multiple of its
    local extent; raises ArgumentError otherwise.  Source: SYCL 2020, section 4.9.1.2.
    """

    __slots__ = ("global_range", "local_range")

    def __init__(
        self, global_range: Range | Sequence[int] | int, local_range: Range | Sequence[int] | int
    ) -> None:
        self.global_range = as_range(global_range)
        self.local_range = as_range(local_range)
        if len(self.global_range) != len(self.local_range):
            raise argument_error(
                f"an NdRange's global and local range need the same dimensions: {self!r}"
            )
        for whole, part in zip(self.global_range, self.local_range, strict=True):
            if part < 1:
                raise argument_error(
                    f"the extents of a local range are at least 1: {self!r}; it is how many "
                    "work-items a work-group has"
                )
            if whole % part:
                raise argument_error(
                    f"the local range must divide the global range in each dimension: {self!r}; "
                    "round the global range up and guard the extra work-items"
                )

    def __repr__(self) -> str:
        return f"NdRange({self.global_range!r}, {self.local_range!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NdRange) and (
            (self.global_range, self.local_range) == (other.global_range, other.local_range)
        )

    def __hash__(self) -> int:
        return hash((self.global_range, self.local_range))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.global_range)

    @property
    def size(self) -> int:
        """Number of work-items."""
        return prod(self.global_range)


_of_int = lru_cache(256)(Range)


def as_range(value: Range | Sequence[int] | int) -> Range:
    """``value`` as a Range: an int or a tuple stands for one."""
    if type(value) is int:
        return _of_int(value)
    if isinstance(value, Range):
        return value
    if isinstance(value, (tuple, list)):
        return Range(*value)
    return Range(value)  # type: ignore[arg-type]  # other sequences: Range says what is wrong
