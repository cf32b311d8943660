"""User-driven kernel fusion for SYCL queues, in Python.

Submit kernels inside ``with fusion(queue):`` and they become as few kernels as is provably
safe, with the same result, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusionq.errors import (
    ArgumentError,
    DeviceError,
    FusionAborted,
    FusionqError,
    FusionRefused,
    FusionStateError,
    KernelLanguageError,
    MegakernelStalled,
    PromotionConflict,
)
from fusionq.event import Event
from fusionq.frontend.kernel import kernel
from fusionq.fusion import Fusion, fusion
from fusionq.language import Group, Item, NdItem, NdRange, Range
from fusionq.memory import Buffer, access
from fusionq.queue import FusionQueue

if TYPE_CHECKING:
    from fusionq.report import Report

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Buffer",
    "DeviceError",
    "Event",
    "Fusion",
    "FusionAborted",
    "FusionQueue",
    "FusionRefused",
    "FusionStateError",
    "FusionqError",
    "Group",
    "Item",
    "KernelLanguageError",
    "MegakernelStalled",
    "NdItem",
    "NdRange",
    "PromotionConflict",
    "Range",
    "Report",
    "__version__",
    "access",
    "fusion",
    "kernel",
]


def __getattr__(name: str) -> Any:
    # The report's module needs the analysis, which a plain import should not load.
    if name == "Report":
        from fusionq.report import Report

        return Report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
