"""What a kernel of numba-dpex sees of its surroundings, and what numba says of types."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

from fusionq.base.frozen import dataclass
from fusionq.dpex.frontend.typing import DpexTyping
from fusionq.dpex.kernel_api import is_dpex_function, translated
from fusionq.frontend.callees import Callee
from fusionq.frontend.captures import Captures


@dataclass(frozen=True, slots=True, eq=False)
class DeviceFunction(Callee):
    """A function made with ``numba_dpex.device_func``, or the kernel itself.

    ``divides_by_zero``: whether numba computes a division by zero in it; else the work-item ends.
    ``dispatcher``: numba's object, where the decorator names signatures, for which alone it is
    compiled; else None.
    """

    divides_by_zero: bool = True
    dispatcher: Any = None

    @staticmethod
    def of(dispatcher: Any) -> DeviceFunction:
        """What ``numba_dpex.device_func`` or ``numba_dpex.kernel`` has returned, as a callee."""
        divides_by_zero = dispatcher.targetoptions.get("error_model", "python") == "numpy"
        return DeviceFunction(
            dispatcher.py_func,
            divides_by_zero=bool(divides_by_zero),
            dispatcher=None if dispatcher._can_compile else dispatcher,
        )

    @property
    def signatures(self) -> tuple[Any, ...]:
        """The signatures that the decorator names, as numba has typed them."""
        return () if self.dispatcher is None else tuple(self.dispatcher.nopython_signatures)

    @property
    def identity(self) -> str:
        return f"device function {self.divides_by_zero} {list(map(str, self.signatures))}"


class DpexCaptures(Captures):
    """The names that a kernel of numba-dpex refers to, as what they are called here, and what
    numba says of types."""

    def __init__(self, kernel: DeviceFunction, typing_context: Any, as_numpy: bool) -> None:
        self._as_numpy = as_numpy
        self.kernel = kernel = self._under(kernel)
        self._typing_context = typing_context
        super().__init__(kernel)

    @cached_property
    def numba(self) -> DpexTyping:
        """What numba's type inference says."""
        return DpexTyping(self._typing_context)

    def _scan(self) -> str:
        # Of another kernel than the same text with our own rules is, and with another numba's.
        fingerprint = super()._scan()
        version = import_module("numba").__version__
        rules = f"numba {version} {self.kernel.identity} {fingerprint}"
        return hashlib.sha256(rules.encode()).hexdigest()

    def callee(self, obj: object) -> Callee | None:
        """What a call of ``obj`` inlines; None for what is no Python code of the user's."""
        if is_dpex_function(obj):
            return self._under(DeviceFunction.of(obj))
        return super().callee(obj)

    def _under(self, function: DeviceFunction) -> DeviceFunction:
        """The function under the queue's error model."""
        return replace(function, divides_by_zero=True) if self._as_numpy else function

    def name(self, function: FunctionType, name: str) -> object:
        """What a free name of the function stands for, or MISSING."""
        return translated(super().name(function, name))

    def attribute(self, owner: object, name: str) -> object:
        """An attribute of a module or another compile-time object, or MISSING."""
        return translated(super().attribute(owner, name))
