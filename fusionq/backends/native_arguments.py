"""A kernel's arguments in the form in which devices take them, for many launches."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusionq.backends.arguments import check_count, check_fits, misfit, values_of
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
"""As what values are written; bfloat16, float16 and int8 (which dpctl does not take) as their
bits."""

_SENT_AS = {1: ctypes.c_uint8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}
"""As what the same bits are handed to the device's runtime, by bytes: dpctl compares an argument's
type with one after the other at each launch, and comes to these first (a float takes 0.73 µs, an
int32 0.45, an int64 0.6)."""


class _Written(NamedTuple):
    """A scalar argument, as it is written."""

    param: ScalarParam
    value: Any
    """The ctypes object, in the memory of the argument."""
    bounds: Interval | None
    """What values it may have, if it is an integer."""
    position: int
    """Of the argument."""


class _Part(NamedTuple):
    """An argument of a kernel: what a slot of it takes of a parameter's binding."""

    slot: Slot
    position: int
    """Which of the kernel's parameters."""
    scalar: ScalarParam | None
    """The parameter, where it is a scalar."""
    bounds: Interval | None
    """What values it may have, if it is an integer."""


@cached_by_identity
def _parts(slots: Sequence[Slot], kernel: Kernel) -> tuple[list[_Part], dict[str, int]]:
    """The arguments of ``kernel``, whose ``slots`` they are, and which of them are addresses of
    arrays, by parameter."""
    params = {param.name: (k, param) for k, param in enumerate(kernel.params)}
    parts = []
    for slot in slots:
        position, param = params[slot.param]
        if type(slot) is Scalar and isinstance(param, ScalarParam):
            parts.append(_Part(slot, position, param, values_of(param)))
        else:
            parts.append(_Part(slot, position, None, None))
    return parts, {slot.param: k for k, slot in enumerate(slots) if type(slot) is Pointer}


class NativeArguments:
    """One ctypes object for each of ``slots``, made of ``bindings``, which are in the order of
    ``kernel.params``; ArgumentError where they do not fit."""

    __slots__ = ("_pointers", "_scalars", "values")

    def __init__(self, kernel: Kernel, slots: Sequence[Slot], bindings: Sequence[Binding]) -> None:
        check_count(kernel, bindings)
        self._scalars: dict[str, _Written] = {}
        parts, self._pointers = _parts(slots, kernel)
        """Which of ``values`` is an array's address."""
        self.values: list[Any] = []
        """They stay where they are in memory when their numbers change."""
        for slot, _, scalar, bounds in parts:
            if type(slot) is not Scalar or scalar is None:
                self.values.append(ctypes.c_int64())
                continue
            written = _C_TYPES[scalar.type.name]
            argument = _SENT_AS[ctypes.sizeof(written)]()
            value = written.from_buffer(argument)
            self._scalars[scalar.name] = _Written(scalar, value, bounds, len(self.values))
            self.values.append(argument)
        self.bind(kernel, slots, bindings)

    def bind(self, kernel: Kernel, slots: Sequence[Slot], bindings: Sequence[Binding]) -> None:
        """Have other ``bindings``, all of them, of the same ``kernel``; ArgumentError where they do
        not fit."""
        parts, _ = _parts(slots, kernel)
        for argument, (slot, position, scalar, _) in zip(self.values, parts, strict=True):
            binding = bindings[position]
            if type(binding) is ArrayBinding:
                if type(slot) is Pointer:
                    argument.value = binding.address
                    continue
                if type(slot) is ExtentArgument:
                    argument.value = binding.shape[slot.dim]
                    continue
                if type(slot) is Stride:
                    argument.value = binding.strides[slot.dim]
                    continue
            if scalar is None or not isinstance(binding, (bool, int, float, np.generic)):
                raise misfit(kernel, kernel.params[position], binding)
            self.set_scalar(scalar.name, binding)

    def copy(self) -> NativeArguments:
        """The same, which takes others by itself."""
        other = object.__new__(NativeArguments)
        other.values = values = [type(argument)(argument.value) for argument in self.values]
        other._pointers = self._pointers
        other._scalars = {
            name: _Written(param, type(value).from_buffer(values[position]), bounds, position)
            for name, (param, value, bounds, position) in self._scalars.items()
        }
        return other

    def addresses(self) -> dict[str, Any]:
        """The arguments that are arrays' addresses, by parameter."""
        return {name: self.values[position] for name, position in self._pointers.items()}

    def pointers(self, places: Mapping[str, int]) -> list[tuple[Any, int]]:
        """The arguments that are arrays' addresses, each with the place of its array, by
        parameter; without those of ``places`` that the kernel does not use."""
        own = self._pointers
        return [(self.values[own[name]], place) for name, place in places.items() if name in own]

    def move(self, pointers: Sequence[tuple[Any, int]], addresses: Sequence[int | None]) -> None:
        """Have these ``pointers`` be those of their places among ``addresses``."""
        for argument, place in pointers:
            argument.value = addresses[place]

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> bool:
        """Give scalar parameter ``name`` another value; whether its bits are others than before.

        ArgumentError if an integer does not fit the parameter's type.
        """
        if name not in self._scalars:  # the kernel does not use it
            return False
        param, argument, values, _ = self._scalars[name]
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
