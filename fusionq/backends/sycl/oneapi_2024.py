"""The SYCL runtime of oneAPI 2024's wheels, loaded without environment variables.

These wheels are linked for an activated oneAPI installation: their libraries lie in
``<prefix>/lib``, where the dynamic loader does not look.  What is in the process already is found
by its name, so loading them in the order of their dependences is enough.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import site
import sys
from pathlib import Path

_SYCL = "libsycl.so.7"
"""The SYCL runtime of oneAPI 2024; newer stacks find their libraries themselves."""

_RUNTIME = (
    "libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libOpenCL.so.1", _SYCL,
)  # fmt: skip


_CPU_INFO = Path("/proc/cpuinfo")
_ARCHITECTURES = {
    "skx": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "core-avx2": {"avx2", "fma", "bmi1", "bmi2"},
}
"""Values of ``CL_CONFIG_CPU_TARGET_ARCH`` and the flags of /proc/cpuinfo that they need, the widest
vectors first."""


@functools.cache
def load_sycl_runtime() -> Path | None:
    """Make the SYCL runtime of oneAPI 2024, if it is installed, ready for ``import dpctl``.

    The directory of its libraries; None where it is not installed.  Nothing happens with other
    versions, which need no help.

    Its CPU compiler is told what to compile for where the CPU is not Intel's: for one that it does
    not know, such as AMD's Zen 5, it makes code that crashes or gives wrong results.
    """
    roots = dict.fromkeys((sys.prefix, sys.base_prefix, site.getuserbase()))
    libraries = next((d for r in roots if ((d := Path(r) / "lib") / _SYCL).exists()), None)
    if libraries is not None:
        os.environ.setdefault("OCL_ICD_FILENAMES", str(libraries / "libintelocl.so"))
        architecture = _architecture(_CPU_INFO)
        if architecture is not None:
            os.environ.setdefault("CL_CONFIG_CPU_TARGET_ARCH", architecture)
        for name in _RUNTIME:
            load_library(libraries / name)
    return libraries


def _architecture(cpu_info: Path) -> str | None:
    """What to compile for on a CPU that is not Intel's; None to leave it to the compiler."""
    try:
        text = cpu_info.read_text(encoding="utf-8")
    except OSError:
        return None
    first = dict(re.findall(r"^(vendor_id|flags)\s*: (.*)$", text.partition("\n\n")[0], re.M))
    if first.get("vendor_id", "GenuineIntel") == "GenuineIntel":
        return None
    flags = set(first.get("flags", "").split())
    return next((name for name, needed in _ARCHITECTURES.items() if needed <= flags), None)


def load_library(library: Path) -> None:
    """Load a library for all that are loaded later; one that is missing is left to them.

    With lazy binding, which Python's ctypes does not offer: some of MKL's libraries have symbols
    that only programs with other parts of MKL define.
    """
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    dlopen.argtypes = (ctypes.c_char_p, ctypes.c_int)
    dlopen(os.fsencode(library), os.RTLD_LAZY | os.RTLD_GLOBAL)
