"""The SYCL runtime of oneAPI 2024's wheels, loaded without environment variables.

These wheels are linked for an activated oneAPI installation: their libraries lie in
``<prefix>/lib``, where the dynamic loader does not look.  What is in the process already is found
by its name, so loading them in the order of their dependences is enough.
"""

from __future__ import annotations

import ctypes
import functools
import os
import site
import sys
from pathlib import Path

_SYCL = "libsycl.so.7"
"""The SYCL runtime of oneAPI 2024; newer stacks find their libraries themselves."""

_RUNTIME = (
    "libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libOpenCL.so.1", _SYCL,
)  # fmt: skip


@functools.cache
def load_sycl_runtime() -> Path | None:
    """Make the SYCL runtime of oneAPI 2024, if it is installed, ready for ``import dpctl``.

    The directory of its libraries; None where it is not installed.  Nothing happens with other
    versions, which need no help.
    """
    roots = dict.fromkeys((sys.prefix, sys.base_prefix, site.getuserbase()))
    libraries = next((d for r in roots if ((d := Path(r) / "lib") / _SYCL).exists()), None)
    if libraries is not None:
        os.environ.setdefault("OCL_ICD_FILENAMES", str(libraries / "libintelocl.so"))
        for name in _RUNTIME:
            load_library(libraries / name)
    return libraries


def load_library(library: Path) -> None:
    """Load a library for all that are loaded later; one that is missing is left to them.

    With lazy binding, which Python's ctypes does not offer: some of MKL's libraries have symbols
    that only programs with other parts of MKL define.
    """
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    dlopen.argtypes = (ctypes.c_char_p, ctypes.c_int)
    dlopen(os.fsencode(library), os.RTLD_LAZY | os.RTLD_GLOBAL)
