"""A persistent kernel's stages, each as a row of tiles, and what the tiles wait for.

Of each stage one tile is marked: a shade leads from it to the tiles that it waits for.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

from fusionq.megakernel.evaluate import Integers
from fusionq.megakernel.schedule import Schedule
from fusionq.megakernel.tiles import TileBox
from fusionq.report.pictures.distances import box_of
from fusionq.report.pictures.page import (
    BLUE,
    DIM,
    GREEN,
    INK,
    MARGIN,
    PURPLE,
    VERMILLION,
    WIDTH,
    Page,
    fitted,
    numbered,
    width_of,
)

MOST_STAGES = 12
LAST_STAGES = 3
"""Of more than ``MOST_STAGES`` rows the last ones are drawn, and as many of the first."""
MOST_TILES = 24
"""Of more tiles the first and the last are drawn, half of them each."""
MOST_WAITS = 3
"""Waits of a marked tile that are told in words."""

_LEFT = 3.0
_RIGHT = 9.05
_BREAK = 0.3
_HEAD = 0.42
_ROW = 0.78
_TILE = 0.26
_COUNTER = 0.07
_SMALL = 6.5
_MARKS = (VERMILLION, BLUE, GREEN, PURPLE)


@dataclass(frozen=True)
class StageLabel:
    """What is written beside a stage's tiles: a name and two lines under it."""

    name: str
    work_items: str
    kept: str


class TileRows:
    """The rows of one persistent kernel.

    ``position``: that of each tile in the order.  Neighbouring stages whose ``alike`` is equal do
    the same; of many such only some are drawn.
    """

    def __init__(
        self,
        schedule: Schedule,
        position: Sequence[Integers],
        texts: Sequence[StageLabel],
        alike: Sequence[Hashable],
    ) -> None:
        self._schedule = schedule
        self._position = position
        self._texts = texts
        self._rows = shown_stages(alike)
        drawn = [position[s][list(shown_tiles(len(position[s])))] for s in self._drawn]
        self._ranks = np.sort(np.concatenate(drawn))
        self.height = _HEAD + _ROW * len(self._rows)
        self._landed: dict[int, int] = {}

    @property
    def _drawn(self) -> list[int]:
        return [row for row in self._rows if isinstance(row, int)]

    def draw(self, page: Page, top: float) -> None:
        """Draw from ``top`` down."""
        page.text(MARGIN, top + 0.1, "Stages", 9, weight="bold")
        page.text(_LEFT, top + 0.1, "Tiles, with their place in the order", 9, weight="bold")
        page.text(_RIGHT + 0.25, top + 0.1, "What the marked tile waits for", 9, weight="bold")
        page.text(
            _LEFT, top + 0.28, "grey bars: barrier counters, each under the tiles that add to it",
            7.5, DIM,
        )  # fmt: skip
        self._top = {}
        for number, row in enumerate(self._rows):
            at = top + _HEAD + _ROW * number
            for stage in [row] if isinstance(row, int) else row:
                self._top[stage] = at
        for stage in self._drawn:
            self._shades(page, stage)
        for row in self._rows:
            if isinstance(row, int):
                self._row(page, row)
            else:
                y = self._top[row[0]] + _TILE / 2
                which = (
                    f"stages {row[0]} to {row[-1]} are not drawn "
                    f"({len(row)} of {len(self._schedule.stages)})"
                )
                page.text((_LEFT + _RIGHT) / 2, y, which, 8, DIM, "stages left out", ha="center")

    # ------------------------------------------------------------------ one stage
    def _row(self, page: Page, stage: int) -> None:
        y = self._top[stage]
        text = self._texts[stage]
        color = _MARKS[stage % len(_MARKS)]
        width = _LEFT - MARGIN - 0.15
        page.text(MARGIN, y + 0.06, fitted(f"{stage}  {text.name}", 8.5, 0.88 * width), 8.5,
                  weight="bold")  # fmt: skip
        page.text(MARGIN, y + 0.23, fitted(text.work_items, 7.5, width), 7.5, DIM)
        if text.kept:
            page.text(MARGIN, y + 0.38, fitted(text.kept, 7.5, width), 7.5, GREEN)
        self._tiles(page, stage)
        self._counters(page, stage)
        width = WIDTH - MARGIN - _RIGHT - 0.25
        lines = [(self._shape(stage), DIM)]
        lines += [(line, color) for line in self.waits_in_words(stage)]
        for number, (line, its_color) in enumerate(lines):
            page.text(
                _RIGHT + 0.25, y + 0.03 + 0.15 * number, fitted(line, 7.5, width), 7.5, its_color
            )

    def _tiles(self, page: Page, stage: int) -> None:
        y = self._top[stage]
        count = len(self._position[stage])
        marked = self.marked(stage)
        shown = shown_tiles(count)
        width = self._x(count, shown[0] + 1) - self._x(count, shown[0])
        longest = max(f"{self._position[stage][t]}" for t in shown)
        widest = max(width_of("0" * len(f"{self._position[stage][t]}"), _SMALL) for t in shown)
        numbers = bool(longest) and widest < width - 0.03
        cells = colormaps["YlGnBu"]
        for tile in shown:
            place = int(self._position[stage][tile])
            rank = np.searchsorted(self._ranks, place) / max(len(self._ranks) - 1, 1)
            x = self._x(count, tile)
            page.box(
                x, y, width, _TILE, cells(0.1 + 0.75 * rank), f"tile {stage} {tile}",
                edgecolor="white", linewidth=1,
            )  # fmt: skip
            if numbers:
                page.text(
                    x + width / 2, y + _TILE / 2 + 0.01, f"{place}", _SMALL,
                    "white" if rank > 0.55 else INK, f"place {stage} {tile}", ha="center",
                )  # fmt: skip
        color = _MARKS[stage % len(_MARKS)]
        x = self._x(count, marked)
        page.box(
            x, y, width, _TILE, "none", f"marked {stage} {marked}", edgecolor=color, linewidth=2,
            zorder=3,
        )  # fmt: skip
        if len(shown) < count:
            middle = (self._x(count, MOST_TILES // 2) + self._x(count, count - MOST_TILES // 2)) / 2
            page.text(middle, y + _TILE / 2, "…", 9, DIM, f"tiles left out {stage}", ha="center")

    def _counters(self, page: Page, stage: int) -> None:
        """Under the tiles a bar for each counter: one for all, or by runs of tiles that share."""
        own = self._schedule.counters[stage]
        count = self._schedule.stages[stage].tiles
        y = self._top[stage] + _TILE + 0.03
        if own.total >= 0:
            self._bar(page, count, 0, count, y, f"counter {stage} all")
            y += _COUNTER + 0.02
        if own.first < 0:
            return
        of_tile = self.counter_of(stage)
        shown = shown_tiles(count)
        half = MOST_TILES // 2
        for part in [shown] if len(shown) == count else [shown[:half], shown[half:]]:
            others = [b for a, b in pairwise(part) if of_tile[a] != of_tile[b]]
            for start, stop in pairwise([part[0], *others, part[-1] + 1]):
                self._bar(page, count, start, stop, y, f"counter {stage} {of_tile[start]}")

    def _bar(self, page: Page, count: int, start: int, stop: int, y: float, gid: str) -> None:
        left, right = self._x(count, start) + 0.012, self._x(count, stop) - 0.012
        page.box(left, y, right - left, _COUNTER, "#9A9A9A", gid)

    def _shades(self, page: Page, stage: int) -> None:
        """From the marked tile to what it waits for."""
        marked = self.marked(stage)
        color = _MARKS[stage % len(_MARKS)]
        count = len(self._position[stage])
        here = (self._x(count, marked), self._x(count, marked + 1))
        below = self._top[stage]
        for box in self._schedule.waits[stage]:
            producer = box.producer
            theirs = len(self._position[producer])
            rank = self._landed[producer] = self._landed.get(producer, -1) + 1
            bars = self._schedule.counters[producer]
            strips = (bars.total >= 0) + (bars.first >= 0)
            down = _TILE + 0.03 + strips * (_COUNTER + 0.02) + 0.045 * min(rank, 3)
            y = self._top[producer] + down
            for number, (start, stop) in enumerate(self.runs(box, marked)):
                left, right = self._x(theirs, start), self._x(theirs, stop)
                page.polygon(
                    [(left, y), (right, y), (here[1], below), (here[0], below)],
                    gid=f"wait {stage} {producer} {number}", facecolor=color, alpha=0.16,
                    linewidth=0,
                )  # fmt: skip
                page.line(
                    [(left, y), (right, y)], color=color, linewidth=2, zorder=3,
                    gid=f"waited {stage} {producer} {start} {stop}",
                )  # fmt: skip

    # ------------------------------------------------------------------ what is shown
    def marked(self, stage: int) -> int:
        """The tile of a stage that is marked: one that waits for as much as most do, for tiles
        that are drawn, if there is such a one; then one near the beginning but not at it."""
        count = len(self._position[stage])
        waits = self._schedule.waits[stage]
        shown = shown_tiles(count)
        sizes = []
        for tile in shown:
            boxes = [box_of(box, tile, self._schedule) for box in waits]
            sizes.append(sum(0 if b is None else _volume(b) for b in boxes))
        usual = int(np.argmax(np.bincount(sizes)))
        aim = min(count // 3, MOST_TILES // 4)

        def unfit(number: int) -> tuple[bool, bool, int]:
            return (
                sizes[number] == 0,
                sizes[number] != usual or not self._all_drawn(waits, shown[number]),
                abs(shown[number] - aim),
            )

        return shown[min(range(len(shown)), key=unfit)]

    def _all_drawn(self, waits: Sequence[TileBox], tile: int) -> bool:
        for box in waits:
            count = self._schedule.stages[box.producer].tiles
            drawn = shown_tiles(count)
            for start, stop in self.runs(box, tile):
                if stop - start < count and not {start, stop - 1} <= set(drawn):
                    return False
        return True

    def runs(self, box: TileBox, tile: int) -> list[tuple[int, int]]:
        """The tiles of the producer that ``tile`` waits for, as runs (first, one past the last)
        of their numbers."""
        tiles = box_of(box, tile, self._schedule)
        if tiles is None:
            return []
        shape = self._schedule.stages[box.producer].count
        numbers = np.arange(int(np.prod(shape))).reshape(shape)[tiles].reshape(-1)
        edges = np.flatnonzero(np.diff(numbers) > 1)
        starts = numbers[[0, *(edges + 1)]]
        stops = numbers[[*edges, -1]] + 1
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    def counter_of(self, stage: int) -> NDArray[np.int64]:
        """For each tile of a stage the counter that it adds to, from the stage's first."""
        tiling, own = self._schedule.stages[stage], self._schedule.counters[stage]
        grid = np.indices(tiling.count)
        counters = tuple(-(-n // k) for n, k in zip(tiling.count, own.shared, strict=True))
        shared = [at.reshape(-1) // k for at, k in zip(grid, own.shared, strict=True)]
        found: NDArray[np.int64] = np.ravel_multi_index(tuple(shared), counters)
        return found

    def _shape(self, stage: int) -> str:
        tiling, own = self._schedule.stages[stage], self._schedule.counters[stage]
        text = f"{numbered(tiling.tiles, 'tile')} of {_product(tiling.tile)}"
        if own.first >= 0:
            sharing = int(np.prod(np.minimum(own.shared, tiling.count)))
            text += f", {numbered(sharing, 'tile')} a counter"
        if own.total >= 0:
            text += ", one counter for all" if own.first < 0 else " and one for all"
        return text + (", nobody waits" if own.first < 0 and own.total < 0 else "")

    def waits_in_words(self, stage: int) -> list[str]:
        """Lines such as ``tile 6 waits for 5 to 7 of stage 2, done 9 instructions before``."""
        marked = self.marked(stage)
        place = int(self._position[stage][marked])
        found = []
        for box in self._schedule.waits[stage]:
            runs = self.runs(box, marked)
            if not runs:
                continue
            theirs = self._position[box.producer]
            total = sum(stop - start for start, stop in runs)
            which = (
                f"{total} tiles" if len(runs) > 1
                else f"tile {runs[0][0]}" if total == 1
                else f"all {total:,} tiles" if total == len(theirs)
                else f"tiles {runs[0][0]} to {runs[0][1] - 1}"
            )  # fmt: skip
            last = max(int(theirs[start:stop].max()) for start, stop in runs)
            found.append(f"{which} of stage {box.producer}, the last {place - last:,} before it")
        if not found:
            return [f"tile {marked} (no. {place:,}) waits for nothing"]
        found[0] = f"tile {marked} (no. {place:,}): {found[0]}"
        if len(found) > MOST_WAITS:
            found[MOST_WAITS - 1 :] = [f"and {len(found) - MOST_WAITS + 1} waits more"]
        return found

    def _x(self, count: int, tile: int) -> float:
        """The left edge of a tile of a stage with ``count`` tiles."""
        if count <= MOST_TILES:
            return _LEFT + (_RIGHT - _LEFT) * tile / count
        half = MOST_TILES // 2
        width = (_RIGHT - _LEFT - _BREAK) / MOST_TILES
        if tile <= half:
            return _LEFT + width * tile
        if tile >= count - half:
            return _RIGHT - width * (count - tile)
        return _LEFT + width * half + _BREAK * (tile - half) / (count - 2 * half)


def shown_stages(alike: Sequence[Hashable]) -> list[int | range]:
    """The stages that get a row, and between them those that do not, as ranges: of more than
    four that are alike two and the last, of all ``MOST_STAGES``."""
    found: list[int | range] = []
    for _, group in groupby(range(len(alike)), key=lambda stage: alike[stage]):
        run = list(group)
        if len(run) > 4:
            found += [*run[:2], range(run[2], run[-1]), run[-1]]
        else:
            found += run
    if len(found) <= MOST_STAGES:
        return found
    first, last = found[: MOST_STAGES - LAST_STAGES - 1], found[-LAST_STAGES:]
    while isinstance(first[-1], range):
        first.pop()
    while isinstance(last[0], range):
        last.pop(0)
    start, stop = first[-1], last[0]
    assert isinstance(start, int) and isinstance(stop, int)
    return [*first, range(start + 1, stop), *last]


def shown_tiles(count: int) -> list[int]:
    """The tiles of a stage that are drawn."""
    if count <= MOST_TILES:
        return list(range(count))
    half = MOST_TILES // 2
    return [*range(half), *range(count - half, count)]


def _volume(box: tuple[slice, ...]) -> int:
    return int(np.prod([s.stop - s.start for s in box]))


def _product(sizes: Sequence[int]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)
