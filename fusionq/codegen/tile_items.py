"""Ids of work-items in the tiles of persistent kernels."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.codegen.dialect import WorkItems
from fusionq.ir.nodes import Query


class TileItems:
    """The work-items of a tile: their ids are in variables."""

    def __init__(
        self,
        items: WorkItems,
        ndim: int,
        lanes: int = 1,
        order: Sequence[int] = (),
    ) -> None:
        self._items = items
        self._order = tuple(order) or tuple(range(ndim))
        self._lanes = lanes
        self._ndim = ndim

    def query(self, query: Query, dim: int, ndim: int) -> str:
        """See ``WorkItems``."""
        match query:
            case "global_id":
                return f"fq_id_{self._order[dim]}"
            case "tile_first" | "tile_last":
                return f"fq_{query.removeprefix('tile_')}_{self._order[dim]}"
            case "local_id":  # among those that the lanes do together
                return "fq_lane" if dim == self._ndim - 1 else "0"
            case "local_range":
                return str(self._lanes) if dim == self._ndim - 1 else "1"
        raise AssertionError(f"{query} of work-items that are done one by one")

    def device_function(self, function: str, *arguments: str) -> str:
        """See ``WorkItems``; the first sub-group is the worker at the tile's first work-items."""
        match function:
            case "first_sub_group_here":
                *outer, last = self._order
                at = [f"fq_id_{d} == fq_first_{d}" for d in outer]
                return f"({' && '.join([*at, f'fq_start == fq_first_{last}'])})"
            case "leads_sub_group":
                return "(fq_lane == 0)"
            case "first_of_sub_group":
                return arguments[0] if self._lanes == 1 else f"({arguments[0]} - fq_lane)"
            case "sub_group_local_range":
                return str(self._lanes)
            case "record_row":
                return "fq_row"
        return self._items.device_function(function, *arguments)


class GroupItems(TileItems):
    """The work-items of a tile's work-groups, in a work-group function."""

    def __init__(
        self, items: WorkItems, local_range: tuple[int, ...], ndim: int, lanes: int = 1
    ) -> None:
        super().__init__(items, ndim, lanes)
        self.local_range = local_range

    def query(self, query: Query, dim: int, ndim: int) -> str:
        """See ``WorkItems``."""
        match query:
            case "group_id" | "local_id":
                return f"fq_{query.removesuffix('_id')}_{dim}"
            case "local_range":
                return str(self.local_range[dim])
            case "local_linear_id":
                return "fq_item"
        return super().query(query, dim, ndim)

    def device_function(self, function: str, *arguments: str) -> str:
        """See ``WorkItems``."""
        if function == "first_sub_group_here":
            first = [f"fq_group_{d} == fq_first_{d} / {n}" for d, n in enumerate(self.local_range)]
            return f"({' && '.join([*first, 'fq_start == 0'])})"
        return super().device_function(function, *arguments)


class ThreadItems(GroupItems):
    """The work-items of a tile's work-groups, each of which is a thread of the worker."""

    def device_function(self, function: str, *arguments: str) -> str:
        """See ``WorkItems``."""
        if function == "first_sub_group_here":
            first = [f"fq_group_{d} == fq_first_{d} / {n}" for d, n in enumerate(self.local_range)]
            return f"({' && '.join(first)})"
        return super().device_function(function, *arguments)
