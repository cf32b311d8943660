"""Unroll and jam across a range's outer dimension: a work-item does several neighbours together.

    for k in range(n):                      for k in range(n):
        s = s + a[i, k] * b[k, j]     →         s = s + a[4 * i, k] * b[k, j]
    c[i, j] = s                                 s_1 = s_1 + a[4 * i + 1, k] * b[k, j]
                                                …
                                            c[4 * i, j] = s; c[4 * i + 1, j] = s_1; …

Elements that neighbours have in common are loaded once for all of them, from registers for the
others.  Each does its operations in its own order, so that the bits are the same.

Legal as work-items of a range are in no order: barriers, group functions, local memory and atomic
operations are left alone.  Loops and conditions that are the same for the neighbours are shared;
conditions on the dimension's own id that hold for all of them are asked once, ahead; what is left
is done for one neighbour after the other.  Where there are not enough neighbours, or such a
condition does not hold for all, the work-item does them in a loop, as they were.

Callahan, Carr, Kennedy: "Improving register allocation for subscripted variables", 1990.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.codegen.interior import nodes_of
from fusionq.codegen.own_rows import is_plain, own_rows
from fusionq.codegen.scoping import Body, flatten_blocks
from fusionq.ir.conjunctions import conjunction, conjuncts
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    Assign,
    Binary,
    Block,
    Call,
    Compare,
    Const,
    Expr,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.range_guard import whole_range
from fusionq.ir.types import INT64, ScalarType
from fusionq.ir.uniformity import is_uniform, uniform_variables
from fusionq.ir.walk import (
    assigned_variable,
    expressions,
    rewrite,
    rewrite_body,
    statements,
    subexpressions,
)

MOST_NODES = 2_000
"""Statements and expressions of such a kernel; compilers take long for more."""


@dataclass(frozen=True)
class JammedItems:
    """The ``kernel`` of which a work-item does ``items`` neighbours of dimension ``dim``; of these
    ``together`` is what it does for all of them at once, and ``loops`` those that they share."""

    kernel: Kernel
    together: Kernel
    loops: tuple[For, ...]
    dim: int
    items: int


def jammed_items(kernel: Kernel, dim: int, most_bytes: int) -> JammedItems | None:
    """``kernel``, over a range of its own dimensions without barriers, for as many neighbours in
    ``dim``, up to four, as keep at most ``most_bytes`` in their sums; None where they may not be
    done together, or have nothing in common that differs for work-items of the last dimension."""
    last = kernel.ndim - 1
    assert dim < last
    if not _has_loop(kernel.body) or not _is_of_items(kernel):
        return None
    whole = whole_range(flatten_blocks(kernel.body), kernel.ndim)
    if whole is None:
        return None
    inside, limits = rewrite_body(whole[0], stmt=_through_caches), whole[1]
    shared, asked = _asked_ahead(inside, dim)
    loops = _Loops(kernel, shared, dim)
    if not loops.worth:
        return None
    kept = max(map(loops.sums, loops.worth))
    items = 4
    while items > 1 and items * kept > most_bytes:
        items //= 2
    nodes = nodes_of(inside) + sum(1 for _ in statements(inside))
    if items == 1 or (items + 1) * nodes > MOST_NODES:
        return None
    return _made(kernel, inside, limits, loops, asked, items)


def items_of_own_rows(kernel: Kernel) -> JammedItems | None:
    """``kernel``, over a range of its own dimensions, each of whose work-items goes along rows of
    its own: several do so together, or one (``items``) where each has as many iterations as it
    says; None where vectors of work-items may be faster, of the length that a compiler chooses."""
    last = kernel.ndim - 1
    if not _has_loop(kernel.body) or not _is_of_items(kernel):
        return None
    whole = whole_range(flatten_blocks(kernel.body), kernel.ndim)
    if whole is None:
        return None
    inside, limits = rewrite_body(whole[0], stmt=_through_caches), whole[1]
    shared, asked = _asked_ahead(inside, last)
    rows = own_rows(kernel, shared, operations=CODE_LIMITS.own_row_operations)
    if rows is None or (rows.jammed is not None and any(map(_waits_for_memory, rows.loops))):
        return None
    if rows.jammed is None or rows.jammed.items == 1:
        alone = replace(kernel, one_by_one=True)
        return JammedItems(alone, alone, rows.loops, last, 1)
    loops = _Loops(kernel, shared, last)
    made = _made(kernel, inside, limits, loops, asked, rows.jammed.items)
    return replace(made, kernel=replace(made.kernel, one_by_one=True), loops=rows.loops)


def _waits_for_memory(loop: For) -> bool:
    """Whether iterations of ``loop`` load from its row what others before may have stored."""
    stored = {(s.array, s.indices) for s in statements(loop.body) if isinstance(s, Store)}
    loaded = {(e.array, e.indices) for e in expressions(loop.body) if isinstance(e, Load)}
    rows = {(array, indices[:-1]) for array, indices in stored}
    return any((array, indices[:-1]) in rows for array, indices in loaded - stored)


def _through_caches(s: Stmt) -> Body:
    """``s``, which stores nothing around the caches: that is for whole rows of vectors."""
    return (replace(s, nontemporal=False),) if isinstance(s, Store) and s.nontemporal else (s,)


def _is_of_items(kernel: Kernel) -> bool:
    """Whether all that a work-item does is to compute, load and store, whoever is beside it."""
    if kernel.sub_group_size is not None or kernel.row_lanes is not None:
        return False
    if any(array.space != "constant" for array in kernel.arrays):
        return False
    queries = {e.query for e in expressions(kernel.body) if isinstance(e, ItemQuery)}
    return is_plain(kernel.body) and queries <= {"global_id", "global_range"}


def _asked_ahead(body: Body, dim: int) -> tuple[Body, list[Expr]]:
    """``body`` without the parts of conditions around loops that the id of ``dim`` and arguments
    decide, where the others are the same for neighbours; and these parts."""
    asked: list[Expr] = []
    alike: frozenset[str] = frozenset()

    def stmt(s: Stmt) -> Body:
        if not isinstance(s, If) or s.orelse or not _has_loop(s.then):
            return (s,)
        parts = conjuncts(s.cond)
        shared = [part for part in parts if is_uniform(part, alike, dim)]
        own = [part for part in parts if part not in shared]
        if not own or not all(_is_of_id(part, dim) for part in own):
            return (s,)
        asked.extend(own)
        return (replace(s, cond=conjunction(shared)),) if shared else s.then

    while True:
        alike = uniform_variables(body, dim)
        made = rewrite_body(body, stmt=stmt)
        if made == body:
            return body, asked
        body = made


def _has_loop(body: Body) -> bool:
    return any(isinstance(s, For) for s in statements(body))


def _is_of_id(expr: Expr, dim: int) -> bool:
    """Whether the id of ``dim`` and arguments decide it."""
    mine = ItemQuery("global_id", dim)
    return all(
        not isinstance(e, (Var, Load)) and (not isinstance(e, ItemQuery) or e == mine)
        for e in subexpressions(expr)
    )


class _Loops:
    """What the neighbours of dimension ``dim`` share in the statements ``body``."""

    def __init__(self, kernel: Kernel, body: Body, dim: int) -> None:
        self.dim = dim
        self.body = body
        self.alike = uniform_variables(body, dim)
        """The variables that all neighbours have the same value of."""
        self._types = dict(kernel.variables)
        self._last = kernel.ndim - 1
        self._of_lanes = uniform_variables(body, self._last)
        self.worth = tuple(self._worth(body))
        """The innermost loops of neighbours in which they read the same elements, other ones in
        each vector of work-items."""

    def is_alike(self, expr: Expr) -> bool:
        """Whether neighbours have the same value of it."""
        return is_uniform(expr, self.alike, self.dim)

    def shares(self, loop: For) -> bool:
        """Whether neighbours do the iterations of ``loop`` together."""
        return all(map(self.is_alike, (loop.start, loop.stop, loop.step)))

    def _worth(self, body: Body) -> Iterator[For]:
        for s in body:
            match s:
                case For() if self.shares(s):
                    if _has_loop(s.body):
                        yield from self._worth(s.body)
                    elif self._reads_alike(s):
                        yield s
                case If(cond) if self.is_alike(cond):
                    yield from self._worth(s.then)
                    yield from self._worth(s.orelse)

    def _reads_alike(self, loop: For) -> bool:
        """Whether each iteration reads more elements that neighbours have in common than others, of
        those that differ within a vector of work-items."""
        changing = {loop.var, *(assigned_variable(s) for s in statements(loop.body))}
        alike = others = 0
        for e in set(expressions(loop.body)):
            names = {v.name for v in subexpressions(e) if isinstance(v, Var)}
            if isinstance(e, Load) and not (names.isdisjoint(changing) or self._is_of_lanes(e)):
                if all(map(self.is_alike, e.indices)):
                    alike += 1
                else:
                    others += 1
        return alike > others

    def _is_of_lanes(self, load: Load) -> bool:
        return all(is_uniform(i, self._of_lanes, self._last) for i in load.indices)

    def sums(self, loop: For) -> int:
        """Bytes of the variables that live from one iteration to the next."""
        nbytes = 0
        own = {s.name for s in statements(loop.body) if isinstance(s, Assign)} - self.alike
        for name in own:
            inside = sum(_reads(e, name) for e in expressions(loop.body))
            outside = sum(_reads(e, name) for e in expressions(self.body)) > inside
            itself = any(
                isinstance(s, Assign) and s.name == name and any(
                    _reads(e, name) for e in subexpressions(s.value)
                )
                for s in statements(loop.body)
            )  # fmt: skip
            if outside or itself:
                nbytes += self._types[name].nbytes
        return nbytes


def _reads(expr: Expr, name: str) -> bool:
    return isinstance(expr, Var) and expr.name == name


def _made(
    kernel: Kernel,
    inside: Body,
    limits: dict[int, Expr],
    loops: _Loops,
    asked: Sequence[Expr],
    items: int,
) -> JammedItems:
    """``kernel``, whose work-items do ``inside`` below ``limits``, for ``items`` neighbours, all of
    which share the body of ``loops`` where what is ``asked`` holds for them."""
    dim, id = loops.dim, ItemQuery("global_id", loops.dim)
    declared = [*(p.name for p in kernel.params), *(a.name for a in kernel.arrays)]
    declared += [s.var for s in statements(inside) if isinstance(s, For)]
    names = FreshNames([*declared, *(name for name, _ in kernel.variables)])
    first, one = names.fresh(f"first_{dim}"), names.fresh(f"item_{dim}")
    end = Binary(INT64, "add", Var(INT64, first), Const(INT64, items))
    jam = _Jam(kernel, loops, Var(INT64, first), items, names)
    bounds, together = _bounded(jam.body(loops.body))
    limit, step = limits[dim], Const(INT64, 1)
    whole = [Compare("le", end, limit), *(jam.of(e, k) for e in asked for k in range(items))]
    last = Call(INT64, "minimum", (end, limit))
    alone = rewrite_body(inside, lambda e: Var(INT64, one) if e == id else e)
    rounded = Binary(INT64, "add", limit, Const(INT64, items - 1))
    count = Binary(INT64, "floordiv", rounded, Const(INT64, items))
    conds = [
        Compare("lt", ItemQuery("global_id", d), count if d == dim else limits[d])
        for d in range(kernel.ndim)
    ]
    of_first = Assign(first, Binary(INT64, "mul", id, Const(INT64, items)))
    one_by_one = For(one, Var(INT64, first), last, step, alone)
    body: Body = (of_first, If(conjunction(whole), together, (one_by_one,)))
    body = (If(conjunction(bounds), body),) if bounds else body
    variables = (*kernel.variables, (first, INT64), *jam.variables)
    made = replace(kernel, variables=variables, body=(If(conjunction(conds), body),))
    inner = replace(made, body=(of_first, *together))
    return JammedItems(made, inner, loops.worth, dim, items)


def _bounded(body: Body) -> tuple[list[Expr], Body]:
    """Conditions on ids and arguments around all of ``body``, and the rest."""
    labels = tuple(s for s in body if isinstance(s, Block))
    rest = [s for s in body if not isinstance(s, Block)]
    if len(rest) != 1 or not isinstance(rest[0], If) or rest[0].orelse:
        return [], body
    own = (Var, Load)
    parts = conjuncts(rest[0].cond)
    bounds = [p for p in parts if not any(isinstance(e, own) for e in subexpressions(p))]
    others = [p for p in parts if p not in bounds]
    if others:
        return bounds, (*labels, replace(rest[0], cond=conjunction(others)))
    more, inner = _bounded(rest[0].then)
    return [*bounds, *more], (*labels, *inner)


class _Jam:
    """Statements for ``items`` neighbours at once, of which the ``first`` has that id, with
    ``variables`` beside the kernel's."""

    def __init__(
        self, kernel: Kernel, loops: _Loops, first: Var, items: int, names: FreshNames
    ) -> None:
        self._loops = loops
        self._id = ItemQuery("global_id", loops.dim)
        self._ids: list[Expr] = [first]
        self._ids += [Binary(INT64, "add", first, Const(INT64, k)) for k in range(1, items)]
        own = [(name, type) for name, type in kernel.variables if name not in loops.alike]
        self._names: list[dict[str, str]] = [{}]
        self.variables: list[tuple[str, ScalarType]] = []
        for _ in range(1, items):
            fresh = {name: names.fresh(name) for name, _ in own}
            self._names.append(fresh)
            self.variables += [(fresh[name], type) for name, type in own]

    def body(self, body: Iterable[Stmt]) -> Body:
        """``body`` for all neighbours."""
        return tuple(made for s in body for made in self._stmt(s))

    def of(self, expr: Expr, k: int) -> Expr:
        """``expr`` for the ``k``-th neighbour."""
        return rewrite(expr, lambda e: self._there(e, k))

    def _stmt(self, s: Stmt) -> Sequence[Stmt]:
        match s:
            case Block():
                return (s,)
            case Assign(name) if name in self._loops.alike:
                return (s,)
            case For() if self._loops.shares(s):
                return (replace(s, body=self.body(s.body)),)
            case If(cond) if self._loops.is_alike(cond):
                return (replace(s, then=self.body(s.then), orelse=self.body(s.orelse)),)
        return [self._copy(s, k) for k in range(len(self._ids))]

    def _there(self, e: Expr, k: int) -> Expr:
        if isinstance(e, Var):
            return replace(e, name=self._names[k].get(e.name, e.name))
        return self._ids[k] if e == self._id else e

    def _copy(self, s: Stmt, k: int) -> Stmt:
        """``s`` for the ``k``-th neighbour alone."""
        names = self._names[k]

        def renamed(t: Stmt) -> Body:
            return (replace(t, name=names.get(t.name, t.name)),) if isinstance(t, Assign) else (t,)

        (made,) = rewrite_body((s,), lambda e: self._there(e, k), renamed)
        return made
