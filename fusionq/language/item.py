"""Item, NdItem and Group: what a kernel asks about its work-item.

The classes hold plain numbers, so that a kernel runs as ordinary Python.  Every id and every
extent is an ``np.int64``, as in a compiled kernel.  Dimensions are in SYCL's order: the last
is fastest.  The names and their meaning are those of ``numba_dpex.kernel_api``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def _component(values: tuple[np.int64, ...], dim: int | None, method: str) -> np.int64:
    """``values[dim]``; the dimension may be left out in one dimension."""
    if dim is None:
        if len(values) != 1:
            raise TypeError(f"{method}() needs a dimension in {len(values)} dimensions")
        dim = 0
    if not 0 <= dim < len(values):
        raise IndexError(f"{method}({dim}): the range has {len(values)} dimension(s)")
    return values[dim]


def _linear_id(ids: tuple[np.int64, ...], extents: tuple[np.int64, ...]) -> np.int64:
    """The row-major index of ``ids`` within ``extents``."""
    linear: np.int64 = np.int64(0)
    for index, extent in zip(ids, extents, strict=True):
        linear = linear * extent + index
    return linear


def _product(extents: tuple[np.int64, ...]) -> np.int64:
    size: np.int64 = np.int64(1)
    for extent in extents:
        size = size * extent
    return size


def _int64(values: Sequence[int]) -> tuple[np.int64, ...]:
    return tuple(np.int64(value) for value in values)


class Item:
    """A work-item of a Range.  Source: SYCL 2020, section 4.9.1.4.

    ``id`` and ``range``: one entry for each dimension.
    """

    __slots__ = ("_id", "_range")

    def __init__(self, id: Sequence[int], range: Sequence[int]) -> None:
        self._id = _int64(id)
        self._range = _int64(range)

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return len(self._id)

    def get_id(self, dim: int | None = None) -> np.int64:
        """The work-item's id in dimension ``dim``."""
        return _component(self._id, dim, "get_id")

    def __getitem__(self, dim: int) -> np.int64:
        """``item[dim]`` is ``item.get_id(dim)``."""
        return self.get_id(dim)

    def get_range(self, dim: int | None = None) -> np.int64:
        """The extent of the range in dimension ``dim``."""
        return _component(self._range, dim, "get_range")

    def get_linear_id(self) -> np.int64:
        """The row-major index of the work-item."""
        return _linear_id(self._id, self._range)

    def get_linear_range(self) -> np.int64:
        """The number of work-items."""
        return _product(self._range)


class Group:
    """A work-group of an NdRange.  Source: SYCL 2020, section 4.9.1.7.

    ``leader``: whether the work-item that asks is the group's first.
    """

    __slots__ = ("_group_id", "_group_range", "_leader", "_local_range")

    def __init__(
        self,
        group_id: Sequence[int],
        group_range: Sequence[int],
        local_range: Sequence[int],
        leader: bool,
    ) -> None:
        self._group_id = _int64(group_id)
        self._group_range = _int64(group_range)
        self._local_range = _int64(local_range)
        self._leader = np.bool_(leader)

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return len(self._group_id)

    @property
    def leader(self) -> np.bool_:
        """True for the work-item whose local id is 0 in every dimension."""
        return self._leader

    def get_group_id(self, dim: int | None = None) -> np.int64:
        """The group's id in dimension ``dim``."""
        return _component(self._group_id, dim, "get_group_id")

    def get_group_range(self, dim: int | None = None) -> np.int64:
        """The number of groups in dimension ``dim``."""
        return _component(self._group_range, dim, "get_group_range")

    def get_local_range(self, dim: int | None = None) -> np.int64:
        """The number of the group's work-items in dimension ``dim``."""
        return _component(self._local_range, dim, "get_local_range")

    def get_group_linear_id(self) -> np.int64:
        """The row-major index of the group."""
        return _linear_id(self._group_id, self._group_range)

    def get_group_linear_range(self) -> np.int64:
        """The number of groups."""
        return _product(self._group_range)

    def get_local_linear_range(self) -> np.int64:
        """The number of work-items in the group."""
        return _product(self._local_range)


class SubGroup:
    """Neighbouring work-items of a work-group that run as one vector.  Source: SYCL 2020, section
    4.9.1.8.

    ``local_linear_id``: of the work-item in its work-group, which has ``items`` of them in all.
    ``size``: work-items of a sub-group.
    """

    __slots__ = ("_items", "_local_linear_id", "_size")

    def __init__(self, local_linear_id: int, items: int, size: int) -> None:
        self._local_linear_id = int(local_linear_id)
        self._items = int(items)
        self._size = size

    @property
    def size(self) -> int:
        """Work-items of the sub-group."""
        return self._size

    @property
    def leader(self) -> np.bool_:
        """True for the sub-group's first work-item."""
        return np.bool_(self._local_linear_id % self._size == 0)

    def get_local_id(self, dim: int | None = None) -> np.int64:
        """The work-item's place in the sub-group, which has one dimension."""
        return _component((self.get_local_linear_id(),), dim, "get_local_id")

    def get_local_range(self, dim: int | None = None) -> np.int64:
        """The number of the sub-group's work-items."""
        return _component((self.get_local_linear_range(),), dim, "get_local_range")

    def get_group_id(self, dim: int | None = None) -> np.int64:
        """The sub-group's place in the work-group."""
        return _component((self.get_group_linear_id(),), dim, "get_group_id")

    def get_group_range(self, dim: int | None = None) -> np.int64:
        """The number of the work-group's sub-groups."""
        return _component((self.get_group_linear_range(),), dim, "get_group_range")

    def get_local_linear_id(self) -> np.int64:
        """The work-item's place in the sub-group."""
        return np.int64(self._local_linear_id % self._size)

    def get_local_linear_range(self) -> np.int64:
        """The number of the sub-group's work-items."""
        return np.int64(self._size)

    def get_max_local_range(self) -> np.int64:
        """The number of work-items of the work-group's largest sub-group."""
        return np.int64(self._size)

    def get_group_linear_id(self) -> np.int64:
        """The sub-group's place in the work-group."""
        return np.int64(self._local_linear_id // self._size)

    def get_group_linear_range(self) -> np.int64:
        """The number of the work-group's sub-groups."""
        return np.int64(self._items // self._size)


class NdItem:
    """A work-item of an NdRange.  Source: SYCL 2020, section 4.9.1.5.

    All arguments have one entry for each dimension;
    ``global_id == group_id * local_range + local_id``.  ``sub_group_size``: work-items of a
    sub-group.
    """

    __slots__ = (
        "_global_id", "_global_range", "_group_id", "_local_id", "_local_range", "_sub_group_size",
    )  # fmt: skip

    def __init__(
        self,
        global_id: Sequence[int],
        local_id: Sequence[int],
        group_id: Sequence[int],
        global_range: Sequence[int],
        local_range: Sequence[int],
        sub_group_size: int = 16,
    ) -> None:
        self._sub_group_size = sub_group_size
        self._global_id = _int64(global_id)
        self._local_id = _int64(local_id)
        self._group_id = _int64(group_id)
        self._global_range = _int64(global_range)
        self._local_range = _int64(local_range)

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return len(self._global_id)

    def get_global_id(self, dim: int | None = None) -> np.int64:
        """The work-item's id in the whole range, in dimension ``dim``."""
        return _component(self._global_id, dim, "get_global_id")

    def get_local_id(self, dim: int | None = None) -> np.int64:
        """The work-item's id in its group, in dimension ``dim``."""
        return _component(self._local_id, dim, "get_local_id")

    def get_global_range(self, dim: int | None = None) -> np.int64:
        """The extent of the whole range in dimension ``dim``."""
        return _component(self._global_range, dim, "get_global_range")

    def get_local_range(self, dim: int | None = None) -> np.int64:
        """The extent of the group in dimension ``dim``."""
        return _component(self._local_range, dim, "get_local_range")

    def get_global_linear_id(self) -> np.int64:
        """The row-major index of the work-item in the whole range."""
        return _linear_id(self._global_id, self._global_range)

    def get_local_linear_id(self) -> np.int64:
        """The row-major index of the work-item in its group."""
        return _linear_id(self._local_id, self._local_range)

    def get_global_linear_range(self) -> np.int64:
        """The number of work-items."""
        return _product(self._global_range)

    def get_local_linear_range(self) -> np.int64:
        """The number of work-items in the group."""
        return _product(self._local_range)

    def get_group(self) -> Group:
        """The work-item's group."""
        groups = tuple(
            int(whole // part)
            for whole, part in zip(self._global_range, self._local_range, strict=True)
        )
        return Group(
            tuple(map(int, self._group_id)),
            groups,
            tuple(map(int, self._local_range)),
            leader=not any(self._local_id),
        )

    def get_sub_group(self) -> SubGroup:
        """The work-item's sub-group."""
        items = int(self.get_local_linear_range())
        return SubGroup(int(self.get_local_linear_id()), items, self._sub_group_size)
