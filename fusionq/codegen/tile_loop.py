"""The loop of a worker's lanes over the work-items of a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.row_loops import MOST_ALONE


@dataclass(frozen=True)
class InnerPart:
    """The part of a tile's rows that has code of its own: from the greatest of ``lows`` to the
    least of ``highs``, where all of ``where`` hold.  ``repeatable``: whether it changes nothing to
    do a work-item twice; ``beside``: whether the other work-items of a row do something, too.
    ``limits``: the least and the greatest work-items of a row that do anything, and others that do
    nothing."""

    lows: list[str]
    highs: list[str]
    where: list[str]
    body: list[str]
    repeatable: bool = False
    beside: bool = False
    limits: Sequence[Sequence[str]] = ((), (), ())


@dataclass(frozen=True)
class Segments:
    """How rows are cut into segments.  ``first``: the variable of a segment's first id; ``values``:
    its other variables, with their values; ``lengths``: numbers of work-items, the least of which
    it has.  Where not all ``divisors`` are at least half of the lanes, whole rows do ``whole``."""

    first: str
    values: list[tuple[str, str]]
    lengths: list[str]
    divisors: list[str]
    whole: list[str]


TOGETHER = "// Several work-items at once."
"""Before a loop whose iterations do that: it needs registers for all that they load."""


@dataclass(frozen=True)
class Together:
    """The code that does ``items`` work-items of a lane at once, one at every so many lanes, where
    nothing has to be asked of them."""

    items: int
    body: list[str]


class TileLoop:
    """Loops of a worker's lanes over tiles: neighbouring lanes have neighbouring work-items of the
    last dimension of ``order``, which is that of the range if no other is given.  ``lanes``: how
    many there are, a power of two.  Many threads do several rows at once where those are short: a
    lane has its ``fq_column`` of ``fq_width``, and its row.  ``hidden``: what is added to each step
    from one vector to the next, a 0 that the compiler does not know, or nothing."""

    def __init__(
        self,
        words: QueueWords,
        lanes: int,
        ndim: int,
        order: Sequence[int] = (),
        hidden: str | None = None,
    ) -> None:
        order = tuple(order) or tuple(range(ndim))
        self._words = words
        self._int64 = words.int64
        self._lanes = lanes
        *self._outer, self._last = order
        self._by_threads = words.workers.first_lane_takes
        self._by_rows = words.workers.first_lane_takes and ndim > 1
        self._hidden = f" + {hidden}" if hidden else ""
        self._turn = f"{lanes}{self._hidden}"
        self._width = "fq_width" if self._by_rows else self._turn
        self._column = "fq_column" if self._by_rows else "fq_lane"
        self.items = " * ".join(f"(fq_last_{d} - fq_first_{d} + 1)" for d in range(ndim))
        """How many work-items the tile has."""
        self._first_item, self._last_item = f"fq_first_{self._last}", f"fq_last_{self._last}"
        self._strips = self._last if self._last + 1 < ndim else None
        if self._strips is not None:
            self._first_item, self._last_item = "fq_strip", "fq_strip_last"

    def lines(
        self,
        body: Sequence[str],
        inner: InnerPart | None = None,
        together: Together | None = None,
        segments: Segments | None = None,
    ) -> list[str]:
        """The loop that does ``body`` for each work-item, or ``inner`` where that is known, several
        ``together`` as long as there are as many, in ``segments`` of rows if there are such."""
        if segments is not None:
            return self._in_segments(body, inner, together, segments)
        return self._rows(self._row(body, inner, together))

    def _rows(self, row: Sequence[str]) -> list[str]:
        """The loops that do ``row`` for each row of the tile."""
        lines = self._shares() if self._by_rows else []
        if self._strips is None:
            return [*lines, *self._loops(self._outer, row)]
        strips = self._in_strips(self._loops(self._outer[self._strips :], row))
        return [*lines, *self._loops(self._outer[: self._strips], strips)]

    def _loops(self, dims: Sequence[int], row: Sequence[str]) -> list[str]:
        """Loops over ``dims`` of the tile around what is done for a row."""
        lines = []
        for depth, d in enumerate(dims, 1):
            pad = "    " * depth
            on = f"fq_id_{d} <= fq_last_{d}"
            first, step = f"fq_first_{d}", f"fq_id_{d}++"
            if self._by_rows and depth == len(dims):
                first = f"{first} + fq_lane / fq_width"
                step = f"fq_id_{d} += {self._lanes} / fq_width"
            lines.append(f"{pad}for ({self._int64} fq_id_{d} = {first}; {on}; {step})")
        return lines + indented(row, len(dims) + 1)

    def _in_strips(self, body: Sequence[str]) -> list[str]:
        """The loop over strips of the lanes' dimension."""
        i64, first, last = self._int64, f"fq_first_{self._last}", f"fq_last_{self._last}"
        strip = CODE_LIMITS.strip_items
        end = self._words.minimum(f"fq_strip + {strip - 1}", last)
        return [
            f"for ({i64} fq_strip = {first}; fq_strip <= {last}; fq_strip += {strip}) {{",
            f"    const {i64} fq_strip_last = {end};",
            *body,
            "}",
        ]

    def _shares(self) -> list[str]:
        """How many lanes have a row of the tile, the least power of two that does it at once, and
        which of them a lane is.  Rows are whole, or short enough to have no inner part."""
        width = f"{self._last_item} - {self._first_item} + 1"
        return [
            f"    int fq_width = {self._lanes};",
            f"    while (fq_width > 1 && fq_width / 2 >= {width}) fq_width /= 2;",
            "    const int fq_column = fq_lane & (fq_width - 1);",
        ]

    def _row(
        self, body: Sequence[str], inner: InnerPart | None, together: Together | None
    ) -> list[str]:
        if inner is None:
            return self._plain_row(body, together)
        if any(inner.limits):
            return self._limited_row(body, inner, together)
        return self._parted_row(body, inner, together)

    def _limited_row(
        self, body: Sequence[str], inner: InnerPart, together: Together | None
    ) -> list[str]:
        """The part of a row whose work-items do anything."""
        i64, (lows, highs, others) = self._int64, inner.limits
        limited = copy(self)
        limited._first_item, limited._last_item = "fq_limited", "fq_limit"
        first = self._folded(self._words.maximum, [self._first_item, *lows])
        last = self._folded(self._words.minimum, [self._last_item, *highs])
        beside = (
            f"if ({item} == {other}) {item}{step};"
            for other in others
            for item, step in (("fq_limited", "++"), ("fq_limit", "--"))
        )
        return [
            "{",
            f"    {i64} fq_limited = {first}, fq_limit = {last};",
            *indented([*beside, *limited._parted_row(body, inner, together)]),
            "}",
        ]

    def _in_segments(
        self,
        body: Sequence[str],
        inner: InnerPart | None,
        together: Together | None,
        segments: Segments,
    ) -> list[str]:
        """The loops over rows, and over the segments of each."""
        i64, first, end = self._int64, segments.first, self._last_item
        segment = copy(self)
        segment._first_item, segment._last_item = first, "fq_segment_last"
        count = self._folded(self._words.minimum, [f"{end} - {first} + 1", *segments.lengths])
        cut = [
            f"for ({i64} {first} = {self._first_item}, fq_segment_last; {first} <= {end};",
            f"        {first} = fq_segment_last + 1) {{",
            *indented([
                *(f"const {i64} {name} = {value};" for name, value in segments.values),
                f"fq_segment_last = {first} + {count} - 1;",
                *segment._row(body, inner, together),
            ]),
            "}",
        ]  # fmt: skip
        if not segments.divisors:
            return self._rows(cut)
        worth = " && ".join(f"({d}) >= {self._lanes // 2}" for d in segments.divisors)
        whole = indented(self._plain_row(segments.whole, None))
        return self._rows([f"if ({worth}) {{", *indented(cut), "} else {", *whole, "}"])

    def _plain_row(self, body: Sequence[str], together: Together | None) -> list[str]:
        if together is not None:
            return [
                "{",
                *indented([
                    f"{self._int64} fq_start = {self._first_item};",
                    *self._together(together, f"{self._last_item} + 1"),
                    *self._words.workers.rolled_loop,
                    f"for (; fq_start <= {self._last_item}; fq_start += {self._width}) {{",
                    *indented(
                        self._guarded(f"fq_start + {self._column} <= {self._last_item}", body)
                    ),
                    "}",
                ]),
                "}",
            ]  # fmt: skip
        return [
            f"for ({self._int64} fq_start = {self._first_item}; fq_start <= {self._last_item}; "
            f"fq_start += {self._width}) {{",
            *indented(self._guarded(f"fq_start + {self._column} <= {self._last_item}", body)),
            "}",
        ]

    def _together(self, together: Together, stop: str) -> list[str]:
        """The loop over as many work-items as can be done together before ``stop``."""
        step = together.items * self._lanes
        return [
            TOGETHER,
            *self._words.workers.rolled_loop,
            f"for (; fq_start + {step} <= {stop}; fq_start += {step}{self._hidden}) {{",
            f"    {self._item()}",
            *indented(together.body),
            "}",
        ]

    def _parted_row(
        self, body: Sequence[str], inner: InnerPart, together: Together | None
    ) -> list[str]:
        """The row's inner part as whole vectors without a condition, what is before and behind as
        ever.  Vectors begin at multiples of their length; where the part is repeatable, what is
        left of it at both ends is a vector too, some of whose work-items are done again: under
        masks a vector takes as long as several."""
        low = self._folded(self._words.maximum, [self._first_item, *inner.lows])
        high = self._folded(self._words.minimum, [self._last_item, *inner.highs])
        i64, lanes, mask = self._int64, self._lanes, f"-{self._words.literal(self._lanes)}"
        repeated = inner.repeatable and (together is None or not self._by_threads)
        begin = f"({low} + {lanes - 1}) & {mask}"
        if repeated or not (inner.lows or inner.highs):
            begin = low
        found = [f"fq_outer = fq_from + ((fq_to + 1 - fq_from) & {mask});"]
        if repeated:
            found = [f"fq_whole = (fq_from + {lanes - 1}) & {mask};", "fq_outer = fq_to + 1;"]
        find = [
            f"const {i64} fq_from = {begin}, fq_to = {high};",
            f"if (fq_from + {lanes - 1} <= fq_to) {{",
            *indented(["fq_inner = fq_from;", *found]),
            "}",
        ]
        if inner.where:
            find = [f"if ({' && '.join(f'({w})' for w in inner.where)}) {{", *indented(find), "}"]
        else:
            find = ["{", *indented(find), "}"]
        return [
            "{",
            *indented([
                f"{i64} fq_inner = {self._last_item} + 1, fq_outer = fq_inner;",
                *([f"{i64} fq_whole = fq_inner;"] if repeated else []),
                *find,
                f"{i64} fq_start = {self._first_item};",
                "for (int fq_part = 0; fq_part < 2; fq_part++) {",
                f"    const {i64} fq_stop = fq_part == 0 ? fq_inner : {self._last_item} + 1;",
                *indented(self._edge(body, repeated and inner.beside)),
                *indented((self._repeated if repeated else self._inner)(inner, together)),
                "}",
            ]),
            "}",
        ]  # fmt: skip

    def _edge(self, body: Sequence[str], alone: bool) -> list[str]:
        """The loop over what is left of a row before or behind its inner part.  Where few
        work-items may be done ``alone``, all lanes do them, one by one: under masks, and with a
        condition in each lane, one takes as long as several vectors."""
        masked = [
            *self._words.workers.rolled_loop,
            f"for (; fq_start < fq_stop; fq_start += {self._width}) {{",
            *indented(self._guarded(f"fq_start + {self._column} < fq_stop", body)),
            "}",
        ]
        if not alone or self._by_threads:
            return masked
        return [
            f"if (fq_stop - fq_start <= {MOST_ALONE}) {{",
            f"    for (; fq_start < fq_stop; fq_start += 1{self._hidden}) {{",
            f"        const {self._int64} fq_id_{self._last} = fq_start;",
            *indented(body, 2),
            "    }",
            "} else {",
            *indented(masked),
            "}",
        ]

    def _inner(self, inner: InnerPart, together: Together | None) -> list[str]:
        """The loops over the inner part, in its turn."""
        if together is None:
            return [
                "if (fq_part == 0)",
                f"    for (fq_start = fq_inner; fq_start < fq_outer; fq_start += {self._turn}) {{",
                f"        {self._item()}",
                *indented(inner.body, 2),
                "    }",
            ]
        return [
            "if (fq_part == 0) {",
            "    fq_start = fq_inner;",
            *indented(self._together(together, "fq_outer")),
            *indented(self._words.workers.rolled_loop),
            f"    for (; fq_start < fq_outer; fq_start += {self._turn}) {{",
            f"        {self._item()}",
            *indented(inner.body, 2),
            "    }",
            "}",
        ]

    def _repeated(self, inner: InnerPart, together: Together | None) -> list[str]:
        """The loops over the inner part, in its turn: the vector at its first work-item if that is
        no multiple, those from multiples on, several ``together`` as long as there are as many, and
        the one that ends with its last work-item if none has.  Which they are is chosen around the
        loop: inside, a compiler may take what it chooses between to differ between lanes.  The
        loop over turns has no other exit: with one, and a condition after a loop in the body,
        Intel's compiler for CPUs gave up to vectorise the kernel."""
        i64, lanes = self._int64, self._lanes
        begin = f"fq_turn == 0 ? fq_inner : fq_turn == 1 ? fq_whole : fq_outer - {lanes}"
        last = f"((fq_outer - fq_whole) & {lanes - 1}) == 0 ? fq_outer - {lanes} : fq_outer"
        stop = f"fq_turn == 0 ? fq_whole : fq_turn == 1 ? fq_outer - {lanes - 1} : {last}"
        start, several = f"fq_start = {begin}", []
        if together is not None:
            at_once = indented(self._together(together, "fq_outer"))
            several, start = [f"{start};", "if (fq_turn == 1) {", *at_once, "}"], ""
        return [
            "if (fq_part == 0 && fq_inner < fq_outer) {",
            "    for (int fq_turn = 0; fq_turn < 3; fq_turn++) {",
            f"        const {i64} fq_end = {stop};",
            *indented(several, 2),
            f"        for ({start}; fq_start < fq_end; fq_start += {self._turn}) {{",
            f"            {self._item()}",
            *indented(inner.body, 3),
            "        }",
            "    }",
            "    fq_start = fq_outer;",
            "}",
        ]

    def _guarded(self, cond: str, body: Sequence[str]) -> list[str]:
        return [self._item(), f"if ({cond}) {{", *indented(body), "}"]

    def _item(self) -> str:
        return f"const {self._int64} fq_id_{self._last} = fq_start + {self._column};"

    def _folded(self, function: Callable[[str, str], str], values: Sequence[str]) -> str:
        text = values[0]
        for value in values[1:]:
            text = function(text, f"({self._int64})({value})")
        return text


def either(conditions: Sequence[str], lines: Sequence[str], otherwise: Sequence[str]) -> list[str]:
    """``lines`` where all ``conditions`` hold, one after the other, else ``otherwise``."""
    where = " && ".join(f"({c})" for c in conditions)
    inside, outside = indented(lines), indented(otherwise)
    return [f"    if ({where}) {{", *inside, "    } else {", *outside, "    }"]


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Lines of a block, ``depth`` deep."""
    return [f"{'    ' * depth}{line}" if line else line for line in lines]
