"""SYCL's devices with numba-dpex as the compiler, as a platform."""

from __future__ import annotations

from fusionq.backends.platform import Platform
from fusionq.dpex.backend.backend import DpexBackend

PLATFORM = Platform(DpexBackend)
