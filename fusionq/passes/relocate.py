"""Move an array parameter into a fixed-size array, indexed from its owner's first element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fusionq.analysis.footprint import Footprint
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Atomic,
    Binary,
    Const,
    Expr,
    Extent,
    For,
    Kernel,
    Load,
    Param,
    ScalarParam,
    Space,
    Stmt,
    Store,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, rewrite_body, statements
from fusionq.passes.affine_expression import affine_expression
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource

SymbolSource = Callable[[str], ParamSource]
"""Where the value of an analysis symbol is found."""


def relocate(
    fused: FusedKernel,
    array: str,
    footprint: Footprint,
    space: Space,
    owner: Callable[[int], Expr],
    symbol_source: SymbolSource,
    ring: int | None = None,
) -> FusedKernel:
    """``fused`` with parameter ``array`` as an array in ``space``; ``owner`` gives the owner's
    id in each dimension.  ``ring``: a power of two, of elements that there are of the first
    dimension, where an index is taken modulo that, not from the owner's first one."""
    kernel, sizes = fused.kernel, SizeParams(fused.kernel)
    param = kernel.param(array)
    assert isinstance(param, ArrayParam)
    base = [
        affine_expression(aff, owner, lambda s: sizes.param(f"{array}_{s}", symbol_source(s)))
        for aff in footprint.base
    ] or [Const(INT64, 0)] * len(footprint.extents)

    def offsets(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if footprint.is_scalar and ring is None:
            return tuple(Const(INT64, 0) for _ in indices)
        found = [
            Binary(INT64, "sub", index, first) for index, first in zip(indices, base, strict=True)
        ]
        if ring is not None:
            found[0] = Binary(INT64, "and", indices[0], Const(INT64, ring - 1))
        return tuple(found)

    def expr(e: Expr) -> Expr:
        if isinstance(e, Load) and e.array == array:
            return replace(e, indices=offsets(e.indices))
        return e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, (Store, Atomic)) and s.array == array:
            return (replace(s, indices=offsets(s.indices)),)
        return (s,)

    extents = footprint.extents if ring is None else (ring, *footprint.extents[1:])
    declared = ArrayDecl(array, param.dtype, extents, space)
    body = rewrite_body(kernel.body, expr, stmt)
    moved = replace(kernel, body=body, arrays=(*kernel.arrays, declared))
    return without_param(fused, moved, array, sizes)


class SizeParams:
    """New integer parameters of a kernel, one for each source."""

    def __init__(self, kernel: Kernel) -> None:
        self._names = FreshNames(_names_in(kernel))
        self.added: dict[ParamSource, str] = {}

    def param(self, wanted: str, source: ParamSource) -> Param:
        """The parameter with the value of ``source``."""
        if source not in self.added:
            self.added[source] = self._names.fresh(wanted)
        return Param(INT64, self.added[source])


def without_param(fused: FusedKernel, kernel: Kernel, array: str, sizes: SizeParams) -> FusedKernel:
    """``kernel``, rewritten from ``fused``, without parameter ``array`` but with ``sizes``; the
    array's extents become parameters where they are used."""
    source = fused.sources[array]
    assert isinstance(source, ArgumentSource)

    def expr(e: Expr) -> Expr:
        if isinstance(e, Extent) and e.array == array:
            origin = ExtentSource(source.submission, source.argument, e.dim)
            return sizes.param(f"{array}_extent_{e.dim}", origin)
        return e

    body = rewrite_body(kernel.body, expr)
    used = {e.name for e in expressions(body) if isinstance(e, Param)}
    added = {name: origin for origin, name in sizes.added.items() if name in used}
    params = tuple(p for p in kernel.params if p.name != array)
    kernel = replace(
        kernel, body=body, params=params + tuple(ScalarParam(name, INT64) for name in added)
    )
    sources = {name: s for name, s in fused.sources.items() if name != array} | added
    return FusedKernel(kernel, sources, fused.views)


def _names_in(kernel: Kernel) -> list[str]:
    loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
    declared = [name for name, _ in kernel.variables] + [a.name for a in kernel.arrays]
    return [p.name for p in kernel.params] + declared + loops
