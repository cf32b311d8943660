"""The reference device as a platform."""

from __future__ import annotations

from fusionq.backends.platform import Platform
from fusionq.backends.reference.backend import REFERENCE_DEVICE, ReferenceBackend
from fusionq.base.errors import DeviceError


def _open(target: object, profiling: bool) -> ReferenceBackend:
    if target is not None:
        raise DeviceError(
            f"there is one reference device, 'reference', and no 'reference:{target}'"
        )
    return ReferenceBackend()


PLATFORM = Platform(_open, lambda: (REFERENCE_DEVICE,))
