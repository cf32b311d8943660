"""Prefix sums within work-groups.

``x`` and ``out`` have one shape ``(n,)``.  The kernels run over work-groups of ``GROUP``
work-items, ``NdRange(n rounded up, GROUP)``; each group's sums start anew.  Floating sums depend
on the order of adding up, within ``GROUP·eps·Σ|x|``; integers wrap.
"""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.kernels.library import NUMERIC, Array, in_groups, reference_for
from fusionq.kernels.reductions import GROUP


@fq.kernel
def inclusive_scan_of_groups(item: fq.NdItem, x: Array, out: Array) -> None:
    """``out[i]``: the sum of the group's ``x`` up to ``i``; any numeric dtype."""
    i = item.get_global_id(0)
    total = fq.inclusive_scan_over_group(item.get_group(), x[i] if i < x.shape[0] else 0)
    if i < x.shape[0]:
        out[i] = total


@reference_for(inclusive_scan_of_groups, dtypes=NUMERIC, range_of=in_groups(GROUP), reorders=True)
def inclusive_scan_of_groups_reference(x: Array, out: Array) -> None:
    for start in range(0, x.size, GROUP):
        part = slice(start, start + GROUP)
        np.cumsum(x[part], dtype=x.dtype, out=out[part])


@fq.kernel
def exclusive_scan_of_groups(item: fq.NdItem, x: Array, out: Array) -> None:
    """``out[i]``: the sum of the group's ``x`` before ``i``; any numeric dtype."""
    i = item.get_global_id(0)
    total = fq.exclusive_scan_over_group(item.get_group(), x[i] if i < x.shape[0] else 0)
    if i < x.shape[0]:
        out[i] = total


@reference_for(exclusive_scan_of_groups, dtypes=NUMERIC, range_of=in_groups(GROUP), reorders=True)
def exclusive_scan_of_groups_reference(x: Array, out: Array) -> None:
    for start in range(0, x.size, GROUP):
        part = x[start : start + GROUP]
        out[start] = 0
        np.cumsum(part[:-1], dtype=x.dtype, out=out[start + 1 : start + part.size])


@fq.kernel
def scan_by_doubling(item: fq.NdItem, x: Array, tile: fq.LocalAccessor, out: Array) -> None:
    """``out[i]``: the sum of the group's ``x`` up to ``i``, in local memory: each step adds the
    element twice as far away (Hillis and Steele, 1986).  ``tile`` ``(GROUP,)``; any numeric
    dtype."""
    i = item.get_global_id(0)
    local = item.get_local_id(0)
    group = item.get_group()
    total = x[i] if i < x.shape[0] else 0
    distance = 1
    while distance < item.get_local_range(0):
        tile[local] = total
        fq.group_barrier(group)
        if local >= distance:
            total += tile[local - distance]
        fq.group_barrier(group)
        distance *= 2
    if i < x.shape[0]:
        out[i] = total


@reference_for(
    scan_by_doubling, dtypes=NUMERIC, range_of=in_groups(GROUP), local={"tile": (GROUP,)},
    reorders=True,
)  # fmt: skip
def scan_by_doubling_reference(x: Array, tile: fq.LocalAccessor, out: Array) -> None:
    inclusive_scan_of_groups_reference(x, out)
