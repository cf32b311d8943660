"""Conditions and choices."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from fusionq.frontend.comparisons import Comparisons
from fusionq.frontend.complex_numbers import Element
from fusionq.frontend.draft import Draft, DraftIf, meets, negated
from fusionq.frontend.path_conditions import Fact
from fusionq.frontend.typing_rules import WEAK_BOOL
from fusionq.frontend.values import (
    ArrayValue,
    ComplexValue,
    Constant,
    Environment,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    describe,
    is_array,
    same,
)
from fusionq.ir.nodes import Assign, Const, Expr, Logical, LogicalOp, Var
from fusionq.ir.types import BOOL

MOST_CHAINED = 100
"""Operations of one chain, ``a + b + …``, that become one expression of the IR."""


class Conditions(Comparisons):
    """Lowers what decides, and what is chosen by it."""

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
