"""A kernel in two parts, one for results that have a memory of their own (array expansion).

    step(a, t, c):  if i > 0: t[i] = a[i-1]       results:  if i > 0: value = a[i-1]
                    c[i] = a[i] * 2                         else:     value = t[i]
                                                            t'[i] = value
                                             →    rest:     if i > 0: t[i] = t'[i]
                                                            c[i] = a[i] * 2

The first computes the results alone; it may *complete* them, by what was there before in the
elements that it leaves out, also in those that are no work-item's.  The second does all else, and
copies the results to where they belong.

Feautrier: "Array expansion", 1988.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.index_sums import index_sum
from fusionq.ir.nodes import (
    ArrayParam,
    Assign,
    Block,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, rewrite_body, statements
from fusionq.passes.dead_stores import eliminate_dead_stores
from fusionq.passes.extended_range import (
    NotExtended,
    Writing,
    element_of_item,
    extended_range,
)
from fusionq.passes.propagate_indices import is_fixed, propagate_indices


class NotRenamed(Exception):
    """A kernel cannot be divided so; the text says why."""


@dataclass(frozen=True)
class ResultsAlone:
    """A kernel that computes results; ``before``: for each that it completes the parameter that has
    what was there before.  ``range_of``: where its work-items are the elements of an array, the
    parameter whose extents are the range that it had."""

    kernel: Kernel
    before: Mapping[str, str]
    range_of: str | None


def results_alone(
    kernel: Kernel,
    results: Collection[str],
    completed: Collection[str],
    extended: Writing | None = None,
) -> ResultsAlone:
    """``kernel`` with no stores but those to the arrays ``results``; the elements that it leaves
    out of those ``completed`` get what new parameters have there: those that are some work-item's,
    or, where it is ``extended``, all of that array.

    Raises NotRenamed where it is not known which element a work-item leaves out.
    """
    arrays = {p.name for p in kernel.params if isinstance(p, ArrayParam)}

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        dropped = isinstance(s, Store) and s.array in arrays and s.array not in results
        return () if dropped else (s,)

    made = eliminate_dead_stores(replace(kernel, body=rewrite_body(kernel.body, stmt=stmt)))
    range_of = None
    if extended is not None:
        try:
            made, range_of = extended_range(made, extended)
        except NotExtended as reason:
            raise NotRenamed(str(reason)) from None
    before: dict[str, str] = {}
    for array in completed:
        everywhere = extended is not None and extended.array == array
        made, before[array] = _completed(made, array, everywhere)
    return ResultsAlone(made, before, range_of)


def results_copied(
    kernel: Kernel, results: Collection[str], kept: Collection[str]
) -> tuple[Kernel, Mapping[str, str]]:
    """``kernel`` with stores to the arrays ``results`` only where they are ``kept``, of what new
    parameters have there, by result.

    Raises NotRenamed where it reads a result.
    """
    names = FreshNames([p.name for p in kernel.params])
    copies = {result: names.fresh(f"{result}_computed") for result in results if result in kept}
    kernel = propagate_indices(kernel)

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(s, Store) or s.array not in results:
            return (s,)
        if s.array not in kept:
            return ()
        indices = tuple(map(index_sum, s.indices))
        value = Load(s.value.type, copies[s.array], indices, s.span)
        return (replace(s, indices=indices, value=value),)

    body = _once(rewrite_body(kernel.body, stmt=stmt), set())
    params = tuple(_like(kernel, result, name) for result, name in copies.items())
    made = replace(kernel, params=(*kernel.params, *params), body=body)
    made = eliminate_dead_stores(made)
    if any(isinstance(e, Load) and e.array in results for e in expressions(made.body)):
        raise NotRenamed(f"{kernel.name} reads it, and writes other memory")
    return made, copies


def _like(kernel: Kernel, array: str, name: str) -> ArrayParam:
    param = kernel.param(array)
    assert isinstance(param, ArrayParam)
    return replace(param, name=name)


def _once(body: Sequence[Stmt], done: set[tuple[str, tuple[Expr, ...]]]) -> tuple[Stmt, ...]:
    """``body`` without copies of elements that are copied already, and without the conditions
    whose two sides have become one."""
    kept: list[Stmt] = []
    for s in body:
        match s:
            case Store(array, indices, Load(_, _, same)) if indices == same:
                if (array, indices) in done:
                    continue
                if all(map(is_fixed, indices)):
                    done.add((array, indices))
            case If(_, then, orelse) if then == orelse:
                kept += _once(then, done)
                continue
            case If(_, then, orelse):
                s = replace(s, then=_once(then, set(done)), orelse=_once(orelse, set(done)))
            case Block():
                s = replace(s, body=_once(s.body, done))
        kept.append(s)
    return tuple(kept)


def _completed(kernel: Kernel, array: str, everywhere: bool) -> tuple[Kernel, str]:
    """``kernel`` where each work-item writes its element of ``array``, if it has one, at its end:
    what a new parameter has there unless it computes another.  ``everywhere``: all have one."""
    kernel = propagate_indices(kernel)
    indices = element_of_item(kernel, array)
    if indices is None:
        raise NotRenamed("which element of it a work-item leaves out is not known")
    stores = [s for s in statements(kernel.body) if isinstance(s, Store) and s.array == array]
    loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
    params = [p.name for p in kernel.params]
    declared = [name for name, _ in kernel.variables] + [a.name for a in kernel.arrays]
    names = FreshNames([*params, *loops, *declared])
    before = names.fresh(f"{array}_before")
    result = Var(stores[0].value.type, names.fresh("result"))

    def expr(e: Expr) -> Expr:
        return result if isinstance(e, Load) and e.array == array else e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Store) and s.array == array:
            return (Assign(result.name, s.value, s.span),)
        return (s,)

    span = stores[0].span

    def inside(s: Stmt) -> Stmt:
        return s if everywhere else If(_inside(array, indices), (s,))

    kept = inside(Assign(result.name, Load(result.type, before, indices, span)))
    body = _with_otherwise(rewrite_body(kernel.body, expr, stmt), result.name, kept)
    made = replace(
        kernel,
        params=(*kernel.params, _like(kernel, array, before)),
        variables=(*kernel.variables, (result.name, result.type)),
        body=(*body, inside(Store(array, indices, result, span))),
    )
    return made, before


def _with_otherwise(body: Sequence[Stmt], result: str, otherwise: Stmt) -> tuple[Stmt, ...]:
    """``body`` with ``otherwise`` wherever it may assign nothing to ``result``."""
    for n, s in enumerate(body):
        if not any(isinstance(e, Assign) and e.name == result for e in statements((s,))):
            continue
        match s:
            case Assign():
                return tuple(body)
            case If():
                then = _with_otherwise(s.then, result, otherwise)
                orelse = _with_otherwise(s.orelse, result, otherwise)
                s = replace(s, then=then, orelse=orelse)
                return (*body[:n], s, *body[n + 1 :])
            case Block():
                s = replace(s, body=_with_otherwise(s.body, result, otherwise))
                return (*body[:n], s, *body[n + 1 :])
            case _:
                return (*body[:n], otherwise, *body[n:])
    return (*body, otherwise)


def _inside(array: str, indices: Sequence[Expr]) -> Expr:
    """Whether the array has the element ``indices``."""
    return conjunction(
        condition
        for dim, index in enumerate(indices)
        for condition in (
            Compare("ge", index, Const(INT64, 0)),
            Compare("lt", index, Extent(array, dim)),
        )
    )
