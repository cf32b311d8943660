"""User-driven kernel fusion for SYCL queues, in Python.

Submit kernels inside ``with fusion(queue):`` and they become as few kernels as is provably
safe, with the same result, bit for bit.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fusionq.base.config import set_disk_cache
from fusionq.base.errors import (
    ArgumentError,
    ArrayDetached,
    DeviceError,
    FusionAborted,
    FusionqError,
    FusionRefused,
    FusionStateError,
    KernelLanguageError,
    MegakernelStalled,
    PromotionConflict,
)
from fusionq.base.version import __version__
from fusionq.frontend.kernel import kernel
from fusionq.language import (
    AddressSpace,
    AtomicRef,
    Group,
    Item,
    LocalAccessor,
    MemoryOrder,
    MemoryScope,
    NdItem,
    NdRange,
    PrivateArray,
    Range,
    SubGroup,
    all_of_group,
    any_of_group,
    atomic_fence,
    clz,
    cospi,
    exclusive_scan_over_group,
    fma,
    group_barrier,
    group_broadcast,
    inclusive_scan_over_group,
    joint_all_of,
    joint_any_of,
    joint_exclusive_scan,
    joint_inclusive_scan,
    joint_none_of,
    joint_reduce,
    mark,
    none_of_group,
    permute_group_by_xor,
    popcount,
    reduce_over_group,
    region,
    rsqrt,
    select_from_group,
    shift_group_left,
    shift_group_right,
    sinpi,
)
from fusionq.memory.accessor import access
from fusionq.memory.buffer import Buffer
from fusionq.memory.reduction import Reduction
from fusionq.runtime.event import Event
from fusionq.runtime.fusion import Fusion, fusion
from fusionq.runtime.graph import Graph
from fusionq.runtime.queue import FusionQueue

if TYPE_CHECKING:
    from ml_dtypes import bfloat16

    from fusionq import profiling
    from fusionq.profiling import profile
    from fusionq.report.report import Report

__all__ = [
    "AddressSpace",
    "ArgumentError",
    "ArrayDetached",
    "AtomicRef",
    "Buffer",
    "DeviceError",
    "Event",
    "Fusion",
    "FusionAborted",
    "FusionQueue",
    "FusionRefused",
    "FusionStateError",
    "FusionqError",
    "Graph",
    "Group",
    "Item",
    "KernelLanguageError",
    "LocalAccessor",
    "MegakernelStalled",
    "MemoryOrder",
    "MemoryScope",
    "NdItem",
    "NdRange",
    "PrivateArray",
    "PromotionConflict",
    "Range",
    "Reduction",
    "Report",
    "SubGroup",
    "__version__",
    "access",
    "all_of_group",
    "any_of_group",
    "atomic_fence",
    "bfloat16",
    "clz",
    "cospi",
    "exclusive_scan_over_group",
    "fma",
    "fusion",
    "group_barrier",
    "group_broadcast",
    "inclusive_scan_over_group",
    "joint_all_of",
    "joint_any_of",
    "joint_exclusive_scan",
    "joint_inclusive_scan",
    "joint_none_of",
    "joint_reduce",
    "kernel",
    "mark",
    "none_of_group",
    "permute_group_by_xor",
    "popcount",
    "profile",
    "profiling",
    "reduce_over_group",
    "region",
    "rsqrt",
    "select_from_group",
    "set_disk_cache",
    "shift_group_left",
    "shift_group_right",
    "sinpi",
]


def __getattr__(name: str) -> Any:
    # The report's module needs the analysis, which a plain import should not load.
    if name == "Report":
        from fusionq.report.report import Report

        return Report
    # Nor should it load other packages.
    if name == "bfloat16":
        return import_module("ml_dtypes").bfloat16
    # Nor the profiler.
    if name in ("profile", "profiling"):
        module = import_module("fusionq.profiling")
        return module if name == "profiling" else module.profile
    near = []
    if not name.startswith("_"):  # which tools ask for, of every name of a module
        from difflib import get_close_matches

        near = get_close_matches(name, __all__, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
