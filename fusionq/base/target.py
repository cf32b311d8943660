"""What the compiler and the user need to know of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FloatMode: TypeAlias = Literal["strict", "fast"]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What the compiler and the user need to know of a device; sizes in bytes."""

    name: str
    vendor: str
    driver: str
    filter_string: str
    kind: Literal["cpu", "gpu", "accelerator", "reference"]
    compute_units: int
    max_work_group_size: int
    local_memory_bytes: int
    has_fp16: bool
    has_fp64: bool
    host_memory: bool
    """True where kernels can reach ordinary host memory, such as a NumPy array's."""
    persistent_kernels: bool = True
    """Whether the backend compiles persistent kernels (``ir.Persistent``)."""


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Launched work-items (SYCL order), a multiple of the local range; the kernel itself
    guards what exceeds the user's range."""

    global_range: tuple[int, ...]
    local_range: tuple[int, ...]
