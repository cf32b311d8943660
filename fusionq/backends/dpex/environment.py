"""The libraries of the pinned numba-dpex stack, loaded without environment variables.

The wheels of that stack (oneAPI 2024.2) are linked for an activated oneAPI installation: their
libraries lie in ``<prefix>/lib``, where the dynamic loader does not look.  What is in the process
already is found by its name, so loading them in the order of their dependences is enough.
"""

from __future__ import annotations

import ctypes
import functools
import os
import site
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from fusionq.base.errors import DeviceError

INSTALL = 'pip install "fusionq[dpex]" in an environment of its own, Python 3.10 or 3.11'

_SYCL = "libsycl.so.7"
"""The SYCL runtime of oneAPI 2024; newer stacks find their libraries themselves."""

_RUNTIME = (
    "libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libOpenCL.so.1", _SYCL,
)  # fmt: skip
_MATH = (
    "libtbb.so.12", "libmkl_core.so.2", "libmkl_tbb_thread.so.2", "libmkl_intel_ilp64.so.2",
    "libmkl_sycl_blas.so.4", "libmkl_sycl_lapack.so.4", "libmkl_sycl_dft.so.4",
    "libmkl_sycl_rng.so.4", "libmkl_sycl_stats.so.4", "libmkl_sycl_vm.so.4",
)  # fmt: skip
"""What dpnp is linked with, and numba-dpex imports dpnp."""


def _stack() -> Path | None:
    """Where pip has put the oneAPI 2024 libraries; None where there are none."""
    roots = dict.fromkeys((sys.prefix, sys.base_prefix, site.getuserbase()))
    return next((d for r in roots if ((d := Path(r) / "lib") / _SYCL).exists()), None)


@functools.cache
def load_sycl_runtime() -> bool:
    """Make the SYCL runtime of oneAPI 2024, if it is installed, ready for ``import dpctl``.

    Returns whether it is installed.  Nothing happens with other versions, which need no help.
    """
    libraries = _stack()
    if libraries is None:
        return False
    os.environ.setdefault("OCL_ICD_FILENAMES", str(libraries / "libintelocl.so"))
    for name in _RUNTIME:
        _load(libraries / name)
    return True


@functools.cache
def load_numba_dpex() -> Any:
    """The ``numba_dpex`` package, its libraries loaded before.

    Raises DeviceError if it is not installed or cannot be imported: what is missing, and how to
    install it.  Afterwards ``import numba_dpex``, ``dpnp`` and ``dpctl`` work anywhere in the
    process.
    """
    if load_sycl_runtime():
        libraries = _stack()
        assert libraries is not None
        for name in _MATH:
            _load(libraries / name)
    try:
        package = import_module("numba_dpex")
        import_module("numba_dpex.kernel_api")
    except ImportError as error:
        raise DeviceError(
            f"numba-dpex cannot be imported: {error}.\n{_versions()}\n  Install it with: {INSTALL}"
        ) from error
    return package


def _load(library: Path) -> None:
    """Load a library for all that are loaded later; one that is missing is left to them.

    With lazy binding, which Python's ctypes does not offer: some of MKL's libraries have symbols
    that only programs with other parts of MKL define.
    """
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    dlopen.argtypes = (ctypes.c_char_p, ctypes.c_int)
    dlopen(os.fsencode(library), os.RTLD_LAZY | os.RTLD_GLOBAL)


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
