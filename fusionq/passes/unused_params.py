"""Drop scalar parameters and arrays that the kernel does not mention any more; of arrays of which
it asks for nothing but extents, these become parameters."""

from __future__ import annotations

from dataclasses import replace

from fusionq.ir.nodes import ArrayParam, Atomic, Extent, Load, Param, Store
from fusionq.ir.walk import expressions, statements
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.relocate import SizeParams, without_param


def drop_unused_params(fused: FusedKernel) -> FusedKernel:
    """``fused`` with the parameters that its body uses, in the same order."""
    for name in _asked_for_extents(fused):
        fused = without_param(fused, fused.kernel, name, SizeParams(fused.kernel))
    body = fused.kernel.body
    used = {s.array for s in statements(body) if isinstance(s, (Store, Atomic))}
    for e in expressions(body):
        if type(e) is Param:
            used.add(e.name)
        elif type(e) is Load or type(e) is Extent:
            used.add(e.array)
    params = tuple(p for p in fused.kernel.params if p.name in used)
    sources = {p.name: fused.sources[p.name] for p in params}
    return FusedKernel(replace(fused.kernel, params=params), sources, fused.views)


def _asked_for_extents(fused: FusedKernel) -> list[str]:
    """The array parameters whose elements the kernel does not touch, but whose extents it uses."""
    body = fused.kernel.body
    touched = {s.array for s in statements(body) if isinstance(s, (Store, Atomic))}
    asked: set[str] = set()
    for e in expressions(body):
        if type(e) is Load:
            touched.add(e.array)
        elif type(e) is Extent:
            asked.add(e.array)
    arrays = (p.name for p in fused.kernel.params if isinstance(p, ArrayParam))
    return [name for name in arrays if name in asked and name not in touched]
