"""NumPy's functions of all elements of a row, or of another part of an array, in place of the loops
that they stand for.

    np.sum(a[i] * b[i])  →   total = 0
                             for k in range(a.shape[1]):
                                 total = total + a[i, k] * b[i, k]

Elements are combined in one order, from the first to the last (NumPy adds floating numbers in
pairs), in NumPy's types; those of 16 bits in float32, and rounded at the end, as NumPy does.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias, TypeGuard

import numpy as np

from fusionq.frontend.callees import entry_of
from fusionq.frontend.captures import MISSING
from fusionq.frontend.complex_numbers import Element
from fusionq.frontend.comprehensions import Comprehensions, at
from fusionq.frontend.typing_rules import WEAK_BOOL
from fusionq.frontend.values import (
    ArrayValue,
    Binding,
    ComplexValue,
    Constant,
    ObjectValue,
    Scalar,
    Value,
    VectorValue,
    describe,
    has_fields,
)
from fusionq.ir.nodes import Const
from fusionq.ir.types import BOOL, FLOAT32, FLOAT64, INT64, UINT64, ScalarType
from fusionq.language.array_functions import ARRAY_FUNCTIONS, ARRAY_METHODS

Array: TypeAlias = ArrayValue | VectorValue

_COMBINED = {
    "sum": "total = total + x",
    "prod": "total = total * x",
    "max": "total = maximum(total, x)",
    "min": "total = minimum(total, x)",
    "greatest": "total = greater(total, x)",
    "least": "total = smaller(total, x)",
    "any": "total = logical_or(total, x)",
    "all": "total = logical_and(total, x)",
    "argmax": "if x > best or (x != x and best == best):\n best = x\n total = k0",
    "argmin": "if x < best or (x != x and best == best):\n best = x\n total = k0",
}
"""What is done with an element ``x``, of the index ``k0``, after those before it."""
_FUNCTIONS = {
    "maximum": np.maximum, "minimum": np.minimum, "logical_or": np.logical_or,
    "logical_and": np.logical_and, "greater": max, "smaller": min,
}  # fmt: skip
"""What these statements call."""


class ArrayFunctions(Comprehensions):
    """Lowers calls of functions of whole arrays, and of methods of arrays."""

    def array_call(
        self, function: object, arguments: Sequence[Value], node: ast.Call
    ) -> Value | None:
        """``np.sum(a[i])`` and its like; None for a call of something else."""
        name = entry_of(ARRAY_FUNCTIONS, function)
        return None if name is None else self._of_arrays(name, arguments, node)

    def array_method(self, node: ast.Call) -> Value | None:
        """``a[i].sum()`` and its like; None for another call."""
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in ARRAY_METHODS:
            return None
        if self.static(function) is not MISSING:
            return None
        owner = self.value(function.value)
        if not _is_of_numbers(owner):
            return None
        if node.keywords:
            self.fail(
                node,
                f"{ast.unparse(function)} takes no {node.keywords[0].arg}=… in a kernel",
                "It combines all elements of a row, such as a[i].",
            )
        return self._of_arrays(
            function.attr, [owner, *self.in_order(node.args, self.value)], node
        )

    def matrix_product(self, left: Value, right: Value, node: ast.BinOp) -> Value:
        """``a @ b`` of two rows."""
        return self._dot_product(left, right, "@", node)

    def of_expression(self, function: object, values: VectorValue, node: ast.Call) -> Value:
        """Python's ``sum``, ``math.prod``, ``min``, ``max``, ``any`` and ``all`` of an expression
        of rows."""
        values_of = self._checked_array(values, ast.unparse(node.func), node, 1)
        kind = self._kind(values_of, ast.unparse(node.func), node)
        if function is sum:
            return self._reduce("sum", values_of, Constant(kind, kind.dtype.type(0)), node)
        if function is math.prod:
            return self._reduce("prod", values_of, Constant(kind, kind.dtype.type(1)), node)
        if function is min or function is max:
            return self._reduce("least" if function is min else "greatest", values_of, None, node)
        truth = np.bool_(function is all)
        found = self._reduce("all" if truth else "any", values_of, Constant(BOOL, truth), node)
        return self.retyped(self.scalar(found, node), WEAK_BOOL, node)

    def _of_arrays(self, name: str, arguments: Sequence[Value], node: ast.Call) -> Value:
        called, count = ast.unparse(node.func), 2 if name == "dot" else 1
        if len(arguments) != count:
            self.fail(
                node,
                f"{called} takes {count} array(s) in a kernel, not {len(arguments)} argument(s)",
                "Leave axes and optional arguments out: it combines all elements of a row a[i].",
            )
        if name == "dot":
            left, right = arguments
            return self._dot_product(left, right, called, node)
        values = self._checked_array(arguments[0], called, node, 1 if name.startswith("arg") else 3)
        kind = self._kind(values, called, node)
        if kind.is_bool and name in ("max", "min"):
            self.fail(node, f"{called} of bools", "Write any or all.")
        match name:
            case "sum" | "prod":
                return self._total(name, values, kind, node)
            case "mean":
                return self._mean(values, _floating(kind), node)
            case "var" | "std":
                return self._variance(values, kind, name == "std", node)
            case "norm":
                values = self._elements_as(values, _floating(kind), node)
                squares = self._dot_product(values, values, called, node)
                return self._root(self.scalar(squares, node), node)
            case "any" | "all":
                return self._reduce(name, values, Constant(BOOL, np.bool_(name == "all")), node)
        return self._reduce(name, values, None, node)

    def _dot_product(self, left: Value, right: Value, called: str, node: ast.AST) -> Value:
        both = [self._checked_array(value, called, node, 1) for value in (left, right)]
        kinds = [self._kind(value, called, node) for value in both]
        if any(kind.is_bool for kind in kinds):
            self.fail(node, f"{called} of bools", "Convert them, e.g. np.int64(x), or write any.")
        wide = [self._elements_as(v, _wide(k), node) for v, k in zip(both, kinds, strict=True)]
        product = partial(self.arithmetic, "mul", node=node)
        products, narrow = (self.elementwise(product, each, node) for each in (wide, both))
        assert isinstance(products, VectorValue) and isinstance(narrow, VectorValue)
        kind = self._kind(products, called, node)
        total = self._reduce("sum", products, Constant(kind, kind.dtype.type(0)), node)
        return self.retyped(self.scalar(total, node), self._kind(narrow, called, node), node)

    def _mean(self, values: Array, kind: ScalarType, node: ast.AST) -> Scalar:
        total = self._total("sum", self._elements_as(values, kind, node), kind, node)
        size = self.number_of_elements(self.extents_of(values), node)
        count = self.retyped(size, kind, node)
        mean = self.binary("truediv", self.scalar(total, node), count, node)
        return self.retyped(mean, kind, node)

    def _variance(self, values: Array, kind: ScalarType, root: bool, node: ast.Call) -> Scalar:
        """The mean of the squares of what the elements are away from their mean."""
        result = _floating(kind)
        wide = _wide(result)
        floats = self._elements_as(values, wide, node)
        mean = self.spilled(self._mean(floats, wide, node), "mean", node)
        away = partial(self.arithmetic, "sub", node=node)
        squares = self.elementwise(
            lambda x: self.arithmetic("mul", away(x, mean), away(x, mean), node), [floats], node
        )
        assert isinstance(squares, VectorValue)
        found = self._mean(squares, wide, node)
        if root:
            found = self._root(found, node)
        return self.retyped(found, result, node)

    def _root(self, number: Scalar, node: ast.Call) -> Scalar:
        call = ast.copy_location(ast.Call(node.func, [node.func], []), node)
        return self.scalar(self.function_of(np.sqrt, number, node=call), node)

    def _total(self, name: str, values: Array, kind: ScalarType, node: ast.AST) -> Value:
        result = kind
        if kind.is_bool or kind.dtype.kind == "i":
            result = INT64
        elif kind.is_integer:
            result = UINT64
        wide = _wide(result)
        first = Constant(wide, wide.dtype.type(name == "prod"))
        total = self._reduce(name, self._elements_as(values, wide, node), first, node)
        return self.retyped(self.scalar(total, node), result, node)

    # ------------------------------------------------------------------------ arrays
    def _checked_array(self, value: Value, called: str, node: ast.AST, most: int) -> Array:
        if not _is_of_numbers(value) or not 1 <= value.ndim <= most:
            self.fail(
                node,
                f"{called} of {describe(value)}",
                "It takes a row such as a[i], or an expression of rows; of other things write the "
                "loop.",
            )
        return value

    def _kind(self, values: Array, called: str, node: ast.AST) -> ScalarType:
        """The type of the elements; complex ones are refused."""
        restore = self.snapshot()
        element = self.element_at(values, [Const(INT64, 0)] * values.ndim, node)
        restore()
        if isinstance(element, ComplexValue):
            self.fail(node, f"{called} of complex numbers", "Write the loop.")
        return element.type.strong

    def _elements_as(self, values: Array, target: ScalarType, node: ast.AST) -> Array:
        if isinstance(values, ArrayValue) and values.type.dtype == target:
            return values
        found = self.elementwise(
            lambda x: self.retyped(self.scalar(x, node), target, node), [values], node
        )
        assert isinstance(found, VectorValue)
        return found

    # ------------------------------------------------------------------------ the loops
    def _reduce(self, name: str, values: Array, first: Scalar | None, node: ast.AST) -> Element:
        """What ``name`` combines of ``first``, or the first element, and each element in turn."""
        assert self.env is not None
        extents = self.extents_of(values)
        if isinstance(values, VectorValue):
            self.check_lengths(values, extents, node)
        number = next(self.kernel.numbers)
        own = {role: f"{role}.in{number}" for role in ("values", "total", "x", "best", *_FUNCTIONS)}
        own |= {f"{c}{d}": f"{c}{d}.in{number}" for c in "kn" for d in range(values.ndim)}
        self.own_names |= set(own.values())
        span = self.span(node)
        self.env[own["values"]] = Binding(values, span)
        for role, function in _FUNCTIONS.items():
            self.env[own[role]] = Binding(ObjectValue(function), span)
        for d, extent in enumerate(extents):
            self.bind(own[f"n{d}"], extent, node)
        start = first or self.element_at(values, [Const(INT64, 0)] * values.ndim, node)
        if name.startswith("arg"):
            self.bind(own["best"], start, node)
            start = Constant(INT64, np.int64(0))
        self.bind(own["total"], start, node)
        self.statements(_loops(name, values.ndim, own, node))
        total = self.value(ast.copy_location(ast.Name(own["total"], ast.Load()), node))
        self.env = {k: v for k, v in self.env.items() if k not in own.values()}
        return self.number_value(total, node)


def _floating(kind: ScalarType) -> ScalarType:
    """What a mean of elements of a type is."""
    return kind if kind.is_float else FLOAT64


def _wide(kind: ScalarType) -> ScalarType:
    """What elements of a type are combined in."""
    return FLOAT32 if kind.is_float and kind.bits == 16 else kind


def _is_of_numbers(value: Value) -> TypeGuard[Array]:
    is_array = isinstance(value, ArrayValue) and value.ndim > 0 and not has_fields(value)
    return is_array or isinstance(value, VectorValue)


def _loops(name: str, ndim: int, own: dict[str, str], node: ast.AST) -> list[ast.stmt]:
    """The statements that combine the elements, at the node's place."""
    index = ", ".join(f"k{d}" for d in range(ndim))
    lines = [f"x = values[{index}]", *_COMBINED[name].split("\n")]
    for d in reversed(range(ndim)):
        lines = [f"for k{d} in range(n{d}):", *(f" {line}" for line in lines)]
    tree = ast.parse("\n".join(lines))
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Name) and inner.id in own:
            inner.id = own[inner.id]
        if "lineno" in inner._attributes:
            ast.copy_location(inner, node)
    return [at(statement, node) for statement in tree.body]
