"""The loop of a worker's lanes over the work-items of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusionq.codegen.dialect import Dialect
from fusionq.codegen.queue_layout import SUB_GROUP
from fusionq.ir.nodes import Query


class InTile:
    """A dialect whose ids are those of a tile's work-items, in variables."""

    def __init__(self, dialect: Dialect, local_range: tuple[int, ...] | None, ndim: int) -> None:
        self._dialect = dialect
        self._local = local_range
        self._ndim = ndim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)

    def device_function(self, function: str) -> str:
        """See ``Dialect``; the first sub-group is the worker at the tile's first work-items."""
        match function:
            case "first_sub_group_here":
                *outer, last = range(self._ndim)
                at = [f"fq_id_{d} == fq_first_{d}" for d in outer]
                return f"({' && '.join([*at, f'fq_start == fq_first_{last}'])})"
            case "leads_sub_group":
                return "(fq_lane == 0)"
            case "record_row":
                return "fq_row"
        return self._dialect.device_function(function)

    def work_item_query(self, query: Query, dim: int, ndim: int) -> str:
        """See ``Dialect``."""
        match query:
            case "global_id":
                return f"fq_id_{dim}"
            case "tile_first" | "tile_last":
                return f"fq_{query.removeprefix('tile_')}_{dim}"
        assert self._local is not None, "work-group queries need an explicit NdRange"
        size = self._local[dim]
        return f"(fq_id_{dim} {'%' if query == 'local_id' else '/'} {size})"


def tile_loop(ndim: int, body: Sequence[str]) -> list[str]:
    """Loops over the tile; neighbouring lanes have neighbouring work-items of the last
    dimension."""
    lines: list[str] = []
    for d in range(ndim - 1):
        pad = "    " * (d + 1)
        id_, last_ = f"fq_id_{d}", f"fq_last_{d}"
        lines.append(f"{pad}for (long {id_} = fq_first_{d}; {id_} <= {last_}; {id_}++)")
    last = ndim - 1
    pad = "    " * ndim
    lines += [
        f"{pad}for (long fq_start = fq_first_{last}; fq_start <= fq_last_{last}; "
        f"fq_start += {SUB_GROUP}) {{",
        f"{pad}    const long fq_id_{last} = fq_start + fq_lane;",
        f"{pad}    if (fq_id_{last} <= fq_last_{last}) {{",
        *(f"{pad}        {line}" if line else line for line in body),
        f"{pad}    }}",
        f"{pad}}}",
    ]
    return lines
