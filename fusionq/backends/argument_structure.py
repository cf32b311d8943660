"""A kernel's arguments as the bytes of one structure, for devices' runtimes that take that."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import copysign, inf
from typing import NamedTuple

import numpy as np

from fusionq.backends.arguments import check_count, check_fits, misfit, values_of
from fusionq.backends.base import ArrayBinding, Binding
from fusionq.base.identity_cache import cached_by_identity
from fusionq.codegen.device_source import ExtentArgument, Pointer, Scalar, Slot, Stride
from fusionq.ir.interval_arithmetic import Interval
from fusionq.ir.nodes import Kernel, ScalarParam

_FORMATS = {
    "bool": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B",
    "uint16": "H", "uint32": "I", "uint64": "Q", "bfloat16": "H", "float16": "H", "float32": "f",
    "float64": "d",
}  # fmt: skip
"""As what values are written by ``struct``; bfloat16 and float16 as their bits."""
_ADDRESS, _COUNT = "Q", "q"


class _Member(NamedTuple):
    """A member of the structure: what a slot of the kernel takes of a parameter's binding."""

    position: int
    """Which of the kernel's parameters."""
    kind: str
    """Of an array ``"address"``, ``"shape"`` or ``"strides"``; ``"scalar"``."""
    dim: int
    scalar: _ScalarMember | None
    """Where the parameter is a scalar."""


class _ScalarMember(NamedTuple):
    param: ScalarParam
    bounds: Interval | None
    """What values it may have, if it is an integer."""
    begin: int
    """Its first byte."""
    format: struct.Struct

    def number(self, value: bool | int | float | np.generic) -> int | float:
        """What ``struct`` writes for ``value``; ArgumentError if an integer does not fit."""
        param, plain = self.param, value.item() if isinstance(value, np.generic) else value
        if self.bounds is not None:
            check_fits(param, plain, self.bounds)
            return int(plain)
        name = param.type.name
        if name in ("bfloat16", "float16"):
            with np.errstate(over="ignore"):
                return int(param.type.dtype.type(value).view(np.uint16))
        if name == "bool":
            return int(bool(plain))
        if name == "float32":
            try:
                self.format.pack(plain)
            except OverflowError:  # beyond float32
                return copysign(inf, plain)
        return plain


class _Layout(NamedTuple):
    """Where a kernel's arguments lie: each at the next multiple of its size, as in C."""

    members: tuple[_Member, ...]
    all: struct.Struct
    """Of all members, in order."""
    addresses: dict[str, int]
    """The first byte of each array's address, by parameter."""
    scalars: dict[str, _ScalarMember]


def _kind_of(slot: Slot) -> tuple[str, int]:
    if isinstance(slot, ExtentArgument):
        return "shape", slot.dim
    if isinstance(slot, Stride):
        return "strides", slot.dim
    return ("address" if isinstance(slot, Pointer) else "scalar"), 0


@cached_by_identity
def _layout(slots: Sequence[Slot], kernel: Kernel) -> _Layout:
    params = {param.name: (k, param) for k, param in enumerate(kernel.params)}
    members, addresses = [], {}
    scalars: dict[str, _ScalarMember] = {}
    format, widest = "@", 1
    for slot in slots:
        position, param = params[slot.param]
        code = _ADDRESS if type(slot) is Pointer else _COUNT
        if type(slot) is Scalar and isinstance(param, ScalarParam):
            code = _FORMATS[param.type.name]
        format += code
        size = struct.calcsize(code)
        begin, widest = struct.calcsize(format) - size, max(widest, size)
        scalar = None
        if type(slot) is Scalar and isinstance(param, ScalarParam):
            scalar = _ScalarMember(param, values_of(param), begin, struct.Struct(f"={code}"))
            scalars[param.name] = scalar
        elif type(slot) is Pointer:
            addresses[param.name] = begin
        members.append(_Member(position, *_kind_of(slot), scalar))
    end = {1: "0B", 2: "0H", 4: "0I", 8: "0Q"}[widest]  # a multiple of the widest
    return _Layout(tuple(members), struct.Struct(format + end), addresses, scalars)


_write_address = struct.Struct("=Q").pack_into


class ArgumentStructure:
    """The structure of ``slots``, made of ``bindings``, which are in the order of
    ``kernel.params``; ArgumentError where they do not fit."""

    __slots__ = ("_layout", "content")

    def __init__(self, kernel: Kernel, slots: Sequence[Slot], bindings: Sequence[Binding]) -> None:
        check_count(kernel, bindings)
        self._layout = _layout(slots, kernel)
        self.content = bytearray(self._packed(kernel, bindings))
        """Its bytes."""

    def bind(self, kernel: Kernel, bindings: Sequence[Binding]) -> None:
        """Have other ``bindings``, all of them."""
        self.content[:] = self._packed(kernel, bindings)

    def _packed(self, kernel: Kernel, bindings: Sequence[Binding]) -> bytes:
        numbers: list[int | float] = []
        for position, kind, dim, scalar in self._layout.members:
            binding = bindings[position]
            if type(binding) is ArrayBinding:
                if kind == "address":
                    numbers.append(binding.address)
                    continue
                if kind == "shape":
                    numbers.append(binding.shape[dim])
                    continue
                if kind == "strides":
                    numbers.append(binding.strides[dim])
                    continue
            if scalar is None or not isinstance(binding, (bool, int, float, np.generic)):
                raise misfit(kernel, kernel.params[position], binding)
            numbers.append(scalar.number(binding))
        return self._layout.all.pack(*numbers)

    def copy(self) -> ArgumentStructure:
        """The same, which takes other addresses and scalars by itself."""
        other = object.__new__(ArgumentStructure)
        other._layout, other.content = self._layout, bytearray(self.content)
        return other

    def pointers(self, places: Mapping[str, int]) -> list[tuple[int, int]]:
        """Of the arrays of ``places``, by parameter, that the kernel uses: where their addresses
        are in the structure, each with the place of its array."""
        own = self._layout.addresses
        return [(own[name], place) for name, place in places.items() if name in own]

    def move(self, pointers: Sequence[tuple[int, int]], addresses: Sequence[int | None]) -> None:
        """Have these ``pointers`` be those of their places among ``addresses``."""
        content = self.content
        for begin, place in pointers:
            _write_address(content, begin, addresses[place])

    def set_scalar(self, name: str, value: bool | int | float | np.generic) -> bool:
        """Give scalar parameter ``name`` another value; whether the structure changes.

        ArgumentError if an integer does not fit the parameter's type.
        """
        scalar = self._layout.scalars.get(name)
        if scalar is None:  # the kernel does not use it
            return False
        written = scalar.format.pack(scalar.number(value))
        begin, content = scalar.begin, self.content
        end = begin + len(written)
        if content[begin:end] == written:
            return False
        content[begin:end] = written
        return True
