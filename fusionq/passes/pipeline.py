"""The passes in order, each between two runs of the verifier."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from fusionq.analysis.footprint import Footprint
from fusionq.analysis.item_space import ItemSpace
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.base.config import debug_level
from fusionq.base.device_info import DeviceInfo
from fusionq.ir.nodes import Barrier, Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.passes.dead_stores import eliminate_dead_stores
from fusionq.passes.fuse import FusedKernel, fuse
from fusionq.passes.local_memory import with_ordered_functions
from fusionq.passes.promote_local import promote_local
from fusionq.passes.promote_private import promote_private
from fusionq.passes.propagate_ids import propagate_ids
from fusionq.passes.quotients_of_ids import with_quotients_of_ids
from fusionq.passes.relocate import SymbolSource
from fusionq.passes.share_local import share_local_arrays
from fusionq.passes.steps_alone import with_steps_alone
from fusionq.passes.unused_params import drop_unused_params

Scope = Literal["private", "local"]


def fused_kernel(
    analysis: ListAnalysis,
    members: Sequence[int],
    space: ItemSpace,
    barriers: Mapping[int, Barrier],
    promoted: Mapping[tuple[int, int], tuple[Scope, Footprint, SymbolSource]],
    constants: Mapping[tuple[int, int], int],
    device: DeviceInfo,
) -> FusedKernel:
    """The submissions ``members`` as one kernel, with ``barriers`` before some of them and the
    views ``promoted`` (alias group and view) in private or local memory and the scalar arguments
    ``constants`` (submission and position) put in, for ``device``."""
    if debug_level() >= 2:
        for s in members:
            kernel = print_kernel(analysis.submissions[s].ir)
            print(f"--- before fuse: submission {s}\n{kernel}", file=sys.stderr)
    fused = fuse(analysis, members, space, barriers, constants)
    _check("fuse", None, fused.kernel)
    propagated = partial(propagate_ids, local_range=space.local_range)
    fused = _rewritten("propagate_ids", fused, propagated)
    divided = partial(with_quotients_of_ids, local_range=space.local_range, device=device)
    fused = _rewritten("quotients_of_ids", fused, divided)
    ordered = partial(with_ordered_functions, local_range=space.local_range, device=device)
    fused = _rewritten("lower_group_functions", fused, ordered)
    for view, (scope, footprint, symbol_source) in promoted.items():
        promote = promote_private if scope == "private" else promote_local
        moved = promote(fused, fused.views[view], footprint, symbol_source)
        fused = _checked(f"promote_{scope} {fused.views[view]}", fused, moved)
    fused = _rewritten("eliminate_dead_stores", fused, eliminate_dead_stores)
    alone = partial(with_steps_alone, local_range=space.local_range, device=device)
    fused = _rewritten("steps_alone", fused, alone)
    fused = _rewritten("share_local_arrays", fused, share_local_arrays)
    return _checked("drop_unused_params", fused, drop_unused_params(fused))


def _rewritten(name: str, fused: FusedKernel, rewrite: Callable[[Kernel], Kernel]) -> FusedKernel:
    after = FusedKernel(rewrite(fused.kernel), fused.sources, fused.views)
    return _checked(name, fused, after)


def _checked(name: str, before: FusedKernel, after: FusedKernel) -> FusedKernel:
    _check(name, before.kernel, after.kernel)
    return after


def _check(name: str, before: Kernel | None, after: Kernel) -> None:
    """Verify what the pass changed; at debug level 2 and up show it."""
    if after == before:
        return
    verify(after)
    if debug_level() >= 2:
        print(f"--- after {name}\n{print_kernel(after)}", file=sys.stderr)
