"""What a worker does for a tile of a stage, as source text: statements in loops of its lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import prod

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.dialect import Dialect
from fusionq.codegen.falling_indices import falling_hidden, with_falling_indices
from fusionq.codegen.group_conditions import skipped_outside
from fusionq.codegen.group_statements import GroupLanes
from fusionq.codegen.helpers import Helpers
from fusionq.codegen.interchange import interchanged, is_faster, order_of, touched_bytes
from fusionq.codegen.interior import Interior, parted, whole_rows
from fusionq.codegen.jammed_loops import JammedLoops, jammed_loops
from fusionq.codegen.kernel_body import GroupLoop, StatementLines, statement_lines
from fusionq.codegen.loads_ahead import LoadsAhead
from fusionq.codegen.loads_together import with_loads_together
from fusionq.codegen.local_places import groups_at_once, local_places
from fusionq.codegen.opposite_steps import has_opposite_steps
from fusionq.codegen.own_rows import own_rows
from fusionq.codegen.peeled_loops import with_peeled_loops
from fusionq.codegen.private_reductions import (
    LANE,
    private_reductions,
    with_reductions,
)
from fusionq.codegen.queue_words import QueueWords
from fusionq.codegen.row_segments import RowSegments, row_segments
from fusionq.codegen.row_vectors import RowVectors, VectorRows, alignment, row_vectors
from fusionq.codegen.scalar_items import is_for_scalars
from fusionq.codegen.scoping import Body
from fusionq.codegen.statements import Around
from fusionq.codegen.stores_behind_loads import with_stores_behind_loads
from fusionq.codegen.stream_text import slot_lines
from fusionq.codegen.streamed_loops import StreamedLoop, streamed
from fusionq.codegen.tile_groups import ThreadGroupLoop, TileGroupLoop
from fusionq.codegen.tile_items import GroupItems, ThreadItems, TileItems
from fusionq.codegen.tile_loop import InnerPart, Segments, TileLoop, Together, either, indented
from fusionq.codegen.triangular_loops import with_triangular_loops
from fusionq.codegen.unroll_and_jam import Jammed, jammed
from fusionq.ir.nodes import (
    ArrayDecl,
    Block,
    Const,
    Expr,
    If,
    Kernel,
    LaneDimension,
    StageCode,
)
from fusionq.ir.repeatable import is_repeatable
from fusionq.ir.types import INT32, INT64
from fusionq.ir.walk import is_work_group_function, local_memories, takes_work_groups

LOCAL = "fq_local"
"""The pointer to the bytes of a worker's local memory."""


@dataclass(frozen=True)
class _Beside:
    """Bodies and values that are printed with those of the work-items; ``arrays``: declared around
    the loop over them; ``statements``: what the bodies do that the kernel does not."""

    bodies: tuple[Body, ...] = ()
    values: tuple[Expr, ...] = ()
    arrays: tuple[ArrayDecl, ...] = ()
    statements: Body = ()


_ALONE = _Beside()


def _inner_part(
    inner: Interior, lines: StatementLines, body: list[str], repeatable: bool = False
) -> InnerPart:
    """``inner`` as text, whose bounds are the first values of ``lines``."""
    given = iter(lines.values)
    lows, highs, where, *limits = (list(islice(given, len(e))) for e in _bounds(inner))
    return InnerPart(lows, highs, where, body, repeatable, limits=limits)


def _bounds(inner: Interior) -> tuple[tuple[Expr, ...], ...]:
    """What is asked to find the part of a row that is inner."""
    return inner.lows, inner.highs, inner.where, *inner.limits


def _is_guarded(body: Body) -> bool:
    """Whether all of ``body`` is under one condition."""
    stmts = [s for s in body if not isinstance(s, Block)]
    return len(stmts) == 1 and isinstance(stmts[0], If) and not stmts[0].orelse


def _both(lines: StatementLines, others: StatementLines) -> StatementLines:
    """``lines`` with what ``others`` need beside."""
    return replace(
        lines,
        slots=tuple(dict.fromkeys((*lines.slots, *others.slots))),
        types=lines.types | others.types,
        typedefs=tuple(dict.fromkeys((*lines.typedefs, *others.typedefs))),
        functions=lines.functions | others.functions,
    )


@dataclass(frozen=True)
class StageText:
    """Stages of a persistent kernel as text; what they need is added to ``helpers``."""

    target: Target
    dialect: Dialect
    words: QueueWords
    helpers: Helpers
    loads_at_once: int = 0
    """As ``Workers.loads_at_once``."""

    def lines(
        self,
        code: StageCode,
        unwritten: frozenset[str] = frozenset(),
        streams: tuple[StreamedLoop, ...] = (),
    ) -> tuple[StatementLines, list[str]]:
        """A stage code's statements, and its loop over a tile; ``unwritten``: the parameters that
        no stage with that body writes; ``streams``: its loops over rows that rings stream."""
        kernel = code.kernel
        if is_work_group_function(kernel):
            return self._group_lines(code)
        if takes_work_groups(kernel):
            return self._thread_lines(code, unwritten, streams)
        if self.words.workers.first_lane_takes:
            return self._item_lines(code, _ALONE)
        if code.lanes is not None:
            return self._interchanged_lines(code, code.lanes)
        whole, inner = parted(code)
        lanes = self.target.worker_size
        found = private_reductions(kernel, whole, code.reduced, lanes)
        if found is None:
            return self._one_by_one_lines(code, whole, inner) or self._item_lines(code, _ALONE)
        beside = _Beside(
            (found.before, found.after, skipped_outside(whole)),
            (*found.small, found.elements),
            found.arrays,
            (*found.before, *found.stores),
        )
        reducing = replace(code, kernel=with_reductions(kernel, found))
        lines, loop = self._item_lines(reducing, beside)
        before, after, plain = lines.bodies[-3:]
        *small, elements = lines.values[-len(beside.values) :]
        rows = TileLoop(self.words, lanes, kernel.ndim, hidden=self._hidden(code))
        worth = [*small, f"{rows.items} >= {CODE_LIMITS.items_per_copy} * ({elements})"]
        lane = f"const {self.words.int64} {lines.names.of(LANE.name)} = fq_lane;"
        before = [f"    {line}" for line in (lane, *lines.kept, *before)]
        after = [f"    {line}" for line in after]
        return lines, either(worth, [*before, *loop, *after], rows.lines([*lines.arrays, *plain]))

    def _interchanged_lines(
        self, code: StageCode, lanes: LaneDimension
    ) -> tuple[StatementLines, list[str]]:
        """A stage code's statements, and its loops over a tile: by lanes along ``lanes`` where that
        is faster and its memory in the caches, else along the last dimension."""
        order = order_of(code.kernel.ndim, lanes)
        lines, rows = self._item_lines(code, _ALONE)
        beside = _Beside(values=(touched_bytes(code.kernel),))
        other, columns = self._item_lines(interchanged(code, order), beside, order)
        faster = is_faster(lanes, code.kernel.ndim, self.target.worker_size)
        cached = f"{other.values[-1]} <= {self.target.kept_bytes}"
        return _both(lines, other), either([faster, cached], columns, rows)

    def _one_by_one_lines(
        self, code: StageCode, whole: Body, inner: Interior | None
    ) -> tuple[StatementLines, list[str]] | None:
        """A stage code's statements, which do the ``whole`` of it and ``inner`` inside of rows, and
        its loop over a tile in which one lane does all, or all lanes the same, where that is faster
        than vectors; None where it is not."""
        kernel = code.kernel
        # Lanes that do the same are a scalar loop; one of them by itself has a mask.
        by_all = is_repeatable(whole, code.apart)
        rows = own_rows(kernel, whole if inner is None else inner.body, not by_all)
        if rows is None and not is_for_scalars(kernel, whole):
            return None
        bodies = [skipped_outside(whole)]
        values: tuple[Expr, ...] = ()
        lengths: tuple[Expr, ...] = () if rows is None else rows.lengths
        if rows is None:
            inner = None
        if inner is not None:
            bodies.append(skipped_outside(inner.body))
            values = tuple(chain(*_bounds(inner)))
        several = None if rows is None else rows.jammed
        if several is not None:
            bodies.append(skipped_outside(several.body))
            kernel = several.added_to(kernel)
        dialect = replace(self.dialect, items=TileItems(self.dialect.items, kernel.ndim))
        lines = statement_lines(kernel, bodies, dialect, self.helpers, [*values, *lengths])
        loop = TileLoop(self.words, 1, kernel.ndim, (), self._hidden(code))
        texts = [[*lines.arrays, *text] for text in lines.bodies]
        together = None if several is None else Together(several.items, texts[-1])
        part = None if inner is None else _inner_part(inner, lines, texts[1])
        loops = ["const int fq_lane = 0;", *loop.lines(texts[0], part, together)]
        one_lane = ["{" if by_all else "if (fq_lane == 0) {", *indented(loops), "}"]
        if all(isinstance(length, Const) for length in lengths):
            return lines, one_lane
        least = CODE_LIMITS.own_row_iterations
        long = " || ".join(f"{value} >= {least}" for value in lines.values[len(values) :])
        others, vectors = self._item_lines(code, _ALONE)
        return _both(lines, others), either([long], one_lane, vectors)

    def _item_lines(
        self, code: StageCode, beside: _Beside, order: tuple[int, ...] = ()
    ) -> tuple[StatementLines, list[str]]:
        """A stage code's statements, and behind them those of ``beside``, and its loop over a
        tile.  ``order``: that of its dimensions, if it is not theirs."""
        if not self.words.workers.first_lane_takes:
            kernel = with_stores_behind_loads(code.kernel, code.kernel.body)
            code = replace(code, kernel=with_triangular_loops(kernel, kernel.body))
        kernel = code.kernel
        body, inner = parted(code)
        segments = None if self.words.workers.first_lane_takes else row_segments(kernel, body)
        if segments is not None:
            return self._segment_lines(code, body, segments, beside, order)
        if not self.words.workers.first_lane_takes:
            inner = whole_rows(body, inner)
        bodies = [skipped_outside(body)]
        values: tuple[Expr, ...] = ()
        if inner is not None:
            bodies.append(inner.body)
            values = tuple(chain(*_bounds(inner)))
        lanes = self.target.worker_size
        several = self._jammed(kernel, bodies[-1], beside)
        if several is not None:
            bodies.append(several.body)
            kernel = several.added_to(kernel)
        vectors = self._vectors(code, body if inner is None else inner.body)
        plain = len(bodies)
        if vectors is not None:
            bodies += vectors.bodies
            kernel = replace(kernel, arrays=(*kernel.arrays, *vectors.kept))
        lines = self._statements(code, kernel, bodies, values, beside, order)
        loop = TileLoop(self.words, lanes, kernel.ndim, order, self._hidden(code))
        texts = [[*lines.arrays, *body] for body in lines.bodies[: len(bodies)]]
        together = None if several is None else Together(several.items, texts[plain - 1])
        part = None
        if inner is not None:
            part = _inner_part(inner, lines, texts[1], is_repeatable(body, code.apart))
            part = replace(part, beside=not _is_guarded(body))
        one_by_one = loop.lines(texts[0], part, together)
        if vectors is None:
            return lines, one_by_one
        assert self.dialect.vectors is not None
        needed = alignment(kernel, vectors.items, vectors.arrays, lines)
        index = self.dialect.scalars.type_name(INT32 if kernel.small_sizes else INT64)
        rows = VectorRows(self.words, lanes, kernel.ndim, index)
        aligned = self.dialect.vectors.aligned(*needed)
        wide = rows.lines(vectors, [texts[0], *texts[plain:]], part)
        wide = self.dialect.vectors.known(*needed, wide)
        return lines, either([rows.worth(vectors), *aligned], wide, one_by_one)

    def _jammed(self, kernel: Kernel, body: Body, beside: _Beside) -> Jammed | JammedLoops | None:
        """How a lane does several work-items at once inside of a tile's rows."""
        lanes, workers = self.target.worker_size, self.words.workers
        if workers.first_lane_takes or beside.arrays:
            return jammed(kernel, body, workers.items_at_once, lanes)
        return jammed_loops(kernel, body, lanes)

    def _vectors(self, code: StageCode, inner: Body) -> RowVectors | None:
        """How a lane does neighbours inside of a tile's rows, where it may and the language has
        vectors."""
        vectors = self.dialect.vectors
        if vectors is None:
            return None
        return row_vectors(code.kernel, inner, vectors.nbytes, self.target)

    def _segment_lines(
        self,
        code: StageCode,
        whole: Body,
        segments: RowSegments,
        beside: _Beside,
        order: tuple[int, ...],
    ) -> tuple[StatementLines, list[str]]:
        """A stage code's statements, and its loop over a tile whose rows are cut into segments."""
        inner = whole_rows(segments.body, segments.interior)
        bodies = [segments.body, *([whole] if segments.divisors else [])]
        bodies = [skipped_outside(body) for body in bodies]
        several = None
        kernel, lanes = code.kernel, self.target.worker_size
        if inner is not None:
            bodies.append(inner.body)
            of_row = segments.variables
            several = None if beside.arrays else jammed_loops(kernel, inner.body, lanes, of_row)
        if several is not None:
            bodies.append(several.body)
            kernel = several.added_to(kernel)
        bounds = () if inner is None else _bounds(inner)
        own = [tuple(value for _, value in segments.values), segments.lengths, segments.divisors]
        values = list(chain(*own, *bounds))
        lines = self._statements(code, kernel, bodies, values, beside, order)
        given = iter(lines.values)
        of_segment, lengths, divisors, *edges = (
            list(islice(given, len(p))) for p in (*own, *bounds)
        )
        names = [lines.names.of(name) for name, _ in segments.values]
        texts = [[*lines.arrays, *body] for body in lines.bodies[: len(bodies)]]
        cut = Segments(
            lines.names.of(segments.first),
            list(zip(names, of_segment, strict=True)),
            lengths,
            divisors,
            texts[1] if segments.divisors else [],
        )
        part = None
        if inner is not None:
            again = is_repeatable(segments.body, code.apart)
            inside = texts[-1] if several is None else texts[-2]
            both = not _is_guarded(segments.body)
            lows, highs, where, *limits = edges
            part = InnerPart(lows, highs, where, inside, again, both, limits)
        together = None if several is None else Together(several.items, texts[-1])
        loop = TileLoop(self.words, lanes, kernel.ndim, order, self._hidden(code))
        return lines, loop.lines(texts[0], part, together, cut)

    def _group_lines(self, code: StageCode) -> tuple[StatementLines, list[str]]:
        """A work-group function's statements, and its loop over the groups of a tile."""
        kernel = code.kernel
        assert code.local_range is not None
        size = self.target.worker_size
        loop = TileGroupLoop(self.words, size, code.local_range, self._hidden(code))
        items = GroupItems(self.dialect.items, code.local_range, kernel.ndim, size)
        dialect = replace(self.dialect, items=items)
        body, _ = parted(code)
        lanes = GroupLanes(size, prod(code.local_range), self.words.workers.group_barrier)
        of_group = GroupLoop(loop.work_items, LOCAL, lanes)
        kernel = with_triangular_loops(kernel, body)
        kernel = with_peeled_loops(kernel, kernel.body)
        kernel = with_falling_indices(kernel, kernel.body)
        lines = statement_lines(kernel, [kernel.body], dialect, self.helpers, (), of_group)
        return lines, loop.lines([*lines.arrays, *lines.bodies[0]])

    def _thread_lines(
        self, code: StageCode, unwritten: frozenset[str], streams: tuple[StreamedLoop, ...]
    ) -> tuple[StatementLines, list[str]]:
        """The statements of a kernel whose work-items are lanes of a worker, and the loop of its
        work-groups over those of a tile."""
        kernel = code.kernel
        assert code.local_range is not None
        size, at_once = prod(code.local_range), groups_at_once(code, self.target.worker_size)
        groups = self.words.workers.groups_of(size)
        items = ThreadItems(self.dialect.items, code.local_range, kernel.ndim)
        dialect = replace(self.dialect, items=items, groups=groups)
        local_range = code.local_range
        around: Around | None = None
        kept: tuple[ArrayDecl, ...] = ()
        loop = ThreadGroupLoop(self.words, local_range, at_once)
        rings = self.words.workers.rings
        if streams:
            assert rings is not None
            kernel, kept = streamed(kernel, streams, rings.slot_bytes, size, rings.together)
            code = replace(code, kernel=kernel)
            around = slot_lines(streams, rings, dialect.scalars, loop.is_last)
        kernel, body = self._loads_first(code, unwritten, bool(streams))
        place = f"({LOCAL} + {local_places(kernel)[1]} * (fq_lane / {size}))"
        of_group = GroupLoop(None, place if at_once > 1 else LOCAL, None, around)
        # What loads nothing together is not faster for being unrolled: it is more code to fetch.
        rolled = 1 if rings is not None and not streams else None
        lines = statement_lines(kernel, [body], dialect, self.helpers, (), of_group, kept, rolled)
        # The next work-group's local arrays lie where this one's do.
        behind = [f"{groups.barrier(False, True)};"] if local_memories(kernel) else []
        return lines, loop.lines([*lines.arrays, *lines.bodies[0], *behind])

    def _loads_first(
        self, code: StageCode, unwritten: frozenset[str], streams: bool
    ) -> tuple[Kernel, Body]:
        """The kernel of ``code`` and its statements, with loads of several iterations ahead of what
        is done with them.  Where rings leave a multiprocessor few threads, each wait for memory of
        a stage that reads no rings shows: there loops of any length and step load together, as in
        launches."""
        kernel = code.kernel
        body, _ = parted(code)
        assert code.local_range is not None
        most, apart = self.loads_at_once, frozenset(code.apart)
        if self.words.workers.rings is not None and not streams:
            together = with_loads_together(kernel, body, most, unwritten, apart)
            if together is not None:
                return together, together.body
        ahead = LoadsAhead(kernel, code.local_range, most, unwritten, apart)
        body = ahead.rewritten(body)
        return ahead.kernel, body

    def _statements(
        self,
        code: StageCode,
        kernel: Kernel,
        bodies: Sequence[Body],
        values: Sequence[Expr],
        beside: _Beside,
        order: tuple[int, ...],
    ) -> StatementLines:
        kernel = replace(kernel, body=(*kernel.body, *beside.statements))
        if not self.words.workers.first_lane_takes:
            along = order[-1] if order else kernel.ndim - 1
            bodies = [falling_hidden(body, along) for body in bodies]
        return statement_lines(
            kernel,
            [*bodies, *beside.bodies],
            self._in_tile(code, order),
            self.helpers,
            [*values, *beside.values],
            kept=beside.arrays,
        )

    def _hidden(self, code: StageCode) -> str | None:
        """What hides by how much ids rise, where that is needed."""
        scalars = self.dialect.scalars
        needed = scalars.unknown_zero is not None and has_opposite_steps(code.kernel)
        return scalars.zero if needed else None

    def _in_tile(self, code: StageCode, order: tuple[int, ...]) -> Dialect:
        """The dialect, in which work-items are those of a tile."""
        lanes = self.target.worker_size
        items = TileItems(self.dialect.items, code.kernel.ndim, lanes, order)
        return replace(self.dialect, items=items)
