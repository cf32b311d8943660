"""Kernels made with ``numba_dpex.kernel``, taken in by their Python source.

Nothing of numba-dpex is imported here: its objects are known by the module of their class, and
whoever passes one has imported it.
"""

from __future__ import annotations

from enum import Enum
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fusionq import language
from fusionq.frontend.captures import MISSING, Captures
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.signature import Signature
from fusionq.frontend.source import FunctionSource
from fusionq.ir.nodes import Kernel
from fusionq.language import LocalAccessor, NdRange, Range

_PACKAGE = "numba_dpex"
_KERNEL_API = "numba_dpex.kernel_api"


def is_dpex_kernel(obj: object) -> bool:
    """Whether ``obj`` was made with ``numba_dpex.kernel`` or ``numba_dpex.device_func``."""
    return _module_of(type(obj)).startswith(_PACKAGE) and isinstance(
        getattr(obj, "py_func", None), FunctionType
    )


_KERNELS: WeakKeyDictionary[Any, DpexKernelFunction] = WeakKeyDictionary()


def dpex_kernel(dispatcher: Any) -> DpexKernelFunction:
    """The kernel that ``numba_dpex.kernel`` has made, as one of ours; always the same one."""
    kernel = _KERNELS.get(dispatcher)
    if kernel is None:
        kernel = _KERNELS.setdefault(dispatcher, DpexKernelFunction(dispatcher))
    return kernel


def translated(obj: Any) -> Any:
    """What stands for an object of ``numba_dpex.kernel_api`` here; other objects unchanged.

    Classes, functions and the members of enumerations have the same names; a range or a
    LocalAccessor is made anew; a ``numba_dpex.device_func`` becomes its Python function.
    """
    if is_dpex_kernel(obj):
        return obj.py_func
    if _module_of(obj).startswith(_KERNEL_API) and hasattr(obj, "__name__"):
        return getattr(language, obj.__name__, obj)
    kind = type(obj)
    if not _module_of(kind).startswith(_KERNEL_API):
        return obj
    if isinstance(obj, Enum):
        return getattr(language, kind.__name__)[obj.name]
    match kind.__name__:
        case "Range":
            return Range(*obj)
        case "NdRange":
            return NdRange(tuple(obj.global_range), tuple(obj.local_range))
        case "LocalAccessor":
            return LocalAccessor(obj._shape, obj._dtype)
    return obj


def _module_of(obj: object) -> str:
    module = getattr(obj, "__module__", None)
    return module if isinstance(module, str) else ""


class DpexKernelFunction(KernelFunction):
    """A kernel of numba-dpex.  Where its source means something else to numba than here,
    ``specialise`` raises KernelLanguageError, which names the difference.

    ``dispatcher``: the object that ``numba_dpex.kernel`` has returned.
    """

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        self._typing_context = dispatcher.targetdescr.typing_context
        self._divides_by_zero = _divides_by_zero(dispatcher)

    def _capture(self) -> Captures:
        return DpexCaptures(self.function, self._divides_by_zero)

    def _lower(self, source: FunctionSource, signature: Signature) -> Kernel:
        from fusionq.frontend.dpex_integers import check_narrow_integers
        from fusionq.frontend.dpex_lowering import dpex_lowering
        from fusionq.frontend.lowering import lower_kernel

        lowering = dpex_lowering(self._typing_context)
        kernel = lower_kernel(source, signature, self._captured, lowering)
        check_narrow_integers(kernel)
        return kernel


class DpexCaptures(Captures):
    """The names that a kernel of numba-dpex refers to, as what they are called here."""

    def __init__(self, kernel: FunctionType, divides_by_zero: bool) -> None:
        self._zero_divisors = {kernel: divides_by_zero}
        super().__init__(kernel)

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
        if is_dpex_kernel(obj):
            self._zero_divisors[own] = _divides_by_zero(obj)
        return own


def _divides_by_zero(dispatcher: Any) -> bool:
    return bool(dispatcher.targetoptions.get("error_model", "python") == "numpy")
