"""The loop of a worker over the work-groups of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.tile_loop import indented
from fusionq.ir.nodes import WorkItemLoop


class ThreadGroupLoop:
    """The loop over the work-groups of a tile, of which a worker does ``at_once`` side by side,
    each of its lanes a work-item of ``local_range``."""

    def __init__(self, words: QueueWords, local_range: tuple[int, ...], at_once: int) -> None:
        self._int64 = words.int64
        self._uint32 = words.uint32
        self._local_range = local_range
        self._at_once = at_once

    @property
    def _many(self) -> str:
        """How many groups the tile has."""
        return " * ".join(f"fq_many_{d}" for d in range(len(self._local_range)))

    @property
    def is_last(self) -> str:
        """Whether a lane does no group of the tile behind this one."""
        return f"fq_group + {self._at_once} >= {self._many}"

    def lines(self, body: Sequence[str]) -> list[str]:
        """The loop that does ``body`` for each group of the tile."""
        size = prod(self._local_range)
        lines = ["unsigned fq_turn = 0;", f"const int fq_item = fq_lane % {size};"]
        return [*lines, *self._loop(f"fq_lane / {size}", body)]

    def of_ring(self, body: Sequence[str]) -> list[str]:
        """The loop over those of the groups whose rows are in the ring ``fq_ring_number``."""
        return ["const int fq_item = 0;", *self._loop("fq_ring_number", body)]

    def _loop(self, first: str, body: Sequence[str]) -> list[str]:
        i64 = self._int64
        dims = range(len(self._local_range))
        lines: list[str] = []
        places = TileGroupLoop.places("fq_item", self._local_range)
        for d, (own, extent) in enumerate(zip(places, self._local_range, strict=True)):
            lines += [
                f"const {i64} fq_begin_{d} = fq_first_{d} / {extent};",
                f"const {i64} fq_many_{d} = fq_last_{d} / {extent} - fq_begin_{d} + 1;",
                f"const int fq_local_{d} = {own};",
            ]
        inside: list[str] = []
        narrow = f"({self._uint32})"  # a division in 64 bits takes many times as long
        rest = "fq_group"
        for d in reversed(dims):
            at = rest if d == 0 else f"{narrow}{rest} % {narrow}fq_many_{d}"
            inside.insert(0, f"const {i64} fq_group_{d} = fq_begin_{d} + {at};")
            rest = f"({narrow}{rest} / {narrow}fq_many_{d})"
        for d, extent in enumerate(self._local_range):
            inside.append(f"const {i64} fq_id_{d} = fq_group_{d} * {extent} + fq_local_{d};")
        head = f"for ({i64} fq_group = {first}; fq_group < {self._many}; "
        return [*lines, f"{head}fq_group += {self._at_once}) {{", *indented([*inside, *body]), "}"]


class TileGroupLoop:
    """Loops over the work-groups of a tile, and of a worker's lanes over the work-items of a
    group: neighbouring lanes have neighbouring work-items of the last dimension.  ``lanes``: how
    many there are, a power of two.  ``hidden``: see ``TileLoop``."""

    def __init__(
        self, words: QueueWords, lanes: int, local_range: tuple[int, ...], hidden: str | None = None
    ) -> None:
        self._words = words
        self._int64 = words.int64
        self._lanes = lanes
        self._turn = f"{lanes} + {hidden}" if hidden else str(lanes)
        self._local_range = local_range

    def lines(self, body: Sequence[str]) -> list[str]:
        """The loop that does ``body`` for each group of the tile."""
        lines = []
        for d, size in enumerate(self._local_range):
            start = f"{self._int64} fq_group_{d} = fq_first_{d} / {size}"
            lines.append(f"for ({start}; fq_group_{d} <= fq_last_{d} / {size}; fq_group_{d}++)")
        return [*lines, "{", *indented(body), f"    {self._words.workers.group_barrier};", "}"]

    def work_items(self, loop: WorkItemLoop, body: Sequence[str]) -> list[str]:
        """The loop of the lanes, which meet at its end."""
        items, lanes, i64 = loop.items, self._lanes, self._int64
        if self._goes_along_rows(items):
            return [*self._rows(body), f"{self._words.workers.group_barrier};"]
        inside = [*self._ids(), *body]
        if items % lanes:
            inside = [f"if (fq_start + fq_lane < {items}) {{", *indented(inside), "}"]
        if items > lanes:
            head = f"for ({i64} fq_start = 0; fq_start < {items}; fq_start += {self._turn}) {{"
            lines = [head, *indented(inside), "}"]
        else:
            lines = ["{", *indented([f"const {i64} fq_start = 0;", *inside]), "}"]
        return [*lines, f"{self._words.workers.group_barrier};"]

    def _goes_along_rows(self, items: int) -> bool:
        """Whether lanes go along the rows of a group, of which a whole number of vectors is none:
        they would have work-items of two rows, and divide for it."""
        *outer, last = self._local_range
        whole = items == prod(self._local_range) and prod(outer) > 1
        return whole and last % self._lanes != 0 and 2 * last >= self._lanes

    def _rows(self, body: Sequence[str]) -> list[str]:
        """The loop of the lanes over the work-items of each row in turn."""
        i64 = self._int64
        *outer, last = self._local_range
        start = f"const {i64} fq_start = fq_row * {last} + fq_along;"
        own = [*self.places("fq_row", outer), "fq_along + fq_lane"]
        inside = [start, *self._ids(own), *body]
        return [
            f"for ({i64} fq_row = 0; fq_row < {prod(outer)}; fq_row++)",
            f"for ({i64} fq_along = 0; fq_along < {last}; fq_along += {self._turn}) {{",
            f"    if (fq_along + fq_lane < {last}) {{",
            *indented(indented(inside)),
            "    }",
            "}",
        ]

    def _ids(self, own: Sequence[str] | None = None) -> list[str]:
        """The ids of the lane's work-item; ``own``: its place in the group, where that is known.
        What is the same for all lanes does not depend on the lane's number, so that the compiler
        sees neighbours in memory."""
        lines = [f"const {self._int64} fq_item = fq_start + fq_lane;"]
        *outer, last = self._local_range
        if own is not None:
            ids = list(own)
        elif all(size == 1 for size in outer):
            ids = [*("0" for _ in outer), "fq_item"]
        elif last % self._lanes == 0:
            ids = [*self.places(f"fq_start / {last}", outer), f"fq_start % {last} + fq_lane"]
        else:
            ids = self.places("fq_item", self._local_range)
        for d, (place, size) in enumerate(zip(ids, self._local_range, strict=True)):
            lines.append(f"const {self._int64} fq_local_{d} = {place};")
            at = f"fq_group_{d} * {size} + fq_local_{d}"
            lines.append(f"const {self._int64} fq_id_{d} = {at};")
        return lines

    @staticmethod
    def places(linear: str, extents: Sequence[int]) -> list[str]:
        """The place in each dimension of what has the place ``linear`` in all."""
        places: list[str] = []
        for d in reversed(range(len(extents))):
            places.insert(0, linear if d == 0 else f"{linear} % {extents[d]}")
            linear = f"{linear} / {extents[d]}"
        return places
