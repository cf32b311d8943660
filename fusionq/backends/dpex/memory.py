"""How a generated kernel reaches its arrays and scalars, and which arguments that takes."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Sequence

from fusionq.codegen import Extent, Pointer, Scalar, Slot, Stride
from fusionq.codegen.text import Text
from fusionq.ir.nodes import ArrayDecl, ArrayParam, Kernel, ScalarParam

_SUM, _PRODUCT, _ATOM = 9, 10, 12
"""Strengths as in ``expressions``."""


class Names:
    """Hands out Python identifiers: unique, and as close to the wanted name as can be."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken = {*keyword.kwlist, *dir(builtins), *taken}
        self._of: dict[str, str] = {}

    def fresh(self, wanted: str) -> str:
        """A new identifier like ``wanted``."""
        stem = re.sub(r"\W", "_", wanted) or "v"
        stem = f"v_{stem}" if stem[0].isdigit() else stem
        identifier, number = stem, 2
        while identifier in self._taken:
            identifier, number = f"{stem}_{number}", number + 1
        self._taken.add(identifier)
        return identifier

    def of(self, name: str) -> str:
        """The identifier for the kernel's name ``name``: one and the same at each call."""
        if name not in self._of:
            self._of[name] = self.fresh(name)
        return self._of[name]


class Memory:
    """Index arithmetic; records what it uses, so that only that is passed."""

    def __init__(self, kernel: Kernel, names: Names) -> None:
        self.names = names
        self._kernel = kernel
        self._arrays: dict[str, ArrayParam | ArrayDecl] = {
            p.name: p for p in kernel.params if isinstance(p, ArrayParam)
        }
        self._arrays.update((a.name, a) for a in kernel.arrays)
        self._identifiers: dict[Slot, str] = {}

    def extent(self, name: str, dim: int) -> Text:
        """``name.shape[dim]``."""
        array = self._arrays[name]
        if isinstance(array, ArrayDecl):
            return Text(str(array.shape[dim]), _ATOM)
        return Text(self.identifier(Extent(name, dim)), _ATOM)

    def scalar(self, name: str) -> str:
        """The identifier of a scalar parameter."""
        return self.identifier(Scalar(name))

    def offset(self, name: str, indices: Sequence[Text]) -> Text:
        """The offset of an element, in elements from the first."""
        array = self._arrays[name]
        if isinstance(array, ArrayParam):
            self.identifier(Pointer(name))
        if not indices:
            return Text("0", _ATOM)
        if isinstance(array, ArrayDecl) or array.contiguous:
            offset = indices[0]
            for dim, index in enumerate(indices[1:], 1):
                row = f"{offset.at(_PRODUCT)} * {self.extent(name, dim).text}"
                offset = Text(f"{row} + {index.at(_SUM + 1)}", _SUM)
            return offset
        terms = [
            f"{index.at(_PRODUCT)} * {self.identifier(Stride(name, dim))}"
            for dim, index in enumerate(indices)
        ]
        return Text(" + ".join(terms), _PRODUCT if len(terms) == 1 else _SUM)

    def identifier(self, slot: Slot) -> str:
        """The identifier of an argument, which is passed from now on."""
        if slot not in self._identifiers:
            match slot:
                case Pointer():
                    identifier = self.names.fresh(f"{slot.param}_address")
                case Extent():
                    identifier = self.names.fresh(f"{slot.param}_shape{slot.dim}")
                case Stride():
                    identifier = self.names.fresh(f"{slot.param}_stride{slot.dim}")
                case Scalar():
                    identifier = self.names.of(slot.param)
            self._identifiers[slot] = identifier
        return self._identifiers[slot]

    def slots(self) -> tuple[Slot, ...]:
        """What was used: pointer, extents, strides of each array, and scalars, in parameter
        order."""
        candidates: list[Slot] = []
        for param in self._kernel.params:
            if isinstance(param, ScalarParam):
                candidates.append(Scalar(param.name))
            else:
                dims = range(param.ndim)
                candidates.append(Pointer(param.name))
                candidates += [Extent(param.name, dim) for dim in dims]
                candidates += [Stride(param.name, dim) for dim in dims]
        return tuple(slot for slot in candidates if slot in self._identifiers)
