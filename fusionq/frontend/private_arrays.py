"""PrivateArray: arrays that a kernel declares."""

from __future__ import annotations

import ast
from math import prod

import numpy as np

from fusionq.frontend.complex_numbers import complex_type
from fusionq.frontend.language_arguments import Arguments, LanguageArguments
from fusionq.frontend.memory import declarations
from fusionq.frontend.signature import ArrayType
from fusionq.frontend.typing_rules import named_type
from fusionq.frontend.values import (
    ArrayValue,
    Constant,
    NewPrivateArray,
    ObjectValue,
    TupleValue,
    Value,
)
from fusionq.ir.nodes import ArrayDecl, Const, For, Stmt, Store, Var
from fusionq.ir.record_types import record_type
from fusionq.ir.types import INT64, ScalarType


class PrivateArrays(LanguageArguments):
    """Lowers the making of private arrays."""

    def private_array(self, arguments: Arguments, node: ast.Call) -> Value:
        shape, place = arguments["shape"].value, arguments["shape"].node
        items = shape.items if isinstance(shape, TupleValue) else (shape,)
        extents = tuple(
            self.integer_constant(item, place, "the shape of a PrivateArray") for item in items
        )
        if not 1 <= len(extents) <= 3 or min(extents) < 1:
            self.fail(
                place,
                f"a PrivateArray of the shape {extents}",
                "Give one to three extents, each at least 1.",
            )
        dtype = self._dtype(arguments)
        if prod(extents) * dtype.nbytes >= 1 << 63:
            self.fail(
                place,
                f"a PrivateArray of the shape {extents}, of 2**63 bytes or more",
                "Give smaller extents: each work-item has such an array.",
            )
        zeros = self._flag(arguments) if "fill_zeros" in arguments else False
        return NewPrivateArray(ArrayType(dtype, len(extents)), extents, zeros)

    def _dtype(self, arguments: Arguments) -> ScalarType:
        argument = arguments["dtype"]
        obj = argument.value.object if isinstance(argument.value, ObjectValue) else None
        if isinstance(obj, np.dtype) and obj.names is not None:
            dtype: ScalarType | None = record_type(obj)
        else:
            dtype = complex_type(obj) or named_type(obj.type if isinstance(obj, np.dtype) else obj)
        if dtype is None:
            self.fail(
                argument.node,
                "this is no dtype of the kernel language",
                "Write a NumPy type such as np.float32, or the dtype of an array argument.",
            )
        return dtype.strong

    def _flag(self, arguments: Arguments) -> bool:
        argument = arguments["fill_zeros"]
        if not isinstance(argument.value, Constant):
            self.fail(
                argument.node, "fill_zeros is a constant", "Write fill_zeros=True, or leave it out."
            )
        return bool(argument.value.value)

    def declared(self, name: str, array: NewPrivateArray, node: ast.AST) -> ArrayValue:
        """The array under a name, filled with zeros if it was asked for."""
        name = self.fresh(name.replace(".", "_"))
        self.kernel.name_fields([(name, array.type)])
        fields = self.kernel.fields
        for made in declarations(name, array.type, array.shape, "private", fields):
            self.kernel.arrays[made.name] = made
            if array.fill_zeros:
                self.block.append(self._zeros(made, node))
        return ArrayValue(name, array.type)

    def _zeros(self, array: ArrayDecl, node: ast.AST) -> Stmt:
        span, name = self.span(node), array.name
        zero = self.convert(Constant(array.dtype, 0), array.dtype, node)
        if prod(array.shape) == 1:
            return Store(name, tuple(Const(INT64, 0) for _ in array.shape), zero, span)
        loops = [self.fresh(f"{name}_{d}") for d in range(len(array.shape))]
        filled: Stmt = Store(name, tuple(Var(INT64, k) for k in loops), zero, span)
        for loop, extent in zip(reversed(loops), reversed(array.shape), strict=True):
            stop = Const(INT64, extent)
            filled = For(loop, Const(INT64, 0), stop, Const(INT64, 1), (filled,), span)
        return filled
