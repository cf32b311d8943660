"""Private promotion: a buffer becomes a variable, or a small array, of each work-item.

    tmp[i] = a[i] * b[i]            tmp = a[i] * b[i]
    out[i] = tmp[i] - c[i]    →     out[i] = tmp - c[i]

With several elements an item, indices count from the first element that the item owns:

    tmp[4*i + k] = a[4*i + k]  →    tmp[4*i + k - 4*i] = a[4*i + k]
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.analysis.footprint import Footprint
from fusionq.ir.nodes import ArrayParam, Assign, Expr, ItemQuery, Load, Stmt, Store, Var
from fusionq.ir.walk import rewrite_body
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.relocate import SizeParams, SymbolSource, relocate, without_param


def promote_private(
    fused: FusedKernel, array: str, footprint: Footprint, symbol_source: SymbolSource
) -> FusedKernel:
    """``fused`` with parameter ``array`` in private memory."""
    if not footprint.is_scalar:
        return relocate(
            fused, array, footprint, "private", lambda d: ItemQuery("global_id", d), symbol_source
        )
    kernel = fused.kernel
    param = kernel.param(array)
    assert isinstance(param, ArrayParam)

    def expr(e: Expr) -> Expr:
        return Var(e.type, array) if isinstance(e, Load) and e.array == array else e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        if isinstance(s, Store) and s.array == array:
            return (Assign(array, s.value, s.span),)
        return (s,)

    moved = replace(
        kernel,
        body=rewrite_body(kernel.body, expr, stmt),
        variables=(*kernel.variables, (array, param.dtype)),
    )
    return without_param(fused, moved, array, SizeParams(kernel))
