"""The halos of a fusion to scale: boxes of work-items computed for a tile of others, or for
one work-item, one inside the other."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from fusionq.report.pictures.page import BLUE, DIM, GREEN, INK, MARGIN, Page, fitted

if TYPE_CHECKING:
    from fusionq.report.model import ReportModel

MOST_DRAWN = 4
"""Tiles, and consumers of other temporaries, that are drawn."""

_SIZE = 7.5
_HEAD, _LINE, _GAP = 0.3, 0.2, 0.15
_BOX = (1.6, 1.0)
"""Width and height of the largest box, in inches."""
_LABEL = MARGIN + _BOX[0] + 0.4


@dataclass(frozen=True)
class _Nest:
    """The work-items ``whole`` (one or a tile, what they are in words), and the ``boxes`` that are
    computed for them, each with its name."""

    whole: tuple[int, ...]
    said: str
    boxes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def height(self) -> float:
        return max(_BOX[1], _LINE * (len(self.boxes) + 1)) + _GAP


class HalosPicture:
    """The picture of what a report's launches compute anew."""

    def __init__(self, report: ReportModel) -> None:
        nests = _nests(report)
        self._nests = nests[:MOST_DRAWN]
        self._missing = len(nests) - len(self._nests)
        self.height = _HEAD + sum(nest.height for nest in self._nests)
        self.height += _LINE if self._missing else 0

    def draw(self, page: Page, top: float) -> None:
        """Draw from ``top`` down."""
        page.text(MARGIN, top + 0.1, "Computed anew, with halos to scale", 9, weight="bold")
        y = top + _HEAD
        for nest in self._nests:
            self._nest(page, nest, y)
            y += nest.height
        if self._missing:
            page.text(MARGIN, y, f"and {self._missing} more", _SIZE, DIM)

    def _nest(self, page: Page, nest: _Nest, top: float) -> None:
        largest = [
            max(_plane(box)[d] for _, box in (*nest.boxes, ("", nest.whole))) for d in (0, 1)
        ]
        x, y = MARGIN + _BOX[0] / 2, top + _BOX[1] / 2
        ordered = sorted(nest.boxes, key=lambda each: -prod(each[1]))
        for name, box in (*ordered, ("tile", nest.whole)):
            rows, columns = _plane(box)
            height, width = _BOX[1] * rows / largest[0], _BOX[0] * columns / largest[1]
            page.box(
                x - width / 2, y - height / 2, width, height,
                "#CFE3F5" if name == "tile" else "#F6F7F9", f"halo {name}",
                edgecolor=GREEN if name == "tile" else BLUE, linewidth=0.8,
            )  # fmt: skip
        at = top + _LINE / 2
        page.text(_LABEL, at, f"{nest.said}: {_extents(nest.whole)}", _SIZE, GREEN)
        for name, box in nest.boxes:
            at += _LINE
            wide = f", a halo of {_extents(_halo(box, nest.whole))}" if _alike(box, nest) else ""
            text = f"{name}: {_extents(box)} work-items{wide}"
            page.text(_LABEL, at, fitted(text, _SIZE, 6.0), _SIZE, INK)


def _nests(report: ReportModel) -> list[_Nest]:
    names = [submission.ir.name for submission in report.submissions]
    found = []
    for number, stage in enumerate(report.plan.stages):
        if stage.tiling is not None:
            *producers, _ = stage.tiling.parts
            boxes = tuple((f"[{s}] {names[s]}", p.items) for p in producers for s in p.submissions)
            said = f"launch {number}, a work-group's tile of work-items"
            found.append(_Nest(stage.tiling.tile, said, boxes))
    inlined: dict[int, list[tuple[str, tuple[int, ...]]]] = {}
    for r in report.recomputed:
        for consumer, halo in zip(r.consumers, r.halo, strict=True):
            if r.tile is None and prod(halo) > 1:
                inlined.setdefault(consumer, []).append(
                    (f"[{r.producer}] {names[r.producer]}", halo)
                )
    for consumer, halos in inlined.items():
        one = (1,) * max(len(halo) for _, halo in halos)
        found.append(_Nest(one, f"a work-item of [{consumer}] {names[consumer]}", tuple(halos)))
    return found


def _plane(box: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a box, all dimensions but the last together."""
    return prod(box[:-1]), box[-1]


def _alike(box: tuple[int, ...], nest: _Nest) -> bool:
    return len(box) == len(nest.whole) and all(map(int.__ge__, box, nest.whole))


def _halo(box: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n - inner for n, inner in zip(box, whole, strict=True))


def _extents(extents: tuple[int, ...]) -> str:
    return " × ".join(map(str, extents))
