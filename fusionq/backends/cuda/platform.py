"""NVIDIA's GPUs as a platform."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.backends.base import Backend
from fusionq.backends.cuda.streams import is_stream
from fusionq.backends.platform import Platform
from fusionq.base.device_info import DeviceInfo
from fusionq.base.errors import DeviceError


def _open(target: object, profiling: bool) -> Backend:
    from fusionq.backends.cuda.backend import CudaBackend

    return CudaBackend(target, profiling)


def _builder(target: object) -> Backend:
    from fusionq.backends.cuda.builder import CudaBuilder

    return CudaBuilder(target)


def _devices() -> Sequence[DeviceInfo]:
    from fusionq.backends.cuda.devices import device, device_count

    try:
        return [device(ordinal).info for ordinal in range(device_count())]
    except DeviceError:
        return []


def _missing() -> str | None:
    from fusionq.backends.cuda.devices import device_count

    try:
        return None if device_count() else "the NVIDIA driver shows no GPU (CUDA_VISIBLE_DEVICES?)"
    except DeviceError as error:
        return str(error)


def _advice() -> str | None:
    from fusionq.backends.cuda.compiler import advice

    return advice() if _devices() else None


PLATFORM = Platform(
    _open, _devices, is_stream, builder=_builder, missing=_missing, advice=_advice
)
