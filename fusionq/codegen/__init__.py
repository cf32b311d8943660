"""Code generation: the typed kernel IR as device source, one printer for the C family."""

from fusionq.codegen.device_source import (
    DeviceSource,
    ExtentArgument,
    Pointer,
    Scalar,
    Slot,
    Stride,
)

__all__ = ["DeviceSource", "ExtentArgument", "Pointer", "Scalar", "Slot", "Stride"]
