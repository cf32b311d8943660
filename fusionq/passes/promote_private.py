"""Private promotion: a buffer becomes a variable, or a small array, of each work-item.

    tmp[i] = a[i] * b[i]            tmp = a[i] * b[i]
    out[i] = tmp[i] - c[i]    →     out[i] = tmp - c[i]

With several elements an item, indices count from the first element that the item owns:

    tmp[4*i + k] = a[4*i + k]  →    tmp[4*i + k - 4*i] = a[4*i + k]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fusionq.analysis.private_footprint import PrivateFootprint
from fusionq.ir.nodes import (
    ArrayDecl,
    ArrayParam,
    Assign,
    Binary,
    Expr,
    Extent,
    For,
    Kernel,
    Load,
    Param,
    ScalarParam,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, rewrite_body, statements
from fusionq.passes.affine_expression import affine_expression
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.names import Names
from fusionq.passes.sources import ArgumentSource, ExtentSource, ParamSource

SymbolSource = Callable[[str], ParamSource]
"""Where the value of an analysis symbol is found."""


def promote_private(
    fused: FusedKernel, array: str, footprint: PrivateFootprint, symbol_source: SymbolSource
) -> FusedKernel:
    """``fused`` with parameter ``array`` in private memory."""
    kernel = fused.kernel
    param = kernel.param(array)
    assert isinstance(param, ArrayParam)
    source = fused.sources[array]
    assert isinstance(source, ArgumentSource)
    names = Names(_names_in(kernel))
    added: dict[ParamSource, str] = {}

    def size(wanted: str, origin: ParamSource) -> Expr:
        if origin not in added:
            added[origin] = names.fresh(wanted)
        return Param(INT64, added[origin])

    base = [
        affine_expression(aff, lambda symbol: size(f"{array}_{symbol}", symbol_source(symbol)))
        for aff in footprint.base
    ]

    def offsets(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(
            Binary(INT64, "sub", index, first) for index, first in zip(indices, base, strict=True)
        )

    def expr(e: Expr) -> Expr:
        match e:
            case Load(type, name, indices) if name == array:
                if footprint.is_scalar:
                    return Var(type, array)
                return replace(e, indices=offsets(indices))
            case Extent(name, dim) if name == array:
                return size(
                    f"{array}_extent_{dim}", ExtentSource(source.submission, source.argument, dim)
                )
            case _:
                return e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Store) and s.array == array:
            if footprint.is_scalar:
                return (Assign(array, s.value, s.span),)
            return (replace(s, indices=offsets(s.indices)),)
        return (s,)

    body = rewrite_body(kernel.body, expr, stmt)
    used = {e.name for e in expressions(body) if isinstance(e, Param)}
    sizes: dict[str, ParamSource] = {n: origin for origin, n in added.items() if n in used}
    params = tuple(p for p in kernel.params if p.name != array)
    kernel = replace(
        kernel,
        params=params + tuple(ScalarParam(name, INT64) for name in sizes),
        body=body,
        variables=(*kernel.variables, (array, param.dtype))
        if footprint.is_scalar
        else kernel.variables,
        arrays=kernel.arrays
        if footprint.is_scalar
        else (*kernel.arrays, ArrayDecl(array, param.dtype, footprint.extents, "private")),
    )
    sources = {name: s for name, s in fused.sources.items() if name != array} | sizes
    return FusedKernel(kernel, sources, fused.views)


def _names_in(kernel: Kernel) -> list[str]:
    loops = [s.var for s in statements(kernel.body) if isinstance(s, For)]
    declared = [name for name, _ in kernel.variables] + [a.name for a in kernel.arrays]
    return [p.name for p in kernel.params] + declared + loops
