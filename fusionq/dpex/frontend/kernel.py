"""Kernels made with ``numba_dpex.kernel``, taken in by their Python source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from fusionq.base.errors import ArgumentError
from fusionq.dpex.frontend.captures import DeviceFunction, DpexCaptures
from fusionq.dpex.frontend.signatures import kernel_problem
from fusionq.frontend.captures import Captures
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.signature import Signature
from fusionq.ir.nodes import Kernel

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
        # Not the dispatcher itself, which may then be garbage collected with its kernel.
        self._device_function = replace(DeviceFunction.of(dispatcher), dispatcher=None)
        self._signatures = DeviceFunction.of(dispatcher).signatures
        super().__init__(self._device_function)
        self._typing_context = dispatcher.targetdescr.typing_context

    def _capture(self) -> Captures:
        return DpexCaptures(self._device_function, self._typing_context)

    def _check_arguments(self, signature: Signature) -> None:
        super()._check_arguments(signature)
        if self._signatures:
            problem = kernel_problem(self._signatures, signature)
            if problem is not None:
                raise ArgumentError(f"the kernel {self.name!r} ({self.span}) {problem}")

    def _lower(self, signature: Signature, regions: bool) -> Kernel:
        from fusionq.dpex.frontend.indices import with_wraparound
        from fusionq.dpex.frontend.integers import check_narrow_integers
        from fusionq.dpex.frontend.lowering import DpexLowering
        from fusionq.frontend.lowering import lower_kernel

        kernel = lower_kernel(self.callee, signature, self._captured, DpexLowering, regions)
        check_narrow_integers(kernel)
        return with_wraparound(kernel)
