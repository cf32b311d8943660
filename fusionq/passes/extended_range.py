"""A kernel over all elements of an array of which it writes some: change of basis, larger domain.

    step(a, t):  # for i in range(n - 2)         step(a, t):  # for e in range(len(t))
        t[i + 1] = a[i] + a[i + 2]          →        if 0 <= e - 1 < n - 2:
                                                         t[e] = a[e - 1] + a[e + 1]

The new work-items are the array's elements: each does what the work-item did that writes it, and
nothing where none does.  So what the kernel leaves out has work-items too, which may give it what
was there before (``passes/renamed_results.py``).
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.index_sums import index_sum
from fusionq.ir.nodes import (
    ArrayParam,
    Compare,
    Const,
    Expr,
    Extent,
    For,
    If,
    ItemQuery,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite, rewrite_body, statements
from fusionq.passes.inline_producer import Indices, index_of
from fusionq.passes.propagate_indices import is_fixed, propagate_indices

MOST_DIMS = 3
"""Dimensions of an index space."""


class NotExtended(Exception):
    """A kernel cannot be extended so; the text says why."""


@dataclass(frozen=True)
class Writing:
    """Of ``array``: ``items``, the ids of the work-item that writes an element, in terms of
    ``index_of(d)``, the element's index in dimension ``d``."""

    array: str
    items: Indices


def extended_range(kernel: Kernel, writing: Writing) -> tuple[Kernel, str]:
    """``kernel`` over the elements of the array of ``writing``, and the name of a new parameter: an
    array of which nothing is read, whose extents are those of the range that the kernel had.

    Raises NotExtended where the array has too many dimensions, or it is not known which element a
    work-item writes.
    """
    kernel = propagate_indices(kernel)
    array = kernel.param(writing.array)
    assert isinstance(array, ArrayParam)
    if array.ndim > MOST_DIMS:
        raise NotExtended(f"it has {array.ndim} dimensions, and ranges have {MOST_DIMS} at most")
    written = element_of_item(kernel, array.name)
    if written is None:
        raise NotExtended("which element of it a work-item leaves out is not known")
    loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
    declared = [name for name, _ in kernel.variables] + [a.name for a in kernel.arrays]
    names = FreshNames([*(p.name for p in kernel.params), *loops, *declared])
    size = ArrayParam(names.fresh(f"{array.name}_range"), array.dtype, kernel.ndim)
    own: Indices = tuple(ItemQuery("global_id", d) for d in range(array.ndim))
    place = {index_of(d): e for d, e in enumerate(own)}
    items = tuple(
        index_sum(rewrite(i, lambda e: place.get(e, e) if isinstance(e, Var) else e))
        for i in writing.items
    )

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("global_id", dim):
                return items[dim]
            case ItemQuery("global_range", dim):
                return Extent(size.name, dim)
            case Load():
                return replace(e, indices=tuple(map(index_sum, e.indices)))
            case Compare():
                return replace(e, lhs=index_sum(e.lhs), rhs=index_sum(e.rhs))
        return e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Store):
            here = s.array == array.name
            return (replace(s, indices=own if here else tuple(map(index_sum, s.indices))),)
        return (s,)

    again = [index_sum(rewrite(index, expr)) for index in written]
    guard = conjunction(
        (
            *(Compare("ge", i, Const(INT64, 0)) for i in items if not isinstance(i, ItemQuery)),
            *(Compare("lt", i, Extent(size.name, d)) for d, i in enumerate(items)),
            *(Compare("eq", a, b) for a, b in zip(again, own, strict=True) if a != b),
        )
    )
    made = replace(
        kernel,
        ndim=array.ndim,
        params=(*kernel.params, size),
        body=(If(guard, rewrite_body(kernel.body, expr, stmt)),),
    )
    return made, size.name


def element_of_item(kernel: Kernel, array: str) -> Indices | None:
    """The indices of the one element of ``array`` that each work-item of ``kernel`` writes, if it
    writes any, as sums; None where they are not known.  ``kernel``: as ``propagate_indices`` makes
    it."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Store) and s.array == array]
    elements = {tuple(map(index_sum, s.indices)) for s in stores}
    if len(elements) != 1 or not all(map(is_fixed, indices := next(iter(elements)))):
        return None
    return indices
