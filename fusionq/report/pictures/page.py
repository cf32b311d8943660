"""A page to draw on, measured in inches from its upper left corner."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusionq.base.errors import ArgumentError, FusionqError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 13.0
MARGIN = 0.3
FORMATS = (".png", ".svg", ".pdf")

INK = "#202020"
DIM = "#6B6B6B"
# After Okabe and Ito's palette, which most people with impaired colour vision can tell apart;
# darker where text is written in it.
BLUE, SKY, GREEN, ORANGE, VERMILLION, PURPLE = (
    "#0072B2", "#56B4E9", "#00795A", "#E69F00", "#C04E00", "#A8488A",
)  # fmt: skip

_FONT = "DejaVu Sans"
_DOTS_PER_INCH = 110


def check_path(path: Path) -> None:
    """ArgumentError if no picture can be written to ``path``."""
    if path.suffix.lower() not in FORMATS:
        raise ArgumentError(
            f"cannot draw {path}: the ending of a picture's name sets its format, and is one of "
            f"{', '.join(FORMATS)}"
        )
    if not path.parent.is_dir():
        raise ArgumentError(f"cannot draw {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ArgumentError(f"cannot draw {path}: it is a folder; give a file's name")


def need_matplotlib() -> None:
    """FusionqError without matplotlib."""
    if find_spec("matplotlib") is None:
        raise FusionqError(
            "a picture needs matplotlib, which is not installed; pip install matplotlib"
        )


class Page:
    """A matplotlib figure of ``height`` inches with drawing in inches, downwards from the top.

    Artists that stand for something have it as their ``gid``, such as ``tile 0 3``; an svg file
    has it too.
    """

    def __init__(self, height: float) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(WIDTH, height))
        self.height = height
        self._axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(0, WIDTH), ylim=(height, 0))
        self._axes.axis("off")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 8,
        color: str = INK,
        gid: str | None = None,
        **more: Any,
    ) -> None:
        """``text`` beginning at ``x``, its middle at ``y``; ``size`` in points."""
        more = {"va": "center", "family": _FONT, **more}
        self._axes.text(x, y, text, fontsize=size, color=color, gid=gid, parse_math=False, **more)

    def box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        fill: Any,
        gid: str | None = None,
        **more: Any,
    ) -> None:
        """A filled rectangle."""
        from matplotlib.patches import Rectangle

        more = {"linewidth": 0, **more}
        self._axes.add_patch(Rectangle((left, top), width, height, facecolor=fill, gid=gid, **more))

    def polygon(
        self, points: Sequence[tuple[float, float]], gid: str | None = None, **more: Any
    ) -> None:
        """A filled polygon."""
        from matplotlib.patches import Polygon

        self._axes.add_patch(Polygon(points, closed=True, gid=gid, **more))

    def line(
        self, points: Sequence[tuple[float, float]], gid: str | None = None, **more: Any
    ) -> None:
        """A line through ``points``."""
        more = {"solid_capstyle": "butt", **more}
        self._axes.plot(*zip(*points, strict=True), gid=gid, **more)

    def arrowhead(self, x: float, y: float, color: str) -> None:
        """An arrow's head that points right and ends at ``x``."""
        self.polygon([(x, y), (x - 0.09, y - 0.04), (x - 0.09, y + 0.04)], color=color, lw=0)

    def panel(self, left: float, top: float, width: float, height: float, title: str) -> Axes:
        """Axes of their own, with a title above."""
        axes = self.figure.add_axes(
            (
                left / WIDTH, 1 - (top + height) / self.height,
                width / WIDTH, height / self.height,
            )
        )  # fmt: skip
        axes.set_title(title, loc="left", fontsize=8.5, family=_FONT)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        return axes

    def save(self, path: Path) -> None:
        """Write the picture; FusionqError where that fails."""
        try:
            self.figure.savefig(path, dpi=_DOTS_PER_INCH)
        except OSError as error:
            raise FusionqError(f"cannot write the picture {path}: {error}") from error


def width_of(text: str, size: float) -> float:
    """How many inches ``text`` takes in ``size`` points, unless it is bold."""
    return sum(map(_advance, text)) * size / 72


@cache
def _advance(character: str) -> float:
    """The width of a character in parts of the font's size."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family=_FONT)))
    font.set_size(1000, 72)
    return float(font.load_char(ord(character)).linearHoriAdvance) / 65536 / 1000


def fitted(text: str, size: float, width: float) -> str:
    """``text``, or as much of it as fits into ``width`` inches with an ellipsis behind."""
    if width_of(text, size) <= width:
        return text
    least, most = 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if width_of(text[:middle].rstrip() + "…", size) <= width:
            least = middle
        else:
            most = middle - 1
    return text[:least].rstrip() + "…"


def wrapped(text: str, size: float, width: float, most: int) -> list[str]:
    """``text`` in at most ``most`` lines of ``width`` inches, broken between words."""
    lines: list[str] = []
    words = text.split()
    while words:
        if len(lines) == most - 1:
            return [*lines, fitted(" ".join(words), size, width)]
        line = words.pop(0)
        while words and width_of(f"{line} {words[0]}", size) <= width:
            line += f" {words.pop(0)}"
        lines.append(fitted(line, size, width))
    return lines


def numbered(count: int, noun: str) -> str:
    """Such as ``1,024 tiles``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
