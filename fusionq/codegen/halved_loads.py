"""Neighbouring pairs of elements of 64 bits, loaded as four halves.

    re, im = z[i, 0], z[i, 1]    →    the same, of two uint each
    a[2 * i] + a[2 * i + 1]

Compilers for CPUs that make vectors of work-items load such pairs of 32 bits as whole vectors, and
take these apart; those of 64 bits Intel's (runtime 2026.21.7) gathers, an element at a time, though
four halves side by side are whole vectors to it, too.  Products of complex128 take 2.4 ns so, and
0.9 in place of that (C 0.6; AMD EPYC, AVX-512).  Of more than two elements side by side, of one of
a pair, and in loops, halves are gathered as well, which takes longer than before: so both of a pair
have to be loaded by all work-items, between the same barriers, once and outside of loops and
conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from fusionq.codegen.scoping import Body
from fusionq.ir.conjunctions import conjuncts
from fusionq.ir.index_sums import index_terms
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Binary,
    Block,
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
from fusionq.ir.range_guard import limited_id
from fusionq.ir.types import INT64
from fusionq.ir.uniformity import is_uniform, uniform_variables
from fusionq.ir.walk import always_evaluated, rewrite, rewrite_body, statement_expressions

MOST_STATEMENTS = 64
"""Of a kernel, with those of all iterations of its short loops."""

MOST_ITERATIONS = 4
"""Of a loop that is written out."""

Place = tuple[str, tuple[Expr, ...]]
"""An array, and the indices of one of its elements."""


def with_halved_loads(kernel: Kernel, body: Body) -> Kernel:
    """``kernel`` with ``body``, in which such pairs are loaded so."""
    wide = {
        p.name: p
        for p in kernel.params
        if isinstance(p, ArrayParam) and p.contiguous and p.dtype.bits == 64 and p.ndim
    }
    found = _Pairs(wide, kernel.ndim - 1, uniform_variables(body, kernel.ndim - 1))
    made = found.rewritten(tuple(body)) if wide else tuple(body)
    return replace(kernel, body=made)


def _unrolled(stmt: Stmt) -> Iterator[Stmt]:
    """The iterations of a short loop of constant length in turn; others as they are."""
    match stmt:
        case For(var, Const(_, start), Const(_, stop), Const(_, step), body) if step:
            values = range(int(start), int(stop), int(step))
            plain = all(isinstance(s, Assign | Store | Block | For) for s in body)
            if len(values) <= MOST_ITERATIONS and plain and stmt.binds is None:
                for value in values:
                    for each in rewrite_body(body, _with(var, value)):
                        yield from _unrolled(each)
                return
    yield stmt


def _is_straight(stmt: Stmt) -> bool:
    """Whether ``stmt``, written out, is done by all work-items without a loop."""
    return _are_straight(_unrolled(stmt))


def _are_straight(stmts: Iterable[Stmt]) -> bool:
    return all(isinstance(s, Assign | Store | Block) for s in stmts)


def _is_of_group(cond: Expr) -> bool:
    """Whether ``cond`` is the same for all of a work-group: of its ids, the first of its work-item
    among them, and of what all have."""

    def first(e: Expr) -> Expr:
        match e:
            case Binary(_, "sub", ItemQuery("global_id", dim), ItemQuery("local_id", other)):
                return ItemQuery("group_id", dim) if dim == other else e
        return e

    return is_uniform(rewrite(cond, first), frozenset())


def _with(variable: str, value: int) -> Callable[[Expr], Expr]:
    """What puts in the ``value`` of a ``variable``."""
    name, known = Var(INT64, variable), Const(INT64, value)
    return lambda e: known if e == name else e


def _is_bound(stmt: If) -> bool:
    """Whether a compiler makes a bound of its loop over work-items of the condition of ``stmt``."""
    return not stmt.orelse and all(limited_id(c) is not None for c in conjuncts(stmt.cond))


class _Pairs:
    def __init__(self, arrays: dict[str, ArrayParam], row: int, uniform: frozenset[str]) -> None:
        self._arrays = arrays
        self._row = row
        self._uniform = uniform

    def rewritten(self, body: Body) -> Body:
        """``body``, or what one condition around all of it holds, or conditions that are the same
        for a work-group, as they stand beside barriers."""
        made: list[Stmt] = []
        run: list[Stmt] = []
        for place, stmt in enumerate(body):
            if _is_straight(stmt):
                run.append(stmt)
                continue
            made += self._run(run)
            run.clear()
            if isinstance(stmt, If):
                around = len(made) == place == len(body) - 1 and _is_bound(stmt)
                if (around and _are_straight(made)) or _is_of_group(stmt.cond):
                    then, orelse = self.rewritten(stmt.then), self.rewritten(stmt.orelse)
                    stmt = replace(stmt, then=then, orelse=orelse)
            made.append(stmt)
        made += self._run(run)
        return tuple(made)

    def _run(self, run: Sequence[Stmt]) -> Sequence[Stmt]:
        """Statements in a row, with their pairs."""
        straight = [each for stmt in run for each in _unrolled(stmt)]
        places = self._paired(straight) if len(straight) <= MOST_STATEMENTS else set()
        if not places:
            return tuple(run)

        def halved(e: Expr) -> Expr:
            if isinstance(e, Load) and (e.array, e.indices) in places:
                return replace(e, halved=True)
            return e

        return rewrite_body(straight, halved)

    def _paired(self, straight: Sequence[Stmt]) -> set[Place]:
        """The places of elements that are loaded in pairs."""
        known: dict[tuple[str, tuple[Expr, ...], tuple[Expr, ...]], dict[int, Place]] = {}
        for array, indices in dict.fromkeys(self._loads(straight)):
            found = self._element(self._arrays[array], indices)
            if found is not None:
                outer, terms, constant = found
                known.setdefault((array, outer, terms), {})[constant] = array, indices
        pairs: set[Place] = set()
        for elements in known.values():
            constants = sorted(elements)
            if len(constants) == 2 and constants[1] == constants[0] + 1:
                pairs |= set(elements.values())
        return pairs

    def _loads(self, straight: Sequence[Stmt]) -> Iterator[Place]:
        for s in straight:
            for whole in statement_expressions(s):
                for e in always_evaluated(whole):
                    if isinstance(e, Load) and e.array in self._arrays:
                        yield e.array, e.indices

    def _element(
        self, array: ArrayParam, indices: tuple[Expr, ...]
    ) -> tuple[tuple[Expr, ...], tuple[Expr, ...], int] | None:
        """What is beside a constant in the indices of an element, of which neighbouring work-items
        have those two further on; None where it is another one."""
        *outer, last = indices
        if array.extent(array.ndim - 1) == 2 and outer:
            if not isinstance(last, Const):
                return None
            *first, row = outer
            found = self._terms(row, 1)
            if found is None or not self._are_uniform(first):
                return None
            return (*first, Const(INT64, found[1])), found[0], int(last.value)
        found = self._terms(last, 2)
        if found is None or not self._are_uniform(outer):
            return None
        return tuple(outer), *found

    def _terms(self, index: Expr, factor: int) -> tuple[tuple[Expr, ...], int] | None:
        """The terms and the constant of an index that rises by ``factor`` from one work-item to the
        next."""
        terms, constant = index_terms(index)
        rising = [t for t, _ in terms if not self._are_uniform((t,))]
        id = ItemQuery("global_id", self._row)
        if rising != [id] or dict(terms)[id] != factor:
            return None
        return tuple(e for t, f in terms for e in (t, Const(INT64, f))), constant

    def _are_uniform(self, exprs: Sequence[Expr]) -> bool:
        return all(is_uniform(e, self._uniform, self._row) for e in exprs)
