"""The loop of a worker's lanes over the work-items of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fusionq.codegen.dialect import Dialect
from fusionq.ir.nodes import Query


class InTile:
    """A dialect whose ids are those of a tile's work-items, in variables."""

    def __init__(self, dialect: Dialect, local_range: tuple[int, ...] | None, ndim: int) -> None:
        self._dialect = dialect
        self._local = local_range
        self._ndim = ndim

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)

    def device_function(self, function: str, *arguments: str) -> str:
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
        return self._dialect.device_function(function, *arguments)

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


@dataclass(frozen=True)
class InnerPart:
    """The part of a tile's rows that has code of its own: from the greatest of ``lows`` to the
    least of ``highs``, where all of ``where`` hold."""

    lows: list[str]
    highs: list[str]
    where: list[str]
    body: list[str]


def tile_loop(
    ndim: int, lanes: int, body: Sequence[str], inner: InnerPart | None = None
) -> list[str]:
    """Loops of a worker's ``lanes`` over the tile; neighbouring lanes have neighbouring work-items
    of the last dimension."""
    lines: list[str] = []
    for d in range(ndim - 1):
        pad = "    " * (d + 1)
        id_, last_ = f"fq_id_{d}", f"fq_last_{d}"
        lines.append(f"{pad}for (long {id_} = fq_first_{d}; {id_} <= {last_}; {id_}++)")
    if inner is None:
        row = _plain_row(ndim - 1, lanes, body)
    else:
        row = _parted_row(ndim - 1, lanes, body, inner)
    return lines + _indented(row, ndim)


def _plain_row(last: int, lanes: int, body: Sequence[str]) -> list[str]:
    return [
        f"for (long fq_start = fq_first_{last}; fq_start <= fq_last_{last}; "
        f"fq_start += {lanes}) {{",
        *_indented(_guarded(last, f"fq_start + fq_lane <= fq_last_{last}", body)),
        "}",
    ]


def _parted_row(
    last: int, lanes: int, body: Sequence[str], inner: InnerPart
) -> list[str]:
    """The row's inner part as whole vectors without a condition, what is before and behind as
    ever."""
    low = _folded("max", [f"fq_first_{last}", *inner.lows])
    high = _folded("min", [f"fq_last_{last}", *inner.highs])
    find = [
        f"const long fq_from = ({low} + {lanes - 1}) & -{lanes}L, fq_to = {high};",
        f"if (fq_from + {lanes - 1} <= fq_to) {{",
        "    fq_inner = fq_from;",
        f"    fq_outer = fq_from + ((fq_to + 1 - fq_from) & -{lanes}L);",
        "}",
    ]
    if inner.where:
        find = [f"if ({' && '.join(f'({w})' for w in inner.where)}) {{", *_indented(find), "}"]
    else:
        find = ["{", *_indented(find), "}"]
    return [
        "{",
        *_indented([
            f"long fq_inner = fq_last_{last} + 1, fq_outer = fq_inner;",
            *find,
            f"long fq_start = fq_first_{last};",
            "for (int fq_part = 0; fq_part < 2; fq_part++) {",
            f"    const long fq_stop = fq_part == 0 ? fq_inner : fq_last_{last} + 1;",
            f"    for (; fq_start < fq_stop; fq_start += {lanes}) {{",
            *_indented(_guarded(last, "fq_start + fq_lane < fq_stop", body), 2),
            "    }",
            "    if (fq_part == 0)",
            f"        for (fq_start = fq_inner; fq_start < fq_outer; fq_start += {lanes}) {{",
            f"            const long fq_id_{last} = fq_start + fq_lane;",
            *_indented(inner.body, 3),
            "        }",
            "}",
        ]),
        "}",
    ]  # fmt: skip


def _guarded(last: int, cond: str, body: Sequence[str]) -> list[str]:
    return [
        f"const long fq_id_{last} = fq_start + fq_lane;",
        f"if ({cond}) {{",
        *_indented(body),
        "}",
    ]


def _folded(function: str, values: Sequence[str]) -> str:
    text = values[0]
    for value in values[1:]:
        text = f"{function}({text}, (long)({value}))"
    return text


def _indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [f"{'    ' * depth}{line}" if line else line for line in lines]
