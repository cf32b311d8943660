"""A kernel's arguments in the form in which devices take them, for many launches."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusionq.backends.arguments import bound_by_name, check_fits, misfit, values_of
from fusionq.backends.base import ArrayBinding, Binding
from fusionq.base.identity_cache import cached_by_identity
from fusionq.codegen.device_source import ExtentArgument, Pointer, Scalar, Slot, Stride
from fusionq.ir.interval_arithmetic import Interval
from fusionq.ir.nodes import Kernel, ScalarParam

_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_uint8, "int8": ctypes.c_uint8, "int16": ctypes.c_int16,
    "int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "bfloat16": ctypes.c_uint16, "float16": ctypes.c_uint16, "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}  # fmt: skip
"""bfloat16, float16 and int8 (which dpctl does not take) travel as their bits."""


@cached_by_identity
def _pointers(slots: Sequence[Slot]) -> dict[str, int]:
    """Which of the arguments of ``slots`` are arrays' addresses, by parameter."""
    return {slot.param: k for k, slot in enumerate(slots) if type(slot) is Pointer}


class NativeArguments:
    """One ctypes object for each of ``slots``, made of ``bindings``, which are in the order of
    ``kernel.params``; ArgumentError where they do not fit."""

    __slots__ = ("_pointers", "_scalars", "values")

    def __init__(self, kernel: Kernel, slots: Sequence[Slot], bindings: Sequence[Binding]) -> None:
        by_name = bound_by_name(kernel, bindings)
        self._scalars: dict[str, tuple[ScalarParam, Any, Interval | None]] = {}
        """The parameter, the argument, and what values it may have if it is an integer."""
        self._pointers = _pointers(slots)
        """Which of ``values`` is an array's address."""
        self.values = [self._argument(slot, kernel, by_name[slot.param]) for slot in slots]
        """They stay where they are in memory when a scalar changes."""

    def elsewhere(self, addresses: Mapping[str, int]) -> NativeArguments:
        """The same with the arrays of some parameters at other ``addresses``."""
        other = object.__new__(NativeArguments)
        other.values = values = self.values.copy()
        other._pointers = pointers = self._pointers
        for name, address in addresses.items():
            position = pointers.get(name)
            if position is not None:  # else the kernel does not use it
                values[position] = ctypes.c_uint64(address)
        other._scalars = scalars = {}
        for name, (param, argument, interval) in self._scalars.items():
            copy = type(argument)(argument.value)
            values[values.index(argument)] = copy
            scalars[name] = param, copy, interval
        return other

    def _argument(self, slot: Slot, kernel: Kernel, binding: Binding) -> Any:
        if type(binding) is ArrayBinding:
            if type(slot) is Pointer:
                return ctypes.c_uint64(binding.address)
            if type(slot) is ExtentArgument:
                return ctypes.c_int64(binding.shape[slot.dim])
            if type(slot) is Stride:
                return ctypes.c_int64(binding.strides[slot.dim])
        param = kernel.param(slot.param)
        if not isinstance(slot, Scalar) or not isinstance(binding, (bool, int, float, np.generic)):
            raise misfit(kernel, param, binding)
        assert isinstance(param, ScalarParam)
        argument = _C_TYPES[param.type.name]()
        self._scalars[slot.param] = (param, argument, values_of(param))
        self.set_scalar(slot.param, binding)
        return argument

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> bool:
        """Give scalar parameter ``name`` another value; whether its bits are others than before.

        ArgumentError if an integer does not fit the parameter's type.
        """
        if name not in self._scalars:  # the kernel does not use it
            return False
        param, argument, values = self._scalars[name]
        before = bytes(argument)
        plain = value.item() if isinstance(value, np.generic) else value
        if values is not None:
            check_fits(param, plain, values)
            argument.value = int(plain)
        elif param.type.name in ("bfloat16", "float16"):
            with np.errstate(over="ignore"):
                argument.value = int(param.type.dtype.type(value).view(np.uint16))
        else:
            argument.value = plain
        return bytes(argument) != before
