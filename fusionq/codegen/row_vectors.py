"""Superword-level parallelism in the rows of a tile: a lane does several neighbours as one vector.

    b[i] = a[i - 1] + a[i + 1]    →    for v in the row's whole vectors, a lane a vector:
                                           for k in range(4): kept[k] = a[4 * v + k - 1] + …
                                           for k in range(4): b[4 * v + k] = kept[k]
                                       for i before and behind those, a lane a work-item: …

A row's vectors lie in its interior (``codegen.interior``).  Whether elements begin where vectors do
is asked of each tile; where they do not, rows are done as without vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.codegen.device_source import ExtentArgument, Pointer, Stride
from fusionq.codegen.kernel_body import StatementLines
from fusionq.codegen.neighbours import (
    accessed_by_rows,
    kept_bytes,
    loads_and_stores,
)
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.scoping import Body
from fusionq.codegen.tile_loop import TOGETHER, InnerPart
from fusionq.ir.nodes import ArrayDecl, ArrayParam, Binary, Const, Expr, For, ItemQuery, Kernel, Var
from fusionq.ir.types import FLOAT16, INT64
from fusionq.ir.walk import rewrite_body

WARP = 32
"""Lanes that access memory together."""
PREFIX = "beside_"
"""How the names of the arrays begin in which a lane keeps what it stores."""


@dataclass(frozen=True)
class RowVectors:
    """``one`` does ``items`` neighbours, from the lane's id on; ``several``, if that is not one,
    ``at_once`` of these, which lie one for each lane apart.  ``kept``: their private arrays.
    Elements of ``arrays`` have to begin at multiples of ``items``, and so have their rows."""

    items: int
    at_once: int
    one: Body
    several: Body
    kept: tuple[ArrayDecl, ...]
    arrays: tuple[str, ...]
    first: int
    """The multiple of work-items at which the first vector begins."""

    @property
    def bodies(self) -> tuple[Body, ...]:
        """``one``, and ``several`` if that is another."""
        return (self.one,) if self.at_once == 1 else (self.one, self.several)


def row_vectors(kernel: Kernel, inner: Body, nbytes: int, target: Target) -> RowVectors | None:
    """How a worker of ``target`` does ``inner``, what ``kernel`` does inside of rows, with
    vectors of up to ``nbytes``; None where that is more than load, compute and store, or elements
    are too large."""
    last, lanes = kernel.ndim - 1, target.worker_size
    # float16 is a structure here, of which the compiler makes no vectors.
    halves = any(isinstance(p, ArrayParam) and p.dtype == FLOAT16 for p in kernel.params)
    arrays = [] if kernel.arrays or halves else accessed_by_rows(kernel, inner, last)
    names = [*(p.name for p in kernel.params), *(name for name, _ in kernel.variables)]
    if not arrays or any(name.startswith(("turn_", PREFIX)) for name in names):
        return None
    items, of_item = nbytes // max(a.dtype.nbytes for a in arrays), kept_bytes(inner)
    least, most = CODE_LIMITS.shortest_vector, CODE_LIMITS.vector_kept_bytes
    while items >= least and items * of_item > most:
        items //= 2
    split = None if items < least else loads_and_stores(kernel, inner, PREFIX)
    if split is None:
        return None
    computed, stores, kept = split
    at_once = 2 if 2 * items * of_item <= CODE_LIMITS.ahead_kept_bytes else 1

    def loops(count: int) -> Body:
        return tuple(
            _loop(Var(INT64, f"turn_{k}"), last, part, items, count, lanes)
            for k, part in enumerate((computed, stores))
        )

    declared = [ArrayDecl(n, type, (items * at_once,), "private") for n, type in kept.items()]
    # A row's first vector begins at a cache line: the accesses of a warp are whole ones.
    first = max(items, target.cache_line_bytes // min(a.dtype.nbytes for a in arrays))
    used = tuple(a.name for a in arrays)
    return RowVectors(items, at_once, loops(1), loops(at_once), tuple(declared), used, first)


def _loop(turn: Var, last: int, part: Body, items: int, count: int, lanes: int) -> For:
    """``part`` for each element of ``count`` vectors."""
    own = ItemQuery("global_id", last)
    place: Expr = turn
    if count > 1:
        vector = Binary(INT64, "floordiv", turn, Const(INT64, items))
        far = Binary(INT64, "mul", vector, Const(INT64, items * lanes))
        place = Binary(INT64, "add", far, Binary(INT64, "mod", turn, Const(INT64, items)))
    id = Binary(INT64, "add", own, place)
    body = rewrite_body(part, lambda e: id if e == own else e)
    return For(turn.name, Const(INT64, 0), Const(INT64, items * count), Const(INT64, 1), body)


def alignment(
    kernel: Kernel, items: int, arrays: Sequence[str], lines: StatementLines
) -> tuple[dict[str, tuple[str, int]], dict[str, int]]:
    """What has to hold where vectors of so many ``items`` of ``arrays`` are loaded and stored: for
    each array the type of its pointer and the bytes of which it is a multiple; and of which numbers
    strides are."""
    pointers: dict[str, tuple[str, int]] = {}
    multiples: dict[str, int] = {}
    for slot in lines.slots:
        if slot.param not in arrays:
            continue
        array = kernel.param(slot.param)
        assert isinstance(array, ArrayParam)
        last = array.ndim - 1
        match slot:
            case Pointer():
                name = lines.names.of(slot.param)
                pointers[name] = lines.pointer_types[slot], items * array.dtype.nbytes
            case ExtentArgument(_, dim) if array.contiguous and dim == last > 0:
                multiples[lines.memory.identifier(slot)] = items
            case Stride(_, dim) if dim < last:
                multiples[lines.memory.identifier(slot)] = items
    return pointers, multiples


@dataclass(frozen=True)
class VectorRows:
    """The loops over a tile of ``ndim`` dimensions whose rows are done by ``lanes`` in vectors."""

    words: QueueWords
    lanes: int
    ndim: int
    index: str
    """The type of indices."""

    def worth(self, vectors: RowVectors) -> str:
        """The condition that a tile's rows have vectors for half of the lanes, or for a warp where
        the others can do other rows."""
        last = self.ndim - 1
        fewest = self.lanes // 2 if last == 0 else self._fewest
        return f"fq_last_{last} - fq_first_{last} >= {vectors.items * fewest - 1}"

    @property
    def _fewest(self) -> int:
        """Lanes that do a row of several, at least: as many as access memory together."""
        return min(WARP, self.lanes // 2)

    def lines(
        self, vectors: RowVectors, texts: Sequence[list[str]], inner: InnerPart | None
    ) -> list[str]:
        """The loops.  ``texts``: what is done for a work-item, for one vector, and for several if
        that is another."""
        last = self.ndim - 1
        lanes = self._fewest if last > 0 else self.lanes
        shorter: list[str] = []
        while lanes < self.lanes:  # twice as many do a row that has vectors for more
            short = f"fq_last_{last} - fq_first_{last} < {vectors.items * lanes}"
            shorter.append(f"{short} ? {lanes} : ")
            lanes *= 2
        width = "".join(shorter) + str(lanes)
        lines = [
            f"const int fq_width = {width};",
            "const int fq_column = fq_lane & (fq_width - 1);",
        ]
        for d in range(last):
            first, step = f"fq_first_{d}", f"fq_id_{d}++"
            if d == last - 1:
                first = f"{first} + fq_lane / fq_width"
                step = f"fq_id_{d} += {self.lanes} / fq_width"
            on = f"fq_id_{d} <= fq_last_{d}"
            lines.append(f"for ({self.words.int64} fq_id_{d} = {first}; {on}; {step})")
        return [*lines, "{", *_indented(self._row(vectors, texts, inner)), "}"]

    def _row(
        self, vectors: RowVectors, texts: Sequence[list[str]], inner: InnerPart | None
    ) -> list[str]:
        """A row's vectors, then what is before and behind them."""
        words, i64, items = self.words, self.words.int64, vectors.items
        last = self.ndim - 1
        first, end, id = f"fq_first_{last}", f"fq_last_{last}", f"const {i64} fq_id_{last}"
        low, high = first, end
        for bound in () if inner is None else inner.lows:
            low = words.maximum(low, f"({i64})({bound})")
        for bound in () if inner is None else inner.highs:
            high = words.minimum(high, f"({i64})({bound})")
        mask = words.literal(vectors.first)
        find = [
            f"const {i64} fq_low = ({low} + {vectors.first - 1}) & -{mask}, fq_high = {high} + 1;",
            f"if (fq_low + {items} <= fq_high) {{",
            "    fq_from = fq_low;",
            f"    fq_to = fq_low + ((fq_high - fq_low) & -{words.literal(items)});",
            "}",
        ]
        where = "" if inner is None or not inner.where else f"if ({_all(inner.where)}) "
        turn = f"{vectors.at_once * items} * {self.lanes}"
        # What is a multiple of vectors is one times a number, of the type of indices: so the
        # compiler knows that it is one, and what its neighbours are.
        vector = f"{id} = {items} * ({self.index})(fq_start / {items} + fq_column);"
        many: list[str] = []
        if vectors.at_once > 1:
            many = [
                *words.workers.rolled_loop,
                f"for (; fq_start + {turn} <= fq_to; fq_start += {turn}) {{",
                f"    {vector}",
                *_indented(texts[2]),
                "}",
            ]
        return [
            f"{i64} fq_from = {end} + 1, fq_to = fq_from;",
            f"{where}{{",
            *_indented(find),
            "}",
            f"{i64} fq_start = fq_from;",
            TOGETHER,
            *many,
            *words.workers.rolled_loop,
            f"for (; fq_start < fq_to; fq_start += {items} * fq_width) {{",
            f"    {vector}",
            f"    if (fq_id_{last} < fq_to) {{",
            *_indented(texts[1], 2),
            "    }",
            "}",
            f"const {i64} fq_before = fq_from - {first};",
            f"const {i64} fq_beside = fq_before + {end} + 1 - fq_to;",
            *words.workers.rolled_loop,
            "for (fq_start = fq_column; fq_start < fq_beside; fq_start += fq_width) {",
            f"    {id} = fq_start + (fq_start < fq_before ? {first} : fq_to - fq_before);",
            *_indented(texts[0]),
            "}",
        ]


def _all(conditions: Sequence[str]) -> str:
    return " && ".join(f"({c})" for c in conditions)


def _indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [f"{'    ' * depth}{line}" if line else line for line in lines]
