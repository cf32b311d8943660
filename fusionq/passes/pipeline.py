"""The passes in order, each between two runs of the verifier."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from fusionq.analysis.item_space import ItemSpace
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.private_footprint import PrivateFootprint
from fusionq.config import debug_level
from fusionq.ir.nodes import Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.passes.dead_stores import eliminate_dead_stores
from fusionq.passes.fuse import FusedKernel, fuse
from fusionq.passes.promote_private import SymbolSource, promote_private
from fusionq.passes.propagate_ids import propagate_ids
from fusionq.passes.unused_params import drop_unused_params


def fused_kernel(
    analysis: ListAnalysis,
    members: Sequence[int],
    space: ItemSpace,
    private: Mapping[tuple[int, int], PrivateFootprint],
    symbol_source: SymbolSource,
) -> FusedKernel:
    """The submissions ``members`` as one kernel, with the views ``private`` (alias group and
    view) in private memory."""
    fused = fuse(analysis, members, space)
    _check("fuse", None, fused.kernel)
    fused = _run("propagate_ids", _on_kernel(propagate_ids), fused)
    for view, footprint in private.items():
        array = fused.views[view]
        fused = _run(
            f"promote_private {array}",
            lambda f, a=array, p=footprint: promote_private(f, a, p, symbol_source),  # type: ignore[misc]
            fused,
        )
    fused = _run("eliminate_dead_stores", _on_kernel(eliminate_dead_stores), fused)
    return _run("drop_unused_params", drop_unused_params, fused)


def _on_kernel(rewrite: Callable[[Kernel], Kernel]) -> Callable[[FusedKernel], FusedKernel]:
    def run(fused: FusedKernel) -> FusedKernel:
        return FusedKernel(rewrite(fused.kernel), fused.sources, fused.views)

    return run


def _run(
    name: str, rewrite: Callable[[FusedKernel], FusedKernel], before: FusedKernel
) -> FusedKernel:
    after = rewrite(before)
    _check(name, before.kernel, after.kernel)
    return after


def _check(name: str, before: Kernel | None, after: Kernel) -> None:
    """Verify; at debug level 2 and up show the kernel, where the pass changed it."""
    verify(after)
    if debug_level() >= 2 and after != before:
        print(f"--- after {name}\n{print_kernel(after)}", file=sys.stderr)
