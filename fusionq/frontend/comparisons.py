"""Comparisons of numbers, tuples, rows and objects; whether something is in a tuple or a range."""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from types import NoneType

import numpy as np

from fusionq.frontend.complex_numbers import ComplexNumbers, Element, complex_type
from fusionq.frontend.operators import COMPARE_OPERATORS
from fusionq.frontend.state import as_constant
from fusionq.frontend.typing_rules import WEAK_BOOL, named_type
from fusionq.frontend.values import (
    Constant,
    ObjectValue,
    Scalar,
    TupleValue,
    Value,
    VectorValue,
    is_array,
    is_complex,
)
from fusionq.ir.nodes import CompareOp, Expr, LogicalOp
from fusionq.ir.types import WEAK_INT

_OF_LENGTHS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


class Comparisons(ComplexNumbers):
    """Lowers comparisons."""

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """The value of any expression."""

    def number(self, node: ast.expr) -> Scalar:
        """The value of an expression that must be a number."""
        return self.scalar(self.value(node), node)

    def numbers(self, *nodes: ast.expr) -> list[Scalar]:
        """The values of expressions that must be numbers, evaluated from left to right."""
        values = self.in_order(nodes, self.value)
        return [self.scalar(v, n) for v, n in zip(values, nodes, strict=True)]

    @abstractmethod
    def range_called(self, node: ast.expr) -> ast.Call | None:
        """The expression if it is a call of ``range``."""

    @abstractmethod
    def range_bounds(self, call: ast.Call) -> tuple[Expr, Expr, Expr]:
        """Start, stop and step of a call of ``range``."""

    @abstractmethod
    def logical(
        self, op: LogicalOp, lhs: Scalar, evaluate: Callable[[], Scalar], node: ast.AST
    ) -> Scalar:
        """``lhs op rhs`` of bools; the second is evaluated only if it decides."""

    @abstractmethod
    def elementwise(
        self, meaning: Callable[..., Element], operands: Sequence[Value], node: ast.AST
    ) -> Element | VectorValue:
        """``meaning`` of the operands, for each element where some are arrays."""

    def comparison(self, node: ast.Compare) -> Element | VectorValue:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            of_range = self.range_called(node.comparators[0])
            if of_range is not None:
                return self._in_range(node, of_range)
        left, right = self.in_order([node.left, node.comparators[0]], self.value)
        if len(node.ops) == 1 and isinstance(left, ObjectValue) and isinstance(right, ObjectValue):
            return self.object_comparison(node, node.ops[0], left.object, right.object)
        if len(node.ops) == 1 and isinstance(left, ObjectValue) and isinstance(right, TupleValue):
            found = self._membership(node, left.object, right)
            if found is not None:
                return found
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            is_none = [isinstance(v, ObjectValue) and v.object is None for v in (left, right)]
            if any(is_none):
                return Constant(WEAK_BOOL, all(is_none) == isinstance(node.ops[0], ast.Is))
        among = len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn))
        if among and isinstance(right, TupleValue):
            return self._among(node, left, right)
        for op in node.ops:
            if type(op) not in COMPARE_OPERATORS:
                self.fail(
                    node,
                    f"{ast.unparse(node)}: 'is' compares with None and members of enumerations, "
                    "'in' looks into tuples",
                    "Compare numbers with == or !=.",
                )
        if len(node.ops) == 1 and any(is_array(v) or is_complex(v) for v in (left, right)):
            meaning = partial(self.compared, COMPARE_OPERATORS[type(node.ops[0])], node=node)
            return self.elementwise(meaning, [left, right], node)
        if len(node.ops) == 1 and isinstance(left, TupleValue) and isinstance(right, TupleValue):
            return self._tuples_compared(COMPARE_OPERATORS[type(node.ops[0])], left, right, node)
        a = self.scalar(left, node.left)
        b = self.scalar(right, node.comparators[0])
        return self.comparison_chain(node, 0, a, b)

    def comparison_chain(self, node: ast.Compare, position: int, a: Scalar, b: Scalar) -> Scalar:
        """``a op b`` and, if that holds, the rest of the chain; each operand evaluated once."""
        last = position == len(node.ops) - 1
        if not last:
            b = self.spilled(b, "middle", node.comparators[position])
        first = self.compare(COMPARE_OPERATORS[type(node.ops[position])], a, b, node)
        if last:
            return first

        def rest() -> Scalar:
            c = self.number(node.comparators[position + 1])
            return self.comparison_chain(node, position + 1, b, c)

        return self.logical("and", first, rest, node)

    def _tuples_compared(
        self, op: CompareOp, a: TupleValue, b: TupleValue, node: ast.Compare
    ) -> Scalar:
        """Tuples compared as Python does: by the first items that differ, else by length."""
        lengths = len(a.items), len(b.items)
        if op in ("eq", "ne") and lengths[0] != lengths[1]:
            return Constant(WEAK_BOOL, op == "ne")
        found: Scalar = Constant(WEAK_BOOL, bool(_OF_LENGTHS[op](*lengths)))
        if op == "ne":
            found = Constant(WEAK_BOOL, False)
        for x, y in reversed(list(zip(a.items, b.items, strict=False))):
            equal = self._items_compared("eq", x, y, node)
            if op == "ne":
                differs = self.unary("not", equal, node)
                found = self.logical("or", differs, partial(_itself, found), node)
                continue
            found = self.logical("and", equal, partial(_itself, found), node)
            if op != "eq":
                strict: CompareOp = "lt" if op in ("lt", "le") else "gt"
                before = self._items_compared(strict, x, y, node)
                found = self.logical("or", before, partial(_itself, found), node)
        return found

    def _items_compared(self, op: CompareOp, x: Value, y: Value, node: ast.Compare) -> Scalar:
        if isinstance(x, TupleValue) and isinstance(y, TupleValue):
            return self._tuples_compared(op, x, y, node)
        return self.compare(op, self.scalar(x, node), self.scalar(y, node), node)

    def _among(self, node: ast.Compare, left: Value, items: TupleValue) -> Scalar:
        """``x in (1, 2, 4)`` and ``x not in …`` of numbers: whether one of them equals it."""
        number = self.spilled(self.scalar(left, node.left), "member", node.left)
        found: Scalar = Constant(WEAK_BOOL, False)
        for item in items.items:
            equal = self.compare("eq", number, self.scalar(item, node.comparators[0]), node)
            found = self.logical("or", found, partial(_itself, equal), node)
        return self.unary("not", found, node) if isinstance(node.ops[0], ast.NotIn) else found

    def _in_range(self, node: ast.Compare, call: ast.Call) -> Scalar:
        """``k in range(start, stop, step)``."""
        number = self.number(node.left)
        if not number.type.is_integer:
            self.fail(
                node, f"a number of type {number.type} in a range", "Compare with < and <=."
            )
        number = self.spilled(number, "member", node.left)
        start, stop, step = (as_constant(bound) for bound in self.range_bounds(call))
        if not isinstance(step, Constant):
            self.fail(call, "in a range whose step is not known", "Give a constant step.")
        by = int(step.value)
        low: CompareOp = "le" if by > 0 else "ge"
        high: CompareOp = "lt" if by > 0 else "gt"
        found = self.compare(low, start, number, node)
        before = self.compare(high, number, stop, node)
        found = self.logical("and", found, partial(_itself, before), node)
        if abs(by) != 1:
            far = self.binary("sub", number, start, node)
            rest = self.binary("mod", far, Constant(WEAK_INT, abs(by)), node)
            even = self.compare("eq", rest, Constant(WEAK_INT, 0), node)
            found = self.logical("and", found, partial(_itself, even), node)
        return self.unary("not", found, node) if isinstance(node.ops[0], ast.NotIn) else found

    def _membership(self, node: ast.Compare, obj: object, items: TupleValue) -> Constant | None:
        """``mode in ("fast", "slow")`` and its like, at compile time; None for what is no such."""
        (op,) = node.ops
        objects = [item.object for item in items.items if isinstance(item, ObjectValue)]
        if not isinstance(op, (ast.In, ast.NotIn)) or len(objects) < len(items.items):
            return None
        equal = [self.object_comparison(node, ast.Eq(), obj, other) for other in objects]
        return Constant(WEAK_BOOL, any(e.value for e in equal) == isinstance(op, ast.In))

    def object_comparison(self, node: ast.Compare, op: ast.cmpop, a: object, b: object) -> Constant:
        """``a.dtype == np.float32``, ``mode is Mode.FAST``, ``mode == "fast"`` and their like, at
        compile time."""
        if not isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            self.fail(
                node,
                "these objects are compared with == and != only",
                "Write == or !=, or in with a tuple.",
            )
        types = [
            complex_type(obj) or named_type(obj.type if isinstance(obj, np.dtype) else obj)
            for obj in (a, b)
        ]
        strong = [t.strong for t in types if t is not None]
        if len(strong) == 2 and isinstance(op, (ast.Eq, ast.NotEq)):
            equal = strong[0] == strong[1]
        elif isinstance(a, str) and isinstance(b, str) and isinstance(op, (ast.Eq, ast.NotEq)):
            equal = a == b
        elif any(isinstance(obj, (Enum, NoneType)) for obj in (a, b)):
            equal = a is b
        else:
            self.fail(
                node,
                "these objects cannot be compared",
                "Compare numbers, dtypes, strings, members of enumerations, or with None.",
            )
        return Constant(WEAK_BOOL, equal == isinstance(op, (ast.Eq, ast.Is)))


def _itself(value: Scalar) -> Scalar:
    return value
