"""A kernel over a plain range whose work-groups, the lanes of a vector each, go along rows: inside
of what conditions bound in a loop of its own, without these (index-set splitting).

    if i < n and j < m:                     for i in a group's rows:
        if 0 < j < m - 1:                       for j in its items from 1 to m - 2:
            b[i, j] = a[i, j - 1]     →             b[i, j] = a[i, j - 1]
        else:                                   for j in its items before and behind:
            b[i, j] = 0                             if 0 < j < m - 1: … else: …

Where rows are cut (``cuts_rows``), that is done for each segment in which quotients of ids are the
same (``row_segments``).

In the loop of a compiler over the work-items of a group such conditions are masks, and clamped
indices gathered elements.  Conditions that are the same for a row stay, as they are no masks.  The
rows and items of a range are dealt to the groups evenly, however many there are: launches of all
sizes have one kernel.

A work-item's place is asked for as that in its sub-group, which is the whole work-group: of its
local id Intel's compiler for CPUs (runtime 2026.21.7) does not see in loops that neighbours are one
apart, and gathers what they load at strides of two or more, ``a[2 * j] + a[2 * j + 1]``.

Where loops read rows of memory, several vectors of a row are done together (``jammed_loops``): the
compiler's loop over work-items is outside of the kernel's, in which each iteration would read a
vector of another row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fusionq.base.frozen import dataclass
from fusionq.codegen.group_conditions import FENCE, skipped_outside
from fusionq.codegen.interior import MOST_NODES, Interior, interior_of, nodes_of, whole_rows
from fusionq.codegen.jammed_loops import JammedLoops, jammed_loops
from fusionq.codegen.row_loops import InnerRow, RowLoops, SeveralSteps
from fusionq.codegen.row_segments import RowSegments, row_segments
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Call,
    Const,
    Expr,
    For,
    ItemQuery,
    Kernel,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.range_guard import whole_range
from fusionq.ir.repeatable import is_repeatable
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.walk import OWN_STATEMENTS, expressions, rewrite, rewrite_body, statements

MOST_JAMMED = 1_000
"""Expressions of what several vectors of a row do together."""

_ONE = Const(INT64, 1)


@dataclass(frozen=True)
class Rows:
    """Of a kernel that does ``body`` below ``extents`` in each dimension; ``interior``: the part of
    a row, or of each of its ``segments`` if it is cut, in which conditions are decided, where some
    bound one."""

    extents: tuple[Expr, ...]
    body: Body
    interior: Interior | None
    segments: RowSegments | None = None

    @property
    def inside(self) -> Body:
        """What most work-items of a row do."""
        if self.interior is not None:
            return self.interior.body
        return self.body if self.segments is None else self.segments.body

    @property
    def of_row(self) -> tuple[str, ...]:
        """The variables of ``inside`` that are the same for all of a segment."""
        return () if self.segments is None else self.segments.variables


def rows_of(kernel: Kernel) -> Rows | None:
    """The rows of ``kernel``; None where work-items may not be done along rows."""
    body = flatten_blocks(kernel.body)
    whole = whole_range(body, kernel.ndim)
    if whole is None or nodes_of(body) > MOST_NODES or not _is_of_items(kernel):
        return None
    inside, limits = whole
    extents = tuple(limits[d] for d in range(kernel.ndim))
    segments = row_segments(kernel, inside) if kernel.cuts_rows else None
    if segments is not None and segments.divisors:
        return Rows(extents, inside, whole_rows(segments.body, segments.interior), segments)
    interior = interior_of(replace(kernel, body=inside), keeps_rows=True)
    return Rows(extents, inside, interior)


def jammed_rows(kernel: Kernel, rows: Rows, lanes: int) -> JammedLoops | None:
    """How several vectors of ``lanes`` are done together inside of the ``rows`` of ``kernel``; None
    where they are not."""
    return jammed_loops(kernel, rows.inside, lanes, rows.of_row, most_nodes=MOST_JAMMED)


def along_rows(kernel: Kernel) -> Kernel:
    """``kernel`` for work-groups of ``row_lanes`` where it has such, as those of one that goes
    along rows already."""
    lanes = kernel.row_lanes
    if lanes is None or kernel.sub_group_size == lanes:
        return kernel
    rows = rows_of(kernel)
    assert rows is not None, "only kernels that may go along rows are marked"
    names: list[tuple[str, ScalarType]] = []
    loops = (s.var for s in statements(kernel.body) if isinstance(s, For))
    declared = (p.name for p in (*kernel.params, *kernel.arrays))
    taken = FreshNames([*loops, *declared, *(name for name, _ in kernel.variables)])
    several = jammed_rows(kernel, rows, lanes)
    if several is not None:
        several = _named(several, taken)
        kernel = several.added_to(kernel)

    def fresh(wanted: str) -> str:
        return taken.fresh(f"row_{wanted}")

    def variable(wanted: str, type: ScalarType) -> str:
        names.append((fresh(wanted), type))
        return names[-1][0]

    last = kernel.ndim - 1
    before: list[Stmt] = []

    def assigned(wanted: str, value: Expr) -> Var:
        made = Var(INT64, variable(wanted, INT64))
        before.append(Assign(made.name, value))
        return made

    firsts: list[Var] = []
    lasts: list[Var] = []
    for d, extent in enumerate(rows.extents):
        share = assigned("share", _share(extent, d, lanes if d == last else 1))
        first = assigned("first", Binary(INT64, "mul", ItemQuery("group_id", d), share))
        end: Expr = Call(INT64, "minimum", (Binary(INT64, "add", first, share), extent))
        firsts.append(first)
        lasts.append(assigned("last", Binary(INT64, "sub", end, _ONE)))
    items = [Var(INT64, fresh("item")) for _ in range(last)]
    items.append(Var(INT64, variable("item", INT64)))

    of_segment = {name: Var(INT64, variable(name.replace(" ", "_"), INT64)) for name in rows.of_row}

    def expr(e: Expr) -> Expr:
        if isinstance(e, Var):
            return of_segment.get(e.name, e)
        return items[e.dim] if isinstance(e, ItemQuery) and e.query == "global_id" else e

    def put(body: Sequence[Stmt]) -> Body:
        return rewrite_body(body, expr)

    def value(e: Expr) -> Expr:
        return rewrite(e, expr)

    of_row = RowLoops((1,) * last + (lanes,), fresh, variable)
    together = None if several is None else SeveralSteps(several.items, put(several.body))
    alone = {p.name for p in kernel.params if isinstance(p, ArrayParam) and p.restrict}

    def part(body: Body, first: Expr, end: Expr, behind: Expr) -> tuple[Stmt, ...]:
        """What does ``body`` from the ``first`` item to the ``end``, the one before ``behind``."""
        inside = rows.interior
        if inside is None:
            steps: tuple[Stmt, ...] = ()
            if together is not None:
                first, steps = of_row.several(items[last], first, behind, together)
            return (*steps, of_row.strided(items[last], first, behind, put(body), True, last + 1))
        inner = InnerRow(
            *inside.bounds(value),
            put(inside.body),
            together=together,
            limits=inside.limits.mapped(value),
        )
        return of_row.parted(
            items[last], (first, end), inner, put(body), is_repeatable(body, alone),
            put(skipped_outside(body, (FENCE,))),
        )  # fmt: skip

    ends = firsts[last], lasts[last]
    row: tuple[Stmt, ...]
    if rows.segments is not None:
        cut = rows.segments
        row = of_row.in_segments(
            of_segment[cut.first],
            ends,
            [Assign(of_segment[name].name, value(e)) for name, e in cut.values],
            [value(e) for e in cut.lengths],
            partial(part, cut.body),
        )
    elif rows.interior is not None:
        row = part(rows.body, *ends, Binary(INT64, "add", lasts[last], _ONE))
    else:
        behind = assigned("behind", Binary(INT64, "add", lasts[last], _ONE))
        row = part(rows.body, *ends, behind)
    for d in reversed(range(last)):
        end = Binary(INT64, "add", lasts[d], _ONE)
        row = (For(items[d].name, firsts[d], end, _ONE, row),)
    lane = assigned("lane", Call(INT64, "sub_group_local_id", ()))
    row = rewrite_body(row, lambda e: lane if e == ItemQuery("local_id", last) else e)
    return replace(
        kernel,
        variables=(*kernel.variables, *names),
        body=(*before, *row),
        sub_group_size=lanes,
    )


def _named(several: JammedLoops, taken: FreshNames) -> JammedLoops:
    """``several`` with names for its variables that a kernel may have."""
    new = {name: taken.fresh(name.replace(" ", "_")) for name, _ in several.variables}

    def expr(e: Expr) -> Expr:
        return replace(e, name=new[e.name]) if isinstance(e, Var) and e.name in new else e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Assign) and s.name in new:
            s = replace(s, name=new[s.name])
        return (s,)

    body = rewrite_body(several.body, expr, stmt)
    variables = tuple((new[name], type) for name, type in several.variables)
    return JammedLoops(several.items, body, variables)


def _share(extent: Expr, dim: int, step: int) -> Expr:
    """How many of an ``extent`` a work-group does, a multiple of ``step``."""
    groups: Expr = ItemQuery("group_range", dim)
    if step > 1:
        groups = Binary(INT64, "mul", groups, Const(INT64, step))
    rounded = Binary(INT64, "add", extent, Binary(INT64, "sub", groups, _ONE))
    share = Binary(INT64, "floordiv", rounded, groups)
    return Binary(INT64, "mul", share, Const(INT64, step)) if step > 1 else share


def _is_of_items(kernel: Kernel) -> bool:
    """Whether it makes no difference to work-items which of them are a group, or run at once."""
    if kernel.sub_group_size is not None or any(a.space == "local" for a in kernel.arrays):
        return False
    for s in statements(kernel.body):
        # Of non-temporal stores in such loops Intel's compiler (runtime 2026.21.7) dies.
        if not isinstance(s, OWN_STATEMENTS) or (isinstance(s, Store) and s.nontemporal):
            return False
    queries = (e.query for e in expressions(kernel.body) if isinstance(e, ItemQuery))
    return all(query == "global_id" for query in queries)
