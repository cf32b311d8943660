"""Targets that tests plan and print for."""

from __future__ import annotations

from fusionq.backends.reference.backend import REFERENCE_DEVICE
from fusionq.base.device_info import DeviceInfo
from fusionq.base.target import Target, target_of

REFERENCE = target_of(REFERENCE_DEVICE)


def device(
    kind: str = "cpu", compute_units: int = 2, max_work_group_size: int = 8192
) -> DeviceInfo:
    """A device with 256 KiB of local memory."""
    return DeviceInfo(
        name="name", vendor="vendor", driver="driver", filter_string=f"opencl:{kind}:0",
        kind=kind, compute_units=compute_units, max_work_group_size=max_work_group_size,
        local_memory_bytes=1 << 18, has_fp16=True, has_fp64=True, host_memory=kind == "cpu",
    )  # fmt: skip


TWO_CORES: Target = target_of(device())
"""A CPU of which all is assumed that can be."""
