"""Drop scalar parameters and arrays that the kernel does not mention any more."""

from __future__ import annotations

from dataclasses import replace

from fusionq.ir.nodes import Atomic, Extent, Load, Param, Store
from fusionq.ir.walk import expressions, statements
from fusionq.passes.fuse import FusedKernel


def drop_unused_params(fused: FusedKernel) -> FusedKernel:
    """``fused`` with the parameters that its body uses, in the same order."""
    body = fused.kernel.body
    used = {s.array for s in statements(body) if isinstance(s, (Store, Atomic))}
    for e in expressions(body):
        match e:
            case Param(_, name):
                used.add(name)
            case Load(_, array) | Extent(array):
                used.add(array)
    params = tuple(p for p in fused.kernel.params if p.name in used)
    sources = {p.name: fused.sources[p.name] for p in params}
    return FusedKernel(replace(fused.kernel, params=params), sources, fused.views)
