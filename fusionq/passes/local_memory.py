"""The local memory that a work-group takes in a launch, with what functions of work-groups keep."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from fusionq.base.device_info import DeviceInfo
from fusionq.base.identity_cache import cached_by_identity
from fusionq.ir.nodes import Kernel
from fusionq.ir.walk import combines_floats, has_ordered_functions, local_bytes
from fusionq.passes.group_functions import lower_group_functions, sub_group_of
from fusionq.passes.share_local import share_local_arrays


def with_ordered_functions(
    kernel: Kernel, local_range: Sequence[int] | None, device: DeviceInfo
) -> Kernel:
    """``kernel`` with those functions of work-groups in local memory that ``device`` does in an
    order of its own, where that may show, and those that are ``in_order``."""
    if local_range is None:
        return kernel
    kernel = with_reductions(kernel, local_range, device)
    if device.float_groups != "replaced":
        return kernel
    size = sub_group_of(kernel, device.sub_group_sizes)
    sub_group = None if size is None or local_range[-1] % size else size
    alone = _are_lanes(device)
    return lower_group_functions(kernel, local_range, combines_floats, sub_group, alone)


def with_reductions(kernel: Kernel, local_range: Sequence[int], device: DeviceInfo) -> Kernel:
    """``kernel`` with those functions of work-groups in local memory that are ``in_order``: without
    shuffles, for which the compiler would need a size of sub-groups that is not the kernel's."""
    alone = _are_lanes(device)
    return lower_group_functions(kernel, local_range, lambda call: call.in_order, alone=alone)


def _are_lanes(device: DeviceInfo) -> bool:
    """Whether work-items are lanes of a vector."""
    return device.kind == "cpu"


def launched_bytes(
    kernel: Kernel, local_range: Sequence[int] | None, device: DeviceInfo
) -> int:
    """Bytes of local memory that a work-group of ``local_range`` takes where ``kernel`` runs."""
    local = None if local_range is None else tuple(local_range)
    key = local, device.kind, device.float_groups, device.sub_group_sizes
    known = _launched_bytes(kernel)
    if key not in known:
        if has_ordered_functions(kernel):
            kernel = share_local_arrays(with_ordered_functions(kernel, local, device))
        known[key] = local_bytes(kernel)
    return known[key]


@cached_by_identity
def _launched_bytes(kernel: Kernel) -> dict[Hashable, int]:
    """Those of ``kernel`` that are known, by what they depend on."""
    return {}
