"""Arrays of a work-item's own that a kernel declares: ``PrivateArray``, and NumPy's functions that
make arrays."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from fusionq.frontend.callees import entry_of
from fusionq.frontend.complex_numbers import complex_type
from fusionq.frontend.language_arguments import Argument, Arguments, LanguageArguments
from fusionq.frontend.memory import declarations
from fusionq.frontend.signature import ArrayType
from fusionq.frontend.typing_rules import named_type
from fusionq.frontend.values import (
    ArrayValue,
    Constant,
    NewPrivateArray,
    ObjectValue,
    Scalar,
    TupleValue,
    Value,
    describe,
)
from fusionq.ir.nodes import ArrayDecl, Const, For, Stmt, Store, Var
from fusionq.ir.record_types import RecordType, record_type
from fusionq.ir.types import FLOAT64, INT64, WEAK_INT, ScalarType

_MAKING: dict[object, tuple[str, ...]] = {
    np.zeros: ("shape", "dtype"),
    np.empty: ("shape", "dtype"),
    np.ones: ("shape", "dtype"),
    np.full: ("shape", "fill_value", "dtype"),
    np.array: ("object", "dtype"),
}
"""Functions of NumPy that make arrays, and their parameters."""
_ZERO = Constant(WEAK_INT, 0)
_OF_PARTS = "Make it with np.zeros, and assign its elements."


def dtype_named(name: str) -> np.dtype[Any] | None:
    """The dtype of a name such as ``"float32"``; None where there is none."""
    try:
        return np.dtype(name)
    except TypeError:
        return None


class PrivateArrays(LanguageArguments):
    """Lowers the making of private arrays."""

    def private_array(self, arguments: Arguments, node: ast.Call) -> Value:
        extents = self._shape(arguments["shape"], "a PrivateArray")
        dtype = self._dtype(arguments["dtype"])
        self._check_size(extents, dtype, "a PrivateArray", arguments["shape"].node)
        zeros = self._flag(arguments) if "fill_zeros" in arguments else False
        kind = ArrayType(dtype, len(extents))
        return NewPrivateArray(kind, extents, (_ZERO,) if zeros else (), is_asked_for=True)

    def numpy_array(
        self,
        function: object,
        positional: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.Call,
    ) -> NewPrivateArray | None:
        """``np.zeros(4, np.float32)`` and its like; None for a call of another function."""
        parameters = entry_of(_MAKING, function)
        if parameters is None:
            return None
        called = ast.unparse(node.func)
        nodes = [*node.args, *(keyword.value for keyword in node.keywords)]
        values = (*positional, *keywords.values())
        given = [Argument(value, place) for value, place in zip(values, nodes, strict=True)]
        arguments = dict(zip(parameters, given[: len(positional)], strict=False))
        named = dict(zip(keywords, given[len(positional) :], strict=True))
        wrong = len(positional) > len(parameters) or not named.keys() <= set(parameters)
        arguments |= named
        if wrong or not set(parameters) - {"dtype"} <= arguments.keys():
            written = ", ".join(parameters)
            self.fail(node, f"{called} with these arguments", f"Write {called}({written}).")
        if function is np.array:
            return self._array_of(arguments, called, node)
        extents = self._shape(arguments["shape"], called)
        fill: tuple[Scalar, ...] = () if function is np.empty else (_ZERO,)
        if function is np.ones:
            fill = (Constant(WEAK_INT, 1),)
        elif function is np.full:
            fill = (self.number_argument(arguments, "fill_value"),)
        default = fill[0].type.strong if function is np.full else FLOAT64
        dtype = self._dtype(arguments["dtype"]) if "dtype" in arguments else default
        self._check_size(extents, dtype, called, node)
        if fill and fill[0] != _ZERO and (dtype.is_complex or isinstance(dtype, RecordType)):
            self.fail(node, f"{called} of {dtype}", _OF_PARTS)
        return NewPrivateArray(ArrayType(dtype, len(extents)), extents, fill)

    def _array_of(self, arguments: Arguments, called: str, node: ast.Call) -> NewPrivateArray:
        """``np.array((x, y, z), dtype)``."""
        items = arguments["object"].value
        if not isinstance(items, TupleValue) or not items.items:
            self.fail(
                node,
                f"{called} of {describe(items)}",
                "It takes a tuple or list of numbers; the elements of a row are copied in a loop.",
            )
        numbers = [self.scalar(item, arguments["object"].node) for item in items.items]
        if "dtype" in arguments:
            dtype = self._dtype(arguments["dtype"])
        else:
            dtype, *others = {number.type.strong for number in numbers}
            if others:
                self.fail(
                    node, f"{called} of numbers of several types", "Give it a dtype as well."
                )
        if dtype.is_complex or isinstance(dtype, RecordType):
            self.fail(node, f"{called} of {dtype}", _OF_PARTS)
        extents = (len(numbers),)
        return NewPrivateArray(ArrayType(dtype, 1), extents, tuple(numbers))

    def _shape(self, argument: Argument, what: str) -> tuple[int, ...]:
        shape, place = argument.value, argument.node
        items = shape.items if isinstance(shape, TupleValue) else (shape,)
        extents = tuple(
            self.integer_constant(item, place, f"the shape of {what}") for item in items
        )
        if not 1 <= len(extents) <= 3 or min(extents) < 1:
            self.fail(
                place,
                f"{what} of the shape {extents}",
                "Give one to three extents, each at least 1.",
            )
        return extents

    def _check_size(
        self, extents: tuple[int, ...], dtype: ScalarType, what: str, node: ast.AST
    ) -> None:
        if prod(extents) * dtype.nbytes >= 1 << 63:
            self.fail(
                node,
                f"{what} of the shape {extents}, of 2**63 bytes or more",
                "Give smaller extents: each work-item has such an array.",
            )

    def _dtype(self, argument: Argument) -> ScalarType:
        obj = argument.value.object if isinstance(argument.value, ObjectValue) else None
        if isinstance(obj, str):
            obj = dtype_named(obj)
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
            if len(array.fill) > 1:
                for k, number in enumerate(array.fill):
                    value = self.convert(number, made.dtype, node)
                    self.block.append(
                        Store(made.name, (Const(INT64, k),), value, self.span(node))
                    )
            elif array.fill:
                self.block.append(self._filled(made, array.fill[0], node))
        return ArrayValue(name, array.type)

    def _filled(self, array: ArrayDecl, number: Scalar, node: ast.AST) -> Stmt:
        span, name = self.span(node), array.name
        zero = self.convert(number, array.dtype, node)
        if prod(array.shape) == 1:
            return Store(name, tuple(Const(INT64, 0) for _ in array.shape), zero, span)
        loops = [self.fresh(f"{name}_{d}") for d in range(len(array.shape))]
        filled: Stmt = Store(name, tuple(Var(INT64, k) for k in loops), zero, span)
        for loop, extent in zip(reversed(loops), reversed(array.shape), strict=True):
            stop = Const(INT64, extent)
            filled = For(loop, Const(INT64, 0), stop, Const(INT64, 1), (filled,), span)
        return filled
