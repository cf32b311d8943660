"""Several kernels as one translation unit, whose build costs once what every build costs.

``helper(…) … __kernel void a(…)`` and ``helper(…) … __kernel void b(…)`` become
``helper_0(…) … __kernel void fq_0_a(…) … helper_1(…) … __kernel void fq_1_b(…)``: nothing is
shared, so each kernel is compiled as it is alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fusionq.codegen.device_source import DeviceSource
from fusionq.codegen.helper_functions import PREFIX
from fusionq.ir.nodes import Kernel
from fusionq.ir.walk import is_persistent, takes_work_groups

_OWN = re.compile(rf"\b{PREFIX}\w+")
"""Names at the top level of a text, beside its kernel's."""


def may_be_joined(kernel: Kernel) -> bool:
    """Whether ``kernel`` is compiled alike beside others: compilers for CPUs make loops of the
    work-items of a group where a unit has barriers, which shows in all of it."""
    has_sub_groups = is_persistent(kernel) or kernel.sub_group_size is not None
    return not (has_sub_groups or takes_work_groups(kernel))


def joined(sources: Sequence[DeviceSource]) -> tuple[str, tuple[str, ...]]:
    """One text of kernels that may be joined, and what their entry points are called there."""
    texts, names = [], []
    for number, source in enumerate(sources):
        text = _OWN.sub(rf"\g<0>_{number}", source.text)
        name = f"{PREFIX}{number}_{source.entry_point}"
        before, found, behind = text.partition(f" {source.entry_point}(")
        assert found, "a kernel has its head"
        texts.append(f"{before} {name}({behind}")
        names.append(name)
    return "\n".join(texts), tuple(names)
