"""Kernels that a function makes anew at each call: those that are alike go by the first one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import overload

from fusionq.frontend.kernel import KernelFunction

MOST_KERNELS = 1024
"""Beyond so many all are forgotten."""

_first: dict[Hashable, KernelFunction] = {}


@overload
def first_like(kernel: KernelFunction) -> KernelFunction: ...


@overload
def first_like(kernel: object) -> object: ...


def first_like(kernel: object) -> object:
    """The first kernel of the process with the source lines, the captured constants and the options
    of ``kernel``; that itself where there is none, for what is no kernel of this package's own
    language, and for one whose source cannot be had, of which its check says more.  Defaults of
    parameters are not compared: who submits the other one gives all arguments."""
    if not isinstance(kernel, KernelFunction) or type(kernel) is not KernelFunction:
        return kernel
    first = kernel.first
    if first is None:
        try:
            key = (
                kernel.fingerprint, kernel.text, kernel.item_annotation,
                kernel.sub_group_size, kernel.work_group_size,
            )  # fmt: skip
        except Exception:
            return kernel
        if len(_first) >= MOST_KERNELS:
            _first.clear()
        first = kernel.first = _first.setdefault(key, kernel)
    return first
