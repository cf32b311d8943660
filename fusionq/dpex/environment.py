"""The libraries of the pinned numba-dpex stack, loaded without environment variables."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from fusionq.backends.sycl.oneapi_2024 import load_library, load_sycl_runtime
from fusionq.base.errors import DeviceError

INSTALL = 'pip install "fusionq[dpex]" in an environment of its own, Python 3.10 or 3.11'

_MATH = (
    "libtbb.so.12", "libmkl_core.so.2", "libmkl_tbb_thread.so.2", "libmkl_intel_ilp64.so.2",
    "libmkl_sycl_blas.so.4", "libmkl_sycl_lapack.so.4", "libmkl_sycl_dft.so.4",
    "libmkl_sycl_rng.so.4", "libmkl_sycl_stats.so.4", "libmkl_sycl_vm.so.4",
)  # fmt: skip
"""What dpnp is linked with, and numba-dpex imports dpnp."""


@functools.cache
def load_numba_dpex() -> Any:
    """The ``numba_dpex`` package, its libraries loaded before.

    Raises DeviceError if it is not installed or cannot be imported: what is missing, and how to
    install it.  Afterwards ``import numba_dpex``, ``dpnp`` and ``dpctl`` work anywhere in the
    process.
    """
    libraries = load_sycl_runtime()
    if libraries is not None:
        for name in _MATH:
            load_library(libraries / name)
    try:
        package = import_module("numba_dpex")
        import_module("numba_dpex.kernel_api")
    except ImportError as error:
        raise DeviceError(
            f"numba-dpex cannot be imported: {error}.\n{_versions()}\n  Install it with: {INSTALL}"
        ) from error
    return package


def _versions() -> str:
    """What of the stack is installed."""
    from importlib import metadata  # slow to import, and only for what goes wrong

    lines = []
    for name in ("numba-dpex", "numba", "dpctl", "dpnp", "numpy", "dpcpp-llvm-spirv"):
        try:
            lines.append(f"  {name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"  {name} is not installed")
    return "\n".join(lines)
