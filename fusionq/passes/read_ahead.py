"""Which elements a row of work-items leads to further rows of: software prefetching.

    for i in rows:                          for i in rows:
        for j in row:                           for j in row:
            t[j] = a[i-1][j] + a[i+1][j]   →        # read ahead: a[min(i+2, last)+1][j]
                                                    t[j] = a[i-1][j] + a[i+1][j]

Rows of a tile are short, and between those that come from memory stand others that are computed of
local memory: hardware that reads ahead along addresses begins anew with each, and reads nothing
meanwhile.

Mowry, Lam, Gupta: "Design and evaluation of a compiler algorithm for prefetching", 1992.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.ir.index_sums import index_sum
from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Const,
    Expr,
    ItemQuery,
    Kernel,
    Load,
    Prefetch,
    Stmt,
    Store,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, statements, subexpressions
from fusionq.passes.propagate_indices import is_fixed, propagate_indices


@dataclass(frozen=True, slots=True)
class RowsAhead:
    """``rows``: an element of each row that is read ahead, in terms of a work-item's ids, with the
    bytes of an element.  They are ``steps`` ahead in the dimension ``dim``."""

    rows: tuple[tuple[Prefetch, int], ...]
    dim: int
    steps: int


def rows_ahead(
    kernel: Kernel, body: Sequence[Stmt], box: Sequence[int], without: Collection[str] = ()
) -> RowsAhead | None:
    """What ``body`` of ``kernel`` touches of memory, ``without`` some arrays, for the work-items of
    a row, in a ``box`` of rows that a work-group does one after the other; None if that is nothing
    that further rows would show."""
    if len(box) < 2:
        return None
    last = ItemQuery("global_id", len(box) - 1)
    params = (p for p in kernel.params if isinstance(p, ArrayParam))
    arrays = {p.name: p.dtype.nbytes for p in params if p.name not in without}
    furthest: dict[tuple[str, tuple[Expr, ...]], tuple[int, ...]] = {}
    made = propagate_indices(replace(kernel, body=tuple(body)))
    for array, indices in _accesses(made.body):
        if array not in arrays or not all(map(is_fixed, indices)) or not indices:
            continue
        bases, constants = zip(*(_parts(index) for index in indices), strict=True)
        across = [base for base in bases[:-1] if last in subexpressions(base)]
        along = index_sum(Binary(INT64, "sub", bases[-1], last))
        if across or last in subexpressions(along):
            continue
        so_far = furthest.setdefault((array, bases), constants)
        furthest[array, bases] = max(so_far, constants, key=lambda each: (each[:-1], -each[-1]))
    rows = [
        (Prefetch(array, tuple(map(_sum, bases, constants))), arrays[array])
        for (array, bases), constants in furthest.items()
    ]
    if not rows:
        return None
    dim, steps = _distance(box, max(nbytes for _, nbytes in rows))
    return RowsAhead(tuple(rows[: CODE_LIMITS.most_prefetched_rows]), dim, steps)


def _distance(box: Sequence[int], nbytes: int) -> tuple[int, int]:
    """The dimension, and the steps in it, in which work-items are as many bytes ahead as is assumed
    to do (``CodeLimits.prefetch_distance``)."""
    step = nbytes
    for dim in reversed(range(len(box) - 1)):
        step *= box[dim + 1]
        steps = -(-CODE_LIMITS.prefetch_distance // step)
        if dim == 0 or 4 * steps <= box[dim]:
            return dim, max(min(steps, box[dim] // 4), 1)
    raise AssertionError("a box of rows")


def arrays_of(body: Sequence[Stmt]) -> set[str]:
    """The arrays that ``body`` reads or writes elements of."""
    return {array for array, _ in _accesses(body)}


def _accesses(body: Sequence[Stmt]) -> list[tuple[str, tuple[Expr, ...]]]:
    loads = ((e.array, e.indices) for e in expressions(body) if isinstance(e, Load))
    stores = ((s.array, s.indices) for s in statements(body) if isinstance(s, Store))
    return list(dict.fromkeys((*loads, *stores)))


def _parts(index: Expr) -> tuple[Expr, int]:
    """A sum without its constant, and that."""
    match index_sum(index):
        case Binary(_, "add", base, Const(value=value)):
            return base, int(value)
        case Binary(_, "sub", base, Const(value=value)):
            return base, -int(value)
        case Const(value=value):
            return Const(INT64, 0), int(value)
        case base:
            return base, 0


def _sum(base: Expr, constant: int) -> Expr:
    return index_sum(Binary(INT64, "add", base, Const(INT64, constant)))
