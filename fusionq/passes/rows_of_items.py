"""A kernel over one linear id that it divides by extents, as one over rows: delinearization.

    i = item.get_id(0) // x.shape[1]              i = item.get_id(0)
    j = item.get_id(0) % x.shape[1]         →     j = item.get_id(1)
    out[i, j] = x[i, j - 1]                       out[i, j] = x[i, j - 1]

Maslov: "Delinearization: an efficient way to break multiloop dependence equations", 1992.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fusionq.ir.nodes import Binary, Expr, Extent, ItemQuery, Kernel, Var
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, rewrite_body
from fusionq.passes.propagate_indices import propagate_indices

MOST_DIMS = 3
"""Dimensions of an index space."""

_ID: Expr = ItemQuery("global_id", 0)

Sizes = Mapping[Extent, int]
"""The value of each extent of a kernel's arrays."""


def rows_of_items(
    kernel: Kernel, sizes: Sizes, items: int
) -> tuple[Kernel, tuple[Extent, ...]] | None:
    """``kernel``, of one dimension, over a range of two or three, and the extents of that, whose
    product is ``items``, its number of work-items; None where it does not divide its id so."""
    made = propagate_indices(kernel)
    inner: list[Extent] = []
    left = items
    while len(inner) < MOST_DIMS - 1 and (extent := _divisor(made, sizes)) is not None:
        size = sizes[extent]
        if size < 1 or left % size:
            return None
        left //= size
        made = _divided(made, extent, sizes)
        inner.insert(0, extent)
        rows = next((e for e, n in sizes.items() if n == left), None)
        if rows is not None and (_divisor(made, sizes) is None or len(inner) == MOST_DIMS - 1):
            return _with_ranges(made, (rows, *inner)), (rows, *inner)
    return None


def _divisor(kernel: Kernel, sizes: Sizes) -> Extent | None:
    """The extent by which the kernel divides its first id, and of which it takes the remainder."""
    for e in expressions(kernel.body):
        match e:
            case Binary(_, "mod", lhs, Extent() as extent) if lhs == _ID and extent in sizes:
                return extent
    return None


def _divided(kernel: Kernel, extent: Extent, sizes: Sizes) -> Kernel:
    """``kernel`` with its first id in two: how often ``extent`` is in it, and the remainder."""
    size = sizes[extent]

    def is_it(e: Expr) -> bool:
        return isinstance(e, Extent) and sizes.get(e) == size

    quotient, remainder = Var(INT64, "quotient of the id"), Var(INT64, "remainder of the id")

    def parts(e: Expr) -> Expr:
        match e:
            case Binary(_, "mod", lhs, rhs) if lhs == _ID and is_it(rhs):
                return remainder
            case Binary(_, "floordiv", lhs, rhs) if lhs == _ID and is_it(rhs):
                return quotient
            case Binary(type, "floordiv", lhs, Binary(_, "mul", a, b)) if lhs == _ID:
                if is_it(a) or is_it(b):  # extents are not negative: no quotient differs
                    return Binary(type, "floordiv", quotient, b if is_it(a) else a)
        return e

    def rest(e: Expr) -> Expr:
        match e:
            case ItemQuery("global_id", 0):
                whole = Binary(INT64, "mul", quotient, extent)
                return Binary(INT64, "add", whole, remainder)
            case ItemQuery("global_id", dim):
                return replace(e, dim=dim + 1)
        return e

    def ids(e: Expr) -> Expr:
        if e == quotient:
            return _ID
        return ItemQuery("global_id", 1) if e == remainder else e

    body = kernel.body
    for each in (parts, rest, ids):
        body = rewrite_body(body, each)
    return replace(kernel, ndim=kernel.ndim + 1, body=body)


def _with_ranges(kernel: Kernel, extents: tuple[Extent, ...]) -> Kernel:
    """``kernel`` with the product of ``extents`` where it asks for its range."""
    whole: Expr = extents[0]
    for extent in extents[1:]:
        whole = Binary(INT64, "mul", whole, extent)

    def expr(e: Expr) -> Expr:
        return whole if isinstance(e, ItemQuery) and e.query == "global_range" else e

    return replace(kernel, body=rewrite_body(kernel.body, expr))
