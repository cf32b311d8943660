"""Kernels made with ``numba_dpex.kernel``, taken in by their Python source."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from fusionq.dpex.frontend.captures import DpexCaptures, divides_by_zero
from fusionq.frontend.captures import Captures
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.signature import Signature
from fusionq.frontend.source import FunctionSource
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
        super().__init__(dispatcher.py_func)
        # Not the dispatcher itself, which may then be garbage collected with its kernel.
        self._divides_by_zero = divides_by_zero(dispatcher)
        self._typing_context = dispatcher.targetdescr.typing_context

    def _capture(self) -> Captures:
        return DpexCaptures(self.function, self._divides_by_zero, self._typing_context)

    def _lower(self, source: FunctionSource, signature: Signature, regions: bool) -> Kernel:
        from fusionq.dpex.frontend.indices import with_wraparound
        from fusionq.dpex.frontend.integers import check_narrow_integers
        from fusionq.dpex.frontend.lowering import DpexLowering
        from fusionq.frontend.lowering import lower_kernel

        kernel = lower_kernel(source, signature, self._captured, DpexLowering, regions)
        check_narrow_integers(kernel)
        return with_wraparound(kernel)
