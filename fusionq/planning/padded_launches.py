"""Launches whose work-groups get more work-items, so that they are whole vectors
(``codegen.padded_rows``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from fusionq.base.target import Target
from fusionq.codegen.padded_rows import padded_rows
from fusionq.codegen.scalar_items import is_for_scalars
from fusionq.ir.nodes import Kernel
from fusionq.ir.walk import waits_in_groups


def with_padding(kernel: Kernel, local_range: Sequence[int] | None, target: Target) -> Kernel:
    """``kernel``, for work-groups of ``local_range``, marked for such padding where it gains by
    that: the last dimension is half a vector or more, and no whole number of them."""
    lanes = target.device.group_lanes
    if local_range is None or not lanes or not waits_in_groups(kernel):
        return kernel
    items = local_range[-1]
    whole = -(-items // lanes) * lanes
    size = prod(local_range[:-1]) * whole
    if whole == items or 2 * items < lanes or size > target.device.max_work_group_size:
        return kernel
    if kernel.one_by_one or is_for_scalars(kernel, kernel.body):
        return kernel
    if padded_rows(kernel, items) is None:
        return kernel
    return replace(kernel, padded_row=(items, whole))
