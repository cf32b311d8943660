"""Kernels made with ``numba_dpex.kernel``, taken in by their Python source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from fusionq.base.errors import ArgumentError
from fusionq.base.options import ErrorModel
from fusionq.dpex.frontend.captures import DeviceFunction, DpexCaptures
from fusionq.dpex.frontend.signatures import kernel_problem
from fusionq.frontend.captures import Captures
from fusionq.frontend.kernel import KernelFunction
from fusionq.frontend.signature import ConstantType, Signature
from fusionq.ir.nodes import Kernel
from fusionq.ir.types import BFLOAT16, ScalarType

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
        self._error_model: ErrorModel = "python"
        self._as_numpy: DpexKernelFunction | None = None

    def under(self, error_model: ErrorModel) -> KernelFunction:
        """The kernel on a queue with this error model: under ``"numpy"``, divisions by zero in it
        and in what it calls give NumPy's result, whatever its decorators say."""
        if error_model == self._error_model:
            return self
        with self._lock:
            if self._as_numpy is None:
                made = object.__new__(type(self))  # ``copy`` gives a kernel itself
                vars(made).update(vars(self))
                made._forget(error_model)
                self._as_numpy = made
            return self._as_numpy

    def _forget(self, error_model: ErrorModel) -> None:
        """Be the kernel of another error model, not lowered yet."""
        self._error_model = error_model
        self._captures, self._specialisations = None, {}

    def _capture(self) -> Captures:
        as_numpy = self._error_model == "numpy"
        return DpexCaptures(self._device_function, self._typing_context, as_numpy)

    def check_arguments(self, signature: Signature) -> None:
        super().check_arguments(signature)
        for name, argument in zip(
            self.names_of(len(signature.arguments)), signature.arguments, strict=True
        ):
            if isinstance(argument, ConstantType):
                if not isinstance(argument.value, tuple):
                    raise ArgumentError(
                        f"the argument {name!r} of the kernel {self.name!r} ({self.span}) is "
                        f"{argument.value!r}, which no type of numba-dpex is; make the kernel "
                        "with fusionq.kernel"
                    )
                continue
            if (argument if isinstance(argument, ScalarType) else argument.dtype) == BFLOAT16:
                raise ArgumentError(
                    f"the argument {name!r} of the kernel {self.name!r} ({self.span}) is of "
                    "bfloat16, a type that numba-dpex has not; make the kernel with fusionq.kernel"
                )
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
