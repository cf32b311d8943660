"""Comparisons, conditions and choices."""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from types import NoneType
from typing import TypeAlias

import numpy as np

from fusionq.frontend.complex_numbers import ComplexNumbers, Element, complex_type
from fusionq.frontend.draft import Draft, DraftIf, meets, negated
from fusionq.frontend.operators import COMPARE_OPERATORS
from fusionq.frontend.path_conditions import Fact
from fusionq.frontend.state import as_constant
from fusionq.frontend.typing_rules import WEAK_BOOL, named_type
from fusionq.frontend.values import (
    ArrayValue,
    ComplexValue,
    Constant,
    Environment,
    ObjectValue,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    VectorValue,
    describe,
    is_array,
    is_complex,
    same,
)
from fusionq.ir.nodes import Assign, CompareOp, Const, Expr, Logical, LogicalOp, Var
from fusionq.ir.types import BOOL, WEAK_INT

_OF_LENGTHS = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip

MOST_CHAINED = 100
"""Operations of one chain, ``a + b + …``, that become one expression of the IR."""


class Conditions(ComplexNumbers):
    """Lowers what decides, and what is chosen by it."""

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
        low, high = ("le", "lt") if by > 0 else ("ge", "gt")
        found = self.compare(low, start, number, node)  # type: ignore[arg-type]
        before = self.compare(high, number, stop, node)  # type: ignore[arg-type]
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

    # ---------------------------------------------------------------- conditions
    def condition(self, node: ast.expr) -> Scalar:
        """The truth of an expression, as a bool."""
        match node:
            case ast.BoolOp():
                return self.logical_operation(node, self.condition)
            case _:
                value = self.value(node)
                if isinstance(value, ComplexValue):
                    return self.complex_truth(value, node)
                return self.truth(self.scalar(value, node), node)

    def bool_operand(self, node: ast.expr) -> Scalar:
        """An operand of 'and' or 'or' whose value is used, where the first one is a bool."""
        return self._checked_bool(self.number(node), node)

    def _checked_bool(self, operand: Scalar, node: ast.expr) -> Scalar:
        if not operand.type.is_bool:
            self.fail(
                node,
                f"'and' and 'or' give one of their operands; this one has type {operand.type}",
                "Compare it first, e.g. x != 0, or use 'b if a else a'.",
            )
        return operand

    def and_or(self, node: ast.BoolOp) -> Value:
        """``a and b`` and ``a or b`` where the value is used: of bools a bool, else the first
        number that decides, or the last one."""
        first = self.value(node.values[0])
        if isinstance(first, ComplexValue) or is_array(first):
            self.scalar(first, node.values[0])
        number = self.scalar(first, node.values[0])
        if number.type.is_bool:
            return self.logical_operation(node, self.bool_operand, number)
        return self._first_that_decides(node, number, 1)

    def _first_that_decides(self, node: ast.BoolOp, number: Scalar, place: int) -> Value:
        if place == len(node.values):
            return number
        number = self.spilled(number, "operand", node.values[place - 1])
        truth = self.truth(number, node)

        def rest() -> Value:
            following = self.number(node.values[place])
            return self._first_that_decides(node, following, place + 1)

        goes_on = isinstance(node.op, ast.And)
        if isinstance(truth, Constant):
            return rest() if bool(truth.value) == goes_on else number
        sides: tuple[Callable[[], Value], Callable[[], Value]] = (rest, partial(_itself, number))
        return self._either(truth, *(sides if goes_on else sides[::-1]), node)

    def logical_operation(
        self,
        node: ast.BoolOp,
        operand: Callable[[ast.expr], Scalar],
        first: Scalar | None = None,
    ) -> Scalar:
        """``a and b`` of bools; ``first``: its first operand, if that is evaluated already."""
        op: LogicalOp = "and" if isinstance(node.op, ast.And) else "or"
        result = operand(node.values[0]) if first is None else first
        for number, following in enumerate(node.values[1:], 1):
            result = self.logical(op, result, partial(operand, following), node)
            if number % MOST_CHAINED == 0:
                result = self.spilled(result, "partial", node)
        return result

    def logical(
        self, op: LogicalOp, lhs: Scalar, evaluate: Callable[[], Scalar], node: ast.AST
    ) -> Scalar:
        """``lhs op rhs`` of bools; the second is evaluated only if it decides."""
        decides = op == "or"
        if isinstance(lhs, Constant):
            return lhs if bool(lhs.value) == decides else evaluate()
        before, versions = self.env, dict(self.path.versions)
        says = self.path.implied(lhs.expr, not decides)
        with self.nested() as block, self.where(lhs, op == "and"):
            self.env = dict(before or {})
            rhs = evaluate()
        after, self.env = self.env, before
        self._refuse_meeting(block, node)
        result = WEAK_BOOL if lhs.type.weak and rhs.type.weak else BOOL
        value = self.convert(rhs, BOOL, node)
        assigned = self.assigned_in(before, after)
        if block or assigned:
            variable = Var(BOOL, self.fresh("condition"))
            self.block.append(Assign(variable.name, lhs.expr, self.span(node)))
            cond = variable if op == "and" else negated(variable)
            block.append(Assign(variable.name, value, self.span(node)))
            says += self.path.implied(value, not decides)
            other: list[Draft] = []
            if assigned:
                self.meet_again([(after, block), (before, other)], versions)
            self.block.append(DraftIf(cond, block, other, self.span(node)))
            self.path.decided(variable.name, says, not decides)
            self.bound_where(assigned, after, self.path.of(variable, not decides))
            return Runtime(result, variable)
        if isinstance(value, Const):
            return rhs if bool(value.value) == decides else Runtime(result, lhs.expr)
        return Runtime(result, Logical(op, lhs.expr, value))

    @abstractmethod
    def meet_again(
        self, ends: Sequence[tuple[Environment | None, list[Draft]]], versions: dict[str, int]
    ) -> None:
        """Where paths of an expression meet that may assign names: what these stand for;
        ``versions``: how often variables had been assigned before."""

    @abstractmethod
    def bound_where(
        self, names: Sequence[str], after: Environment | None, where: tuple[Fact, ...]
    ) -> None:
        """Let names that only one path of an expression binds, as ``after``, be read where facts
        hold that say so."""

    @staticmethod
    def assigned_in(before: Environment | None, after: Environment | None) -> list[str]:
        """The names that an expression has assigned."""
        return [n for n, bound in (after or {}).items() if bound is not (before or {}).get(n)]

    def _refuse_meeting(self, block: Sequence[Draft], node: ast.AST) -> None:
        """Refuse barriers and group functions in what is not always evaluated."""
        if meets(block):
            self.fail(
                node,
                "a group function or barrier inside a conditional expression: all work-items of "
                "a group have to reach it",
                "Call it before, and use its result here; or write an if statement whose "
                "condition is the same for the whole group.",
            )

    # ------------------------------------------------------------------- choices
    def conditional(self, node: ast.IfExp) -> Value:
        cond = self.condition(node.test)
        if isinstance(cond, Constant):
            return self.value(node.body if cond.value else node.orelse)
        sides = partial(self.value, node.body), partial(self.value, node.orelse)
        return self._either(cond, *sides, node)

    def _either(
        self,
        cond: Runtime,
        then_value: Callable[[], Value],
        else_value: Callable[[], Value],
        node: ast.expr,
    ) -> Value:
        """One of two values, of which only that one is evaluated."""
        before, versions = self.env, dict(self.path.versions)
        values: list[Value] = []
        ends: list[tuple[Environment | None, list[Draft]]] = []
        for holds, evaluate in ((True, then_value), (False, else_value)):
            with self.nested() as block, self.where(cond, holds):
                self.env = dict(before or {})
                values.append(evaluate())
            ends.append((self.env, block))
            self._refuse_meeting(block, node)
        self.env = before
        assigned = [name for env, _ in ends for name in self.assigned_in(before, env)]
        if not assigned and not any(block for _, block in ends):
            chosen_by = self._chosen_by(cond, values, node)
            choose = partial(self._selected, chosen_by, node)
            return self._chosen(values[0], values[1], choose, node)
        (_, then), (_, orelse) = ends
        choose = partial(self._assigned, then, orelse, node)
        result = self._chosen(values[0], values[1], choose, node)
        paths = [self.path.of(cond.expr, holds) for holds in (True, False)]
        if assigned:
            self.meet_again(ends, versions)
        self.block.append(DraftIf(cond.expr, then, orelse, self.span(node)))
        for (env, _), path, other in zip(ends, paths, reversed(ends), strict=True):
            only = [n for n in self.assigned_in(before, env) if n not in (other[0] or {})]
            self.bound_where(only, env, path)
        return result

    def _chosen_by(self, cond: Scalar, values: Sequence[Value], node: ast.expr) -> Scalar:
        """The condition of a choice, in a variable if it is one of several values."""
        several = any(isinstance(v, (TupleValue, ArrayValue)) for v in values)
        return self.spilled(cond, "condition", node) if several else cond

    def _chosen(self, a: Value, b: Value, choose: Choose, node: ast.expr) -> Value:
        """One of two values: of tuples item by item, of parts of an array index by index."""
        if same(a, b) and not isinstance(a, (Runtime, ComplexValue)):
            return a
        if isinstance(a, TupleValue) and isinstance(b, TupleValue):
            if len(a.items) == len(b.items):
                pairs = zip(a.items, b.items, strict=True)
                items = tuple(self._chosen(x, y, choose, node) for x, y in pairs)
                return TupleValue(items, a.names if a.names == b.names else (), a.is_list)
            self.fail(
                node,
                f"this conditional expression is {describe(a)} or of {len(b.items)}",
                "Give both as many items.",
            )
        if isinstance(a, ArrayValue) and isinstance(b, ArrayValue) and a.form == b.form:
            others = iter(b.expressions)

            def index(expr: Expr) -> Expr:
                other = next(others)
                if expr == other:
                    return expr
                found = choose(Runtime(expr.type, expr), Runtime(other.type, other))
                assert isinstance(found, Runtime)
                return found.expr

            return a.mapped(index)
        nodes = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node, node)
        return choose(self.number_value(a, nodes[0]), self.number_value(b, nodes[1]))

    def _selected(self, cond: Scalar, node: ast.expr, a: Element, b: Element) -> Element:
        """One of two numbers, as an expression."""
        return self.choice(cond, a, b, node, "this conditional expression")

    def _assigned(
        self, then: list[Draft], orelse: list[Draft], node: ast.expr, a: Element, b: Element
    ) -> Element:
        """One of two numbers, as a variable that the statements of both sides assign."""
        what, span = "this conditional expression", self.span(node)

        def assigned(x: Scalar, y: Scalar) -> Scalar:
            common = self.joined(x, y, node, what)
            variable = Var(common.strong, self.fresh("choice"))
            then.append(Assign(variable.name, self.convert(x, common.strong, node), span))
            orelse.append(Assign(variable.name, self.convert(y, common.strong, node), span))
            return Runtime(common, variable)

        if isinstance(a, ComplexValue) or isinstance(b, ComplexValue):
            x, y = self.both_complex(a, b, node, what)
            return ComplexValue(*map(assigned, x.parts, y.parts))
        return assigned(a, b)


Choose: TypeAlias = Callable[[Element, Element], Element]
"""What makes one number of two, of which a condition decides."""


def _itself(value: Scalar) -> Scalar:
    return value
