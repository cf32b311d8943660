"""What a kernel of numba-dpex sees of its surroundings, and what numba says of types."""

from __future__ import annotations

import hashlib
from functools import cached_property
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from fusionq.dpex.frontend.typing import DpexTyping
from fusionq.dpex.kernel_api import is_dpex_function, translated
from fusionq.frontend.captures import MISSING, Captures


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
            self._zero_divisors[own] = divides_by_zero(obj)
        return own


def divides_by_zero(dispatcher: Any) -> bool:
    """Whether numba computes a division by zero in what ``dispatcher`` compiles."""
    return bool(dispatcher.targetoptions.get("error_model", "python") == "numpy")
