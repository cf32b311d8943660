"""How a kernel's arrays and scalars are reached, and which arguments that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusionq.codegen.device_source import ExtentArgument, Pointer, Scalar, Slot, Stride
from fusionq.codegen.names import Names
from fusionq.ir.nodes import ArrayDecl, ArrayParam, Kernel, ScalarParam
from fusionq.ir.text import PRIMARY, PRODUCT, SUM, Text
from fusionq.ir.types import INT64, UINT64, ScalarType


def slot_type(kernel: Kernel, slot: Slot) -> ScalarType:
    """The type of the argument that a slot stands for."""
    if isinstance(slot, Pointer):
        return UINT64
    param = kernel.param(slot.param)
    return param.type if isinstance(param, ScalarParam) else INT64


class Memory:
    """Index arithmetic; records what it uses, so that only that is passed."""

    def __init__(self, kernel: Kernel, names: Names) -> None:
        self.ndim = kernel.ndim
        self._kernel = kernel
        self._names = names
        self._arrays: dict[str, ArrayParam | ArrayDecl] = {
            p.name: p for p in kernel.params if isinstance(p, ArrayParam)
        }
        self._arrays.update((a.name, a) for a in kernel.arrays)
        self._identifiers: dict[Slot, str] = {}
        for name in self._arrays:
            names.of(name)

    def array(self, name: str) -> ArrayParam | ArrayDecl:
        """The declaration of array ``name``."""
        return self._arrays[name]

    def is_linear(self, name: str) -> bool:
        """Whether an element's offset grows with its indices, as in C-contiguous memory."""
        array = self._arrays[name]
        return isinstance(array, ArrayDecl) or array.contiguous

    def known_extent(self, name: str, dim: int) -> int | None:
        """``name.shape[dim]``, where it is a constant."""
        array = self._arrays[name]
        return array.shape[dim] if isinstance(array, ArrayDecl) else array.extent(dim)

    def extent(self, name: str, dim: int) -> Text:
        """``name.shape[dim]``; of any type of integer where it is a constant."""
        known = self.known_extent(name, dim)
        if known is not None:
            return Text(str(known), PRIMARY)
        return Text(self.identifier(ExtentArgument(name, dim)), PRIMARY)

    def scalar(self, name: str) -> str:
        """The identifier of a scalar parameter."""
        return self.identifier(Scalar(name))

    def offset(
        self,
        name: str,
        indices: Sequence[Text],
        as_index: Callable[[Text], Text] = lambda extent: extent,
    ) -> Text:
        """The offset of an element, in elements from the first; ``as_index`` gives an extent the
        type of the indices."""
        array = self._arrays[name]
        if isinstance(array, ArrayParam):
            self.identifier(Pointer(name))
        if not indices:
            return Text("0", PRIMARY)
        if self.is_linear(name):
            offset = indices[0]
            for dim, index in enumerate(indices[1:], 1):
                extent = as_index(self.extent(name, dim))
                row = f"{offset.at(PRODUCT)} * {extent.at(PRODUCT + 1)}"
                offset = Text(f"{row} + {index.at(SUM)}", SUM)
            return offset
        assert isinstance(array, ArrayParam)
        *outer, last = (
            Text(f"{index.at(PRODUCT)} * {self.identifier(Stride(name, dim))}", PRODUCT)
            if dim + 1 < array.ndim or not array.unit_stride
            else index
            for dim, index in enumerate(indices)
        )
        if not outer:
            return last
        return Text(" + ".join([*(t.text for t in outer), last.at(SUM)]), SUM)

    def identifier(self, slot: Slot) -> str:
        """The identifier of an argument, which is passed from now on."""
        if slot not in self._identifiers:
            match slot:
                case Pointer():
                    identifier = self._names.fresh(f"{slot.param}_address")
                case ExtentArgument():
                    identifier = self._names.fresh(f"{slot.param}_shape{slot.dim}")
                case Stride():
                    identifier = self._names.fresh(f"{slot.param}_stride{slot.dim}")
                case Scalar():
                    identifier = self._names.of(slot.param)
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
                candidates += [ExtentArgument(param.name, dim) for dim in dims]
                candidates += [Stride(param.name, dim) for dim in dims]
        return tuple(slot for slot in candidates if slot in self._identifiers)
