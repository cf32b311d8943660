"""Local promotion: a buffer becomes an array of the work-group.

    tmp[i] = a[i]                              tmp[i - 64*group] = a[i]
    barrier                             →      barrier
    out[i] = tmp[(i//64)*64 + 63 - i%64]       out[i] = tmp[(i//64)*64 + 63 - i%64 - 64*group]

Indices count from the first element that the group owns.
"""

from __future__ import annotations

from fusionq.analysis.footprint import Footprint
from fusionq.ir.nodes import ItemQuery
from fusionq.passes.fuse import FusedKernel
from fusionq.passes.relocate import SymbolSource, relocate


def promote_local(
    fused: FusedKernel, array: str, footprint: Footprint, symbol_source: SymbolSource
) -> FusedKernel:
    """``fused`` with parameter ``array`` in local memory."""
    return relocate(
        fused, array, footprint, "local", lambda d: ItemQuery("group_id", d), symbol_source
    )
