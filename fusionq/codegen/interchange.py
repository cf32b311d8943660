"""Loop interchange in tiles with short rows: lanes along another dimension than the last one.

    for i in tile:                    for strip of the tile's i:
        for j by lanes:         →         for j in tile:
            out[i, j] = …                     for i in strip, by lanes:
                                                  out[i, j] = …

Work-items of a stage are in no order.  Each pass over a strip finds in the nearest cache what the
one before has loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal

from fusionq.ir.nodes import (
    ArrayParam,
    Binary,
    Const,
    Expr,
    Extent,
    ItemQuery,
    Kernel,
    LaneDimension,
    StageCode,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite_body

LEAST = 20
"""Sixteenths of the time of vectors along another dimension that those of the last one take at
least where lanes have the other: both are estimates."""


def order_of(ndim: int, lanes: LaneDimension) -> tuple[int, ...]:
    """The dimensions from the outermost loop to that of the lanes."""
    return (*(d for d in range(ndim) if d != lanes.dim), lanes.dim)


def interchanged(code: StageCode, order: tuple[int, ...]) -> StageCode:
    """``code`` with its dimensions in another ``order``, for whoever has them so, too."""
    place = {dim: k for k, dim in enumerate(order)}

    def moved(e: Expr) -> Expr:
        return replace(e, dim=place[e.dim]) if isinstance(e, ItemQuery) else e

    body = rewrite_body(code.kernel.body, moved)
    extents = tuple(code.extents[d] for d in order)
    return replace(code, kernel=replace(code.kernel, body=body), extents=extents, lanes=None)


def touched_bytes(kernel: Kernel) -> Expr:
    """The bytes of the arrays of ``kernel``; 0 if it has none."""
    params = [p for p in kernel.params if isinstance(p, ArrayParam)]
    if not params:
        return Const(INT64, 0)
    return _folded("add", [
        _folded("mul", [
            Const(INT64, p.dtype.nbytes), *(Extent(p.name, d) for d in range(p.ndim))
        ])
        for p in params
    ])  # fmt: skip


def _folded(op: Literal["add", "mul"], operands: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: Binary(INT64, op, a, b), operands)


def is_faster(lanes: LaneDimension, ndim: int, width: int) -> str:
    """Whether vectors of so many work-items are faster along ``lanes`` in a tile, as text."""
    row, column = (f"(fq_last_{d} - fq_first_{d} + 1)" for d in (ndim - 1, lanes.dim))

    def vectors(items: str) -> str:
        return f"(({items[1:-1]} + {width - 1}) / {width})"

    rows = f"{column} * {vectors(row)} * {lanes.benefit}"
    return f"{rows} > {row} * {vectors(column)} * {LEAST}"
