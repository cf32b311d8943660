"""Overlapped tiles: producers and their consumers as one kernel, whose work-groups do a tile each.

    blur(a, t):  t[i] = a[i-1] + a[i+1]         for i in range(max(64*group - 1, 0), …):  # 66
    edge(t, b):  b[i] = t[i-1] - t[i+1]    →        tile[i - (64*group - 1)] = a[i-1] + a[i+1]
                                                group_barrier(group)
                                                for i in range(64*group, …):              # 64
                                                    b[i] = tile[i - 64*group] - …

The work-items of a group stride over the items of each part.  Where they are lanes of a vector, and
conditions on the last dimension bound part of a row, the rest has code without them
(``codegen.interior``), and where it changes nothing to do a work-item twice, hardly any of a row is
done under masks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import field, replace

from fusionq.analysis.footprint import Footprint
from fusionq.base.frozen import dataclass
from fusionq.codegen.group_conditions import FENCE, skipped_outside
from fusionq.codegen.interior import MOST_NODES, Interior, nodes_of, parted_items
from fusionq.codegen.row_loops import InnerRow, RowLoops, lanes_of
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Barrier,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Param,
    ScalarParam,
    Stmt,
    Var,
)
from fusionq.ir.parameters import SMALL
from fusionq.ir.repeatable import is_repeatable
from fusionq.ir.types import BOOL, INT64, ScalarType
from fusionq.ir.verifier import verify
from fusionq.ir.walk import (
    loaded_arrays,
    rewrite,
    statements,
)
from fusionq.passes.affine_expression import affine_expression
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.nontemporal_stores import streamed_row
from fusionq.passes.read_ahead import arrays_of, rows_ahead
from fusionq.passes.relocate import relocate
from fusionq.passes.renamed_part import renamed_body, renamed_expr
from fusionq.passes.share_local import share_local_arrays
from fusionq.passes.shared_params import SharedParams
from fusionq.passes.sliding_window import Window, ring_of, rows_of_step
from fusionq.passes.sources import ExtentSource, ParamSource, RangeSource
from fusionq.passes.unused_params import drop_unused_params
from fusionq.passes.whole_tiles import (
    Box,
    copies,
    is_inside,
    strongest,
    unclamped,
    whole_loops,
)


@dataclass(frozen=True, eq=False)
class TilePart:
    """What work-groups do between two barriers: ``kernel``, for the work-items in the box ``items``
    around their tile that its range, of ``extents``, has.

    ``tiles``: the parameters whose elements are in local memory, each with a number that is the
    same in all parts, and the box around a group's elements.  ``symbols``: sources of the values of
    the symbols in the boxes.  ``waits``: for the parts before.  ``advance``: where a tile is one of
    several in a sliding window, by how much ``items`` begins later in the first dimension than for
    the tile before.
    """

    kernel: FusedKernel
    extents: tuple[ParamSource, ...]
    items: Footprint
    tiles: Mapping[str, tuple[int, Footprint]]
    symbols: Mapping[str, ParamSource]
    waits: bool
    advance: int | None = None


def overlapped_tiles(
    parts: Sequence[TilePart],
    name: str,
    local_range: tuple[int, ...],
    identity: Callable[[ParamSource], Hashable],
    is_alone: Callable[[ParamSource], bool],
    type_of: Callable[[ParamSource], ScalarType],
    in_vectors: bool = True,
    line_bytes: int | None = None,
    steps: int = 1,
    streams: bool = False,
    splits: bool = False,
) -> FusedKernel:
    """One kernel that does ``parts`` tile by tile in work-groups of ``local_range``.  Sources with
    equal ``identity`` have one value; ``is_alone``: whether no other view that the parts use shares
    memory with the array; ``type_of``: of a scalar; ``in_vectors``: whether the work-items of a
    group are lanes of a vector; ``line_bytes``: of cache lines, where rows are read ahead.  More
    ``steps`` than one: the tiles of a sliding window, which a work-group does one after the other
    (``passes.sliding_window``).  ``streams``: rows are stored around the caches.  ``splits``: tiles
    of work-items that are threads have code of their own inside of all bounds
    (``passes.whole_tiles``)."""
    names = FreshNames()
    params = SharedParams(identity, names)
    merged = _Merged(
        name, local_range, is_alone, type_of, in_vectors, line_bytes, names, params, splits
    )
    if all(part.kernel.kernel.small_sizes for part in parts):
        merged.know_tile(parts[-1])
    if steps > 1:
        merged.slide(parts[-1], steps)
    merged.whole_at = len(merged.body)
    for part in parts:
        merged.add(part, streams and part is parts[-1])
    return merged.kernel(parts)


@dataclass
class _Merged:
    name: str
    local_range: tuple[int, ...]
    is_alone: Callable[[ParamSource], bool]
    type_of: Callable[[ParamSource], ScalarType]
    in_vectors: bool
    line_bytes: int | None
    names: FreshNames
    params: SharedParams
    splits: bool = False
    variables: list[tuple[str, ScalarType]] = field(default_factory=list)
    arrays: list[ArrayDecl] = field(default_factory=list)
    tiles: dict[int, str] = field(default_factory=dict)
    body: list[Stmt] = field(default_factory=list)
    tile: list[Expr] = field(default_factory=list)
    """A group's number in each dimension, where that is not its id."""
    window: Window | None = None
    before: list[Stmt] = field(default_factory=list)
    """What a group does before the tiles of its window."""
    loaded: set[str] = field(default_factory=set)
    """The arrays that the inner parts of rows load from."""
    whole: list[Expr] = field(default_factory=list)
    """What holds for tiles that are inside of all bounds."""
    is_whole: Var | None = None
    """Whether all of that holds."""
    whole_at: int = 0
    """Where in the body that is found out."""

    def know_tile(self, last: TilePart) -> None:
        """Let the numbers of tiles be seen to be as small as those of the items, which are those of
        the ``last`` part: so that 32 bits hold all that is computed of them."""
        for d, (source, side) in enumerate(zip(last.extents, last.items.extents, strict=True)):
            tiles = Binary(INT64, "sub", self._size(source), _ONE)
            most = Binary(INT64, "floordiv", tiles, Const(INT64, side))
            self.tile.append(self._assigned(f"tile_{d}", _call("minimum", _group(d), most)))

    def slide(self, last: TilePart, steps: int) -> None:
        """Let a group do ``steps`` tiles of the ``last`` part, one after the other in the first
        dimension."""
        first = self._assigned("first_tile", Binary(INT64, "mul", _group(0), Const(INT64, steps)))
        side = Const(INT64, last.items.extents[0])
        beyond = Binary(INT64, "sub", self._size(last.extents[0]), _ONE)
        tiles = Binary(INT64, "add", Binary(INT64, "floordiv", beyond, side), _ONE)
        end = _call("minimum", Binary(INT64, "add", first, Const(INT64, steps)), tiles)
        self.window = Window(
            Var(INT64, self.names.fresh("tile")), first, self._assigned("end_tile", end)
        )
        self.tile[:] = [self.window.tile, *(self._tile(d) for d in range(1, len(self.local_range)))]
        self.before, self.body = self.body, []

    def _tile(self, dim: int) -> Expr:
        return self.tile[dim] if self.tile else _group(dim)

    def kernel(self, parts: Sequence[TilePart]) -> FusedKernel:
        """The kernel with all ``parts``, which were added."""
        if self.is_whole is not None:
            found = Assign(self.is_whole.name, conjunction(strongest(self.whole)))
            self.body.insert(self.whole_at, found)
        body = self.body if self.window is None else [*self.before, self.window.loop(self.body)]
        kernel = Kernel(
            self.name,
            len(self.local_range),
            tuple(self.params.params),
            tuple(self.variables),
            tuple(body),
            tuple(self.arrays),
            span=parts[0].kernel.kernel.span,
            # Compilers that choose take fewer lanes where registers are short, and do each part,
            # with all its rows, for some lanes after the others.
            sub_group_size=self.local_range[-1] if self.in_vectors else None,
            small_sizes=all(part.kernel.kernel.small_sizes for part in parts),
        )
        made = FusedKernel(share_local_arrays(kernel), self.params.sources, {})
        made = drop_unused_params(made)
        verify(made.kernel)
        return made

    def add(self, part: TilePart, streams: bool) -> None:
        """The statements of the next part, which ``streams`` what it stores."""
        if part.waits:
            self.body.append(Barrier(global_memory=False))
        fused = part.kernel
        nodes = nodes_of(fused.kernel.body)
        for param, (_, box) in part.tiles.items():
            ring = None if self.window is None else ring_of(box.extents[0])
            fused = relocate(fused, param, box, "local", _group, part.symbols.__getitem__, ring)
        kernel = fused.kernel
        renamed: dict[str, str] = {}
        scalars: dict[str, Expr] = {}
        for p in kernel.params:
            if isinstance(p, ArrayParam):
                renamed[p.name] = self._array_param(p, fused.sources[p.name])
            else:
                scalars[p.name] = self._scalar(p, fused.sources[p.name])
        for declared in kernel.arrays:
            renamed[declared.name] = self._array(declared, part)
        for variable, kind in kernel.variables:
            renamed[variable] = self._variable(variable, kind)
        for loop in dict.fromkeys(s.var for s in statements(kernel.body) if isinstance(s, For)):
            renamed[loop] = self.names.fresh(loop)
        extents = [self._size(source) for source in part.extents]
        back: dict[Expr, Expr] = {}
        for own_name, merged in scalars.items():
            back.setdefault(merged, Param(INT64, own_name))  # the guards' stand first
        own = tuple(back.get(e, e) for e in extents)
        body, interior = parted_items(kernel, own, nodes)
        ids = [Var(INT64, self.names.fresh(f"item_{d}")) for d in range(kernel.ndim)]
        self.variables.append((ids[-1].name, INT64))

        def put(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
            return renamed_body(body, renamed, scalars, ids, self._tile)

        def value(e: Expr) -> Expr:
            return rewrite(e, lambda each: renamed_expr(each, renamed, scalars, ids, self._tile))

        ahead, edge, streamed, whole = None, None, None, False
        without: Collection[str] = ()
        own_names = renamed, scalars, ids
        inner = body if interior is None else interior.body
        self.loaded.update(renamed.get(name, name) for name in loaded_arrays(inner))
        if interior is not None or nodes <= MOST_NODES:
            if streams and self._begins_where_vectors_do(part, interior):
                free = self._alone() - self.loaded
                free = {own for own, name in renamed.items() if name in free}
                streamed = streamed_row(kernel, inner, free)
            if streamed is not None and streamed.shift % self.local_range[-1] == 0:
                inner, without, whole = streamed.body, streamed.arrays, True
            ahead = self._read_ahead(kernel, inner, part, extents, own_names, without)
        if interior is not None:
            without = arrays_of(interior.body)
            edge = self._read_ahead(kernel, body, part, extents, own_names, without, True)
        starts, names, first, last = self._bounds(part, extents)
        if not self.in_vectors or (interior is None and nodes > MOST_NODES):
            row = self._row(ids[-1], first[-1], last[-1], put(body), kernel.ndim)
        else:
            interior = interior or Interior((), (), (), body)
            within = InnerRow(
                *interior.bounds(value),
                put(inner),
                ahead,
                limits=interior.limits.mapped(value),
            )
            repeatable = self._is_repeatable(put(body)) and not whole
            row = self._loops().parted(
                ids[-1], (first[-1], last[-1]), within, put(body), repeatable,
                put(skipped_outside(body, (FENCE,), rows_only=True)),
            )  # fmt: skip
            if edge is not None:
                row = (*edge(first[-1]), *edge(last[-1]), *row)
        for d in reversed(range(kernel.ndim - 1)):
            end = Binary(INT64, "add", last[d], _ONE)
            start: Expr = first[d]
            lanes = lanes_of(kernel.ndim, self.local_range)[d]
            if lanes > 1:
                own_id = ItemQuery("local_id", len(self.local_range) - kernel.ndim + d)
                start = Binary(INT64, "add", start, own_id)
            row = (For(ids[d].name, start, end, Const(INT64, lanes), tuple(row)),)
        if self.splits:
            inside = interior or Interior((), (), (), body)
            row = self._split(
                part, fused, inside, starts, names, extents, nodes, (renamed, scalars), row
            )
        self.body += row

    def _split(
        self,
        part: TilePart,
        fused: FusedKernel,
        interior: Interior,
        starts: Sequence[Expr],
        names: Sequence[Var],
        extents: Sequence[Expr],
        nodes: int,
        own: tuple[Mapping[str, str], Mapping[str, Expr]],
        general: tuple[Stmt, ...],
    ) -> tuple[Stmt, ...]:
        """The loops of ``part``, which is ``fused`` with elements in local memory, from ``starts``
        on, which have ``names``: those of tiles that are inside of all bounds without conditions,
        as all of their work-items are in the ``interior``; those of other tiles ``general``."""
        renamed, scalars = own
        ndim = len(starts)
        ids = [ItemQuery("global_id", d) for d in range(ndim)]

        def is_size(e: Expr) -> bool:
            return fused.kernel.small_sizes and _is_size(e, fused.sources)

        def named(e: Expr) -> Expr:
            own_names = renamed, scalars, ids, self._tile
            return rewrite(unclamped(e, is_size), lambda each: renamed_expr(each, *own_names))

        lows, highs, where = interior.bounds(named)
        places = [
            Box(start, length, lanes, self._lane(d, ndim) if lanes > 1 else None)
            for d, (start, length, lanes) in enumerate(
                zip(starts, part.items.extents, lanes_of(ndim, self.local_range), strict=True)
            )
        ]
        asked = is_inside(replace(interior, lows=lows, highs=highs, where=where), places)
        if asked is None or copies(places) * nodes > MOST_NODES:
            return general
        self.whole += asked
        for box, extent in zip(places, extents, strict=True):
            self.whole.append(Compare("ge", box.start, Const(INT64, 0)))
            self.whole.append(Compare("lt", box.end, extent))
        boxes = [replace(box, start=first) for box, first in zip(places, names, strict=True)]

        def made(ids: Sequence[Expr]) -> tuple[Stmt, ...]:
            return renamed_body(interior.body, renamed, scalars, ids, self._tile)

        def variable(wanted: str) -> str:
            return self._variable(wanted, INT64)

        if self.is_whole is None:
            self.is_whole = Var(BOOL, self._variable("is_whole", BOOL))
        return (If(self.is_whole, whole_loops(boxes, made, self.names.fresh, variable), general),)

    def _lane(self, dim: int, ndim: int) -> Expr:
        """A work-item's number among those side by side in a dimension of ``ndim``."""
        if ndim == 1 and len(self.local_range) > 1:
            return ItemQuery("local_linear_id", 0)
        return ItemQuery("local_id", len(self.local_range) - ndim + dim)

    def _read_ahead(
        self,
        kernel: Kernel,
        body: Sequence[Stmt],
        part: TilePart,
        extents: Sequence[Expr],
        own: tuple[Mapping[str, str], Mapping[str, Expr], Sequence[Expr]],
        without: Collection[str],
        is_edge: bool = False,
    ) -> Callable[[Expr], tuple[Stmt, ...]] | None:
        """What of memory is read ahead in ``body``, ``without`` some arrays, for the first item of
        a step in a row; where that is done at the edges of an inner part, for an item."""
        line, lanes = self.line_bytes, 1 if is_edge else self.local_range[-1]
        box = part.items.extents if part.advance is None else rows_of_step(part.items, part.advance)
        found = None if line is None else rows_ahead(kernel, body, box, without)
        if found is None or line is None:
            return None
        names, scalars, (*ids, _) = own
        beyond = Binary(INT64, "add", ids[found.dim], Const(INT64, found.steps))
        end = Binary(INT64, "sub", extents[found.dim], _ONE)
        ids[found.dim] = _call("minimum", beyond, end)

        def ahead(first: Expr) -> tuple[Stmt, ...]:
            made: list[Stmt] = []
            for row, nbytes in found.rows:
                for n in range(0, lanes, max(line // nbytes, 1)):
                    item = Binary(INT64, "add", first, Const(INT64, n)) if n else first
                    made += renamed_body((row,), names, scalars, [*ids, item], self._tile)
            return tuple(made)

        return ahead

    # -------------------------------------------------------------------------------- loops
    def _bounds(
        self, part: TilePart, extents: Sequence[Expr]
    ) -> tuple[list[Expr], list[Var], list[Var], list[Var]]:
        """Where a part's items begin in each dimension, and variables with that where tiles
        are split, and with the first and the last id of those that there are."""
        starts: list[Expr] = []
        names: list[Var] = []
        first: list[Var] = []
        last: list[Var] = []
        for d, (extent, length, base) in enumerate(
            zip(extents, part.items.extents, part.items.base, strict=True)
        ):
            start = affine_expression(base, self._tile, lambda s: self._size(part.symbols[s]))
            starts.append(start)
            if self.splits:
                start = self._assigned(f"start_{d}", start)
                names.append(start)
            done = start
            if d == 0 and self.window is not None and part.advance is not None:
                done = self.window.first_new(start, length, part.advance)
            first.append(self._assigned(f"first_{d}", _call("maximum", done, Const(INT64, 0))))
            end = Binary(INT64, "add", start, Const(INT64, length - 1))
            bound = Binary(INT64, "sub", extent, _ONE)
            last.append(self._assigned(f"last_{d}", _call("minimum", end, bound)))
        return starts, names, first, last

    def _row(
        self, item: Var, first: Expr, last: Expr, body: Sequence[Stmt], ndim: int
    ) -> tuple[Stmt, ...]:
        end = self._assigned("end", Binary(INT64, "add", last, _ONE))
        return (self._loops().strided(item, first, end, body, True, ndim),)

    def _loops(self) -> RowLoops:
        return RowLoops(self.local_range, self.names.fresh, self._variable)

    def _begins_where_vectors_do(self, part: TilePart, interior: Interior | None) -> bool:
        """Whether the inner part of a part's rows, as of its tiles, begins at a whole step of the
        group from the first item.  What does not would be done under masks at both ends, which in
        short rows takes longer than stores around the caches save."""
        step, dims = self.local_range[-1], len(self.local_range)
        if not self.in_vectors or part.kernel.kernel.ndim != dims:
            return False
        bounded = interior is not None and (interior.lows or interior.highs)
        return not bounded and part.items.extents[-1] % step == 0

    def _is_repeatable(self, body: Sequence[Stmt]) -> bool:
        """Whether ``body``, of a part, may be done twice for a work-item."""
        local = {a.name for a in self.arrays if a.space == "local"}
        return is_repeatable(body, local | self._alone())

    def _alone(self) -> set[str]:
        """The arrays in memory that share none with another view."""
        params = (p for p in self.params.params if isinstance(p, ArrayParam))
        return {p.name for p in params if p.restrict}

    def _assigned(self, wanted: str, value: Expr) -> Var:
        """A variable with ``value`` from here on."""
        name = self._variable(wanted, value.type)
        self.body.append(Assign(name, value))
        return Var(value.type, name)

    # -------------------------------------------------------------------------------- names
    def _variable(self, wanted: str, kind: ScalarType) -> str:
        name = self.names.fresh(wanted)
        self.variables.append((name, kind))
        return name

    def _array_param(self, param: ArrayParam, source: ParamSource) -> str:
        return self.params.of(replace(param, restrict=self.is_alone(source)), source)

    def _scalar(self, param: ScalarParam, source: ParamSource) -> Expr:
        """The value of a scalar parameter, whose argument may have a narrower type."""
        own = self.type_of(source) if param.type == INT64 else param.type
        value = Param(own, self.params.of(replace(param, type=own), source))
        return value if own == param.type else Cast(INT64, value)

    def _size(self, source: ParamSource) -> Expr:
        """The value of a size or an integer argument."""
        return self._scalar(ScalarParam("size", INT64), source)

    def _array(self, declared: ArrayDecl, part: TilePart) -> str:
        if declared.name not in part.tiles:
            name = self.names.fresh(declared.name)
            self.arrays.append(replace(declared, name=name))
            return name
        number, _ = part.tiles[declared.name]
        if number not in self.tiles:
            name = self.tiles[number] = self.names.fresh(declared.name)
            self.arrays.append(replace(declared, name=name))
        return self.tiles[number]


_ONE = Const(INT64, 1)


def _is_size(expr: Expr, sources: Mapping[str, ParamSource]) -> bool:
    """Whether it is made of extents and ranges of small sizes, and small constants."""
    match expr:
        case Extent():
            return True
        case Const(_, value):
            return abs(int(value)) <= SMALL
        case Param(_, name):
            return isinstance(sources[name], RangeSource | ExtentSource)
        case Binary(_, "add" | "sub", lhs, rhs):
            return _is_size(lhs, sources) and _is_size(rhs, sources)
    return False


def _group(dim: int) -> Expr:
    return ItemQuery("group_id", dim)


def _call(function: str, a: Expr, b: Expr) -> Expr:
    return Call(INT64, function, (a, b))
