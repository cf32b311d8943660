"""Methods of NumPy's numbers: conversions, and other readings of the same bits."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from fusionq.frontend.function_handlers import bit_count, convert_number
from fusionq.frontend.operators import Operators
from fusionq.frontend.typing_rules import WEAK_BOOL, named_type, type_name
from fusionq.frontend.values import Constant, ObjectValue, Runtime, Scalar, Value
from fusionq.ir.functions import BIT_CAST
from fusionq.ir.nodes import Call
from fusionq.ir.types import BFLOAT16, WEAK_FLOAT, WEAK_INT, ScalarType


def _named(lowering: Operators, number: Scalar, value: Value, node: ast.Call) -> ScalarType:
    """The type that the argument of a method names."""
    name = ast.unparse(node.func)
    if number.type.weak:
        lowering.fail(
            node,
            f"{name} of {type_name(number.type)}, and Python's numbers have no such method",
            "Convert it first, e.g. np.int32(k) or np.float32(x).",
        )
    obj = value.object if isinstance(value, ObjectValue) else None
    found = named_type(obj.type if isinstance(obj, np.dtype) else obj)
    if found is None:
        lowering.fail(node, f"{name} takes a type", "Give it one, e.g. np.float32.")
    return found.strong


def _astype(lowering: Operators, number: Scalar, value: Value, node: ast.Call) -> Scalar:
    target = _named(lowering, number, value, node)
    converted = convert_number(lowering, target, number, node)
    return lowering.retyped(converted, target, node)


def _view(lowering: Operators, number: Scalar, value: Value, node: ast.Call) -> Scalar:
    source, target = number.type.strong, _named(lowering, number, value, node)
    if source.bits != target.bits:
        lowering.fail(
            node,
            f"{ast.unparse(node.func)} of {source.bits} bits as {target}, which has {target.bits}",
            "A number is viewed as one of a type of its size; convert it before, e.g. "
            f"np.{'uint' if source.is_integer else 'float'}{target.bits}(x).",
        )
    if source.is_bool or target.is_bool or BFLOAT16 in (source, target):
        kind = "bool" if source.is_bool or target.is_bool else "bfloat16"
        lowering.fail(
            node, f"a view of or as {kind}", "Convert it, e.g. x != 0, np.uint8(x), np.float32(x)."
        )
    if isinstance(number, Constant):
        return lowering.fold(lambda x: x.view(target.dtype), [number.value], node)
    if source == target:
        return number
    return Runtime(target, Call(target, BIT_CAST, (number.expr,)))


def _item(lowering: Operators, number: Scalar, node: ast.Call) -> Scalar:
    """``x.item()``: as a number of Python's."""
    kind = number.type.strong
    if number.type.weak:
        lowering.fail(
            node,
            f"item of {type_name(number.type)}, and Python's numbers have no such method",
            "Leave it out.",
        )
    python = WEAK_BOOL if kind.is_bool else WEAK_INT if kind.is_integer else WEAK_FLOAT
    return lowering.scalar(convert_number(lowering, python, number, node), node)


def _bits_set(lowering: Operators, number: Scalar, node: ast.Call) -> Scalar:
    """``x.bit_count()``: the ones in the binary form of the absolute value."""
    if not number.type.is_integer:
        lowering.fail(node, f"bit_count of {type_name(number.type)}", "Integers have it.")
    count = lowering.scalar(bit_count(lowering, [number], node), node)
    return lowering.retyped(count, WEAK_INT, node) if number.type.weak else count


NUMBER_METHODS: dict[str, Callable[[Any, Scalar, Value, ast.Call], Scalar]] = {
    "astype": _astype,
    "view": _view,
}
"""Name → what it gives of a number and of its argument."""
METHODS_ALONE: dict[str, Callable[[Any, Scalar, ast.Call], Scalar]] = {
    "item": _item,
    "bit_count": _bits_set,
}
"""Name → what it gives of a number; without arguments."""
