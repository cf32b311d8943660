"""Whether work-items of a built kernel are the lanes of sub-groups of the size that it requires.

Intel's OpenCL compiler for CPUs runs the work-items of a kernel that it cannot vectorise one after
the other, as sub-groups of one each, whatever ``intel_reqd_sub_group_size`` says.  It tells the
required size for such a kernel all the same (``CL_KERNEL_COMPILE_SUB_GROUP_SIZE``,
``CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE``): only its log says it.  What a lane broadcasts then
reaches nobody: results are wrong, and the worker of a persistent kernel takes its first instruction
for ever.
"""

from __future__ import annotations

import re
from typing import Any

from fusionq.backends.sycl.binary import log_of
from fusionq.backends.sycl.build_log import build_log

_REQUIRED_SIZE = re.compile(r"\bintel_reqd_sub_group_size\((\d+)\)")
_FUNCTION = re.compile(r"\b(?!intel_reqd_)\w*sub_group\w*\(")
_VECTORS = (2, 4, 8, 16)


def lacks_lanes(device: Any, text: str, entry_point: str, native: Any, options: str) -> bool:
    """Whether the kernel ``native``, built from ``text`` for the ``dpctl.SyclDevice``, uses
    functions of sub-groups of a size that it requires and has not."""
    size = _REQUIRED_SIZE.search(text)
    if size is None or int(size[1]) == 1 or not _FUNCTION.search(text) or not device.is_cpu:
        return False
    log = log_of(device, native)
    if log is None:  # The text is built once more, on stacks that do not hand out programs.
        log = build_log(device, text, options)
    return f'Kernel "{entry_point}" was not vectorized' in log


def with_emulated_lanes(text: str) -> str | None:
    """``text`` whose sub-groups the compiler emulates, each statement in a loop over their
    work-items: with an explicit vector type (OpenCL C 3.0, ``vec_type_hint``) it does not vectorise
    at all.  A stencil's persistent kernel took ten times as long.  None where no vector has so many
    elements."""
    size = _REQUIRED_SIZE.search(text)
    if size is None or int(size[1]) not in _VECTORS:
        return None
    return _REQUIRED_SIZE.sub(r"\g<0>, vec_type_hint(float\1)", text)
