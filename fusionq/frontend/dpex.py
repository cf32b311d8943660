"""Kernels made with ``numba_dpex.kernel``, taken in by their Python source."""

from __future__ import annotations

import hashlib
from functools import cached_property
from importlib import import_module
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from fusionq.frontend.captures import MISSING, Captures
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.signature import Signature
from fusionq.frontend.source import FunctionSource
from fusionq.ir.nodes import Kernel
from fusionq.language.dpex import is_dpex_function, translated

if TYPE_CHECKING:
    from fusionq.frontend.dpex_typing import DpexTyping

_KERNELS: WeakKeyDictionary[Any, DpexKernelFunction] = WeakKeyDictionary()


def dpex_kernel(dispatcher: Any) -> DpexKernelFunction:
    """The kernel that ``numba_dpex.kernel`` has made, as one of ours; always the same one."""
    kernel = _KERNELS.get(dispatcher)
    if kernel is None:
        kernel = _KERNELS.setdefault(dispatcher, DpexKernelFunction(dispatcher))
    return kernel


class DpexKernelFunction(KernelFunction):
    """A kernel of numba-dpex.  Where its source means something else to numba than here,
    ``specialise`` raises KernelLanguageError, which names the difference.

    ``dispatcher``: the object that ``numba_dpex.kernel`` has returned.
    """

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        # Not the dispatcher itself, which may then be garbage collected with its kernel.
        self._divides_by_zero = _divides_by_zero(dispatcher)
        self._typing_context = dispatcher.targetdescr.typing_context

    def _capture(self) -> Captures:
        return DpexCaptures(self.function, self._divides_by_zero, self._typing_context)

    def _lower(self, source: FunctionSource, signature: Signature, regions: bool) -> Kernel:
        from fusionq.frontend.dpex_indices import with_wraparound
        from fusionq.frontend.dpex_integers import check_narrow_integers
        from fusionq.frontend.dpex_lowering import DpexLowering
        from fusionq.frontend.lowering import lower_kernel

        kernel = lower_kernel(source, signature, self._captured, DpexLowering, regions)
        check_narrow_integers(kernel)
        return with_wraparound(kernel)


class DpexCaptures(Captures):
    """The names that a kernel of numba-dpex refers to, as what they are called here, and what
    numba says of types."""

    def __init__(self, kernel: FunctionType, divides_by_zero: bool, typing_context: Any) -> None:
        self._zero_divisors = {kernel: divides_by_zero}
        self._typing_context = typing_context
        super().__init__(kernel)

    @cached_property
    def numba(self) -> DpexTyping:
        """What numba's type inference says."""
        from fusionq.frontend.dpex_typing import DpexTyping

        return DpexTyping(self._typing_context)

    def _scan(self) -> str:
        # Of another kernel than the same text with our own rules is, and with another numba's.
        fingerprint = super()._scan()
        version = import_module("numba").__version__
        rules = f"numba {version} {list(self._zero_divisors.values())} {fingerprint}"
        return hashlib.sha256(rules.encode()).hexdigest()

    def name(self, function: FunctionType, name: str) -> object:
        """What a free name of the function stands for, or MISSING."""
        return self._own(super().name(function, name))

    def attribute(self, owner: object, name: str) -> object:
        """An attribute of a module or another compile-time object, or MISSING; dpnp's functions
        are NumPy's."""
        if isinstance(owner, ModuleType) and owner.__name__ == "dpnp":
            return getattr(np, name, MISSING)
        return self._own(super().attribute(owner, name))

    def divides_by_zero(self, function: FunctionType) -> bool:
        """Whether numba computes a division by zero in ``function``; else the work-item ends."""
        return self._zero_divisors.get(function, True)

    def _own(self, obj: object) -> object:
        own = translated(obj)
        if is_dpex_function(obj):
            self._zero_divisors[own] = _divides_by_zero(obj)
        return own


def _divides_by_zero(dispatcher: Any) -> bool:
    return bool(dispatcher.targetoptions.get("error_model", "python") == "numpy")
