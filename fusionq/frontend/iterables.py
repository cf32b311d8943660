"""What loops go over: tuples, arrays, ranges, ``enumerate``, ``zip`` and ``reversed`` of these."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

from fusionq.base.frozen import dataclass
from fusionq.frontend.control_flow import ControlFlow
from fusionq.frontend.elements import MOST_UNROLLED
from fusionq.frontend.typing_rules import type_name
from fusionq.frontend.values import (
    ArrayValue,
    Constant,
    ObjectValue,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    describe,
    same,
)
from fusionq.ir.nodes import Const, Expr
from fusionq.ir.types import INT64, WEAK_INT


@dataclass(frozen=True, slots=True)
class Items:
    """What a loop goes over in turn: ``count`` values, none where that is negative, of which
    ``item`` gives the one of a number from 0 on; ``known``: all of a range of constants."""

    count: Scalar
    item: Callable[[Scalar], Value]
    known: range | None = None


class Iterables(ControlFlow):
    """Lowers what loops go over."""

    @abstractmethod
    def fixed_element(self, array: ArrayValue, node: ast.AST) -> ArrayValue:
        """The element, or the part of the array, that the indices denote now."""

    def iterated(self, node: ast.expr) -> TupleValue | Items | Value:
        """What a loop goes over: a tuple, the elements or parts of an array, or what is neither.
        ``enumerate``, ``zip`` and ``reversed`` of tuples are tuples, of arrays and ranges they have
        items."""
        values = iter(self.in_order(list(self._gone_over(node)), self._source))
        return self._combined(node, values)

    def range_called(self, node: ast.expr) -> ast.Call | None:
        """The expression if it is a call of ``range``."""
        return node if isinstance(node, ast.Call) and self._called(node) is range else None

    def _gone_over(self, node: ast.expr) -> Iterator[ast.expr]:
        """The expressions in ``enumerate``, ``zip`` and ``reversed``, these nested or not."""
        if isinstance(node, ast.Call) and self._called(node) in (enumerate, zip, reversed):
            start = self._start_of(node)
            others = node.args[1:] if start is None else ()
            keywords = node.keywords if start is None else ()
            if keywords or not node.args or (others and self._called(node) is not zip):
                name = ast.unparse(node.func)
                self.fail(
                    node,
                    f"{name} takes tuples, arrays and ranges only in a kernel",
                    "Leave other arguments out.",
                )
            for argument in node.args if start is None else node.args[:1]:
                yield from self._gone_over(argument)
            if start is not None:
                yield start
        else:
            yield node

    def _start_of(self, call: ast.Call) -> ast.expr | None:
        """The number with which ``enumerate`` starts, where it is given."""
        if self._called(call) is not enumerate:
            return None
        match call:
            case ast.Call(args=[_, start], keywords=[]):
                return start
            case ast.Call(args=[_], keywords=[ast.keyword(arg="start", value=start)]):
                return start
        return None

    def _combined(self, node: ast.expr, values: Iterator[Value]) -> TupleValue | Items | Value:
        function = self._called(node) if isinstance(node, ast.Call) else None
        if function not in (enumerate, zip, reversed):
            value = next(values)
            if function is range and isinstance(value, TupleValue):
                return self._numbers_in_turn(value, node)
            if isinstance(value, ArrayValue) and value.ndim:
                return self._elements_in_turn(value, node)
            return value
        assert isinstance(node, ast.Call)
        start = self._start_of(node)
        gone_over = node.args if start is None else node.args[:1]
        parts = [self._combined(argument, values) for argument in gone_over]
        first = _ZERO if start is None else self.scalar(next(values), start)
        if start is not None and not first.type.is_integer:
            self.fail(start, f"enumerate from {type_name(first.type)}", "Give an integer.")
        if any(isinstance(part, TupleValue) for part in parts):
            parts = [_as_tuple(part) for part in parts]
        if function is zip and any(isinstance(part, Items) for part in parts):
            parts = [self._table_in_turn(part, node) for part in parts]
        arrays = [part for part in parts if isinstance(part, Items)]
        tuples = [part.items for part in parts if isinstance(part, TupleValue)]
        if max(len(arrays), len(tuples)) < len(parts):
            found = [p for p in parts if not isinstance(p, (Items, TupleValue))]
            over = f"over {describe(found[0])}" if found else "over both together"
            self.fail(
                node,
                f"{ast.unparse(node.func)} goes over tuples, or over arrays and ranges, in a "
                f"kernel, not {over}",
                "Write 'for k in range(n)', and index with k.",
            )
        if arrays:
            return self._arrays_combined(function, arrays, first, node)
        if function is zip:
            return TupleValue(tuple(TupleValue(row) for row in zip(*tuples, strict=False)))
        if function is reversed:
            return TupleValue(tuples[0][::-1])
        numbers = [
            self.binary("add", first, Constant(WEAK_INT, k), node) for k in range(len(tuples[0]))
        ]
        pairs = zip(numbers, tuples[0], strict=True)
        return TupleValue(tuple(TupleValue(pair) for pair in pairs))

    def _source(self, node: ast.expr) -> Value:
        """An expression's value; a range's start, stop and step."""
        if isinstance(node, ast.Call) and self._called(node) is range:
            bounds = self.range_bounds(node)
            return TupleValue(tuple(Runtime(WEAK_INT, bound) for bound in bounds))
        return self.value(node)

    def _known_step(self, step: Expr, node: ast.expr) -> int:
        if isinstance(step, Const):
            return int(step.value)
        self.fail(
            node,
            "enumerate, zip and reversed of a range whose step is not known",
            "Give a constant step, or write 'for k in range(…)' and compute the others of k.",
        )

    def _range_backward(self, node: ast.expr) -> tuple[Expr, Expr, Expr] | None:
        """The bounds of the range that ``reversed(range(…))`` goes over; None for what is none."""
        if not (isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords):
            return None
        (inner,) = node.args
        if not (isinstance(inner, ast.Call) and self._called(node) is reversed):
            return None
        if self._called(inner) is not range:
            return None
        start, stop, step = self.range_bounds(inner)
        known = iterations(start, stop, step)
        if known is not None:
            back = known[::-1]
            bounds = (Const(INT64, n) for n in (back.start, back.stop, back.step))
            return next(bounds), next(bounds), next(bounds)
        by = self._known_step(step, node)
        first = Constant(WEAK_INT, by)
        begin = _number(start)
        count = self._count(start, stop, by, node)
        whole = self.binary("mul", self.binary("sub", count, _ONE, node), first, node)
        last = self.binary("add", begin, whole, node)
        end = self.binary("sub", begin, first, node)
        return self.convert(last, INT64, node), self.convert(end, INT64, node), Const(INT64, -by)

    def _count(self, start: Expr, stop: Expr, step: int, node: ast.expr) -> Scalar:
        """How many numbers a range has; 0 or less where it has none."""
        first, last = (start, stop) if step > 0 else (stop, start)
        length = self.binary("sub", _number(last), _number(first), node)
        if abs(step) == 1:
            return length
        further = self.binary("add", length, Constant(WEAK_INT, abs(step) - 1), node)
        return self.binary("floordiv", further, Constant(WEAK_INT, abs(step)), node)

    def _numbers_in_turn(self, bounds: TupleValue, node: ast.expr) -> Items:
        """The numbers of a range."""
        start, stop, step = (self.convert(self.scalar(b, node), INT64, node) for b in bounds.items)
        by = self._known_step(step, node)

        def item(number: Scalar) -> Value:
            further = self.binary("mul", number, Constant(WEAK_INT, by), node)
            return self.binary("add", _number(start), further, node)

        return Items(self._count(start, stop, by, node), item, iterations(start, stop, step))

    def _elements_in_turn(self, array: ArrayValue, node: ast.expr) -> Items:
        """An array's elements or, of more dimensions, its parts ``a[0]``, ``a[1]``, …"""
        part = self.fixed_element(array, node)

        def item(number: Scalar) -> Value:
            return self.part_or_number(self.indexed(part, [number], [node], node), node)

        return Items(self.extents(part)[0], item)

    def _table_in_turn(self, value: TupleValue | Items | Value, node: ast.expr) -> Value | Items:
        """A tuple of constants as the elements of a table; others as they are."""
        table = self.table_of(value, "table") if isinstance(value, TupleValue) else None
        return value if table is None else self._elements_in_turn(table, node)

    def _arrays_combined(
        self, function: object, arrays: Sequence[Items], start: Scalar, node: ast.expr
    ) -> Items:
        """``enumerate``, ``zip`` or ``reversed`` of arrays and ranges."""
        first = arrays[0]
        if function is zip:
            count = first.count
            for other in arrays[1:]:
                if not same(count, other.count):
                    count = self.shorter(count, other.count, node)
            return Items(count, lambda k: TupleValue(tuple(a.item(k) for a in arrays)))
        if function is enumerate:
            return Items(
                first.count,
                lambda k: TupleValue((self.binary("add", start, k, node), first.item(k)))
                if start != _ZERO
                else TupleValue((k, first.item(k))),
            )
        last = self.binary("sub", first.count, Constant(WEAK_INT, 1), node)
        return Items(first.count, lambda k: first.item(self.binary("sub", last, k, node)))

    def _called(self, call: ast.Call) -> object:
        """The object that a call calls; None where it is none that is known."""
        callee = self.value(call.func)
        return callee.object if isinstance(callee, ObjectValue) else None

    def range_bounds(self, call: ast.Call) -> tuple[Expr, Expr, Expr]:
        """Start, stop and step of ``range(…)``."""
        if call.keywords or not 1 <= len(call.args) <= 3:
            self.fail(call, "range takes one to three integers", "Write range(start, stop, step).")
        bounds = []
        for argument, number in zip(call.args, self.numbers(*call.args), strict=True):
            if not number.type.is_integer:
                self.fail(
                    argument,
                    f"range of type {type_name(number.type)}",
                    "range takes integers: convert it, e.g. int(x).",
                )
            bounds.append(self.convert(number, INT64, argument))
        if len(bounds) == 1:
            bounds.insert(0, Const(INT64, 0))
        if len(bounds) == 2:
            bounds.append(Const(INT64, 1))
        if bounds[2] == Const(INT64, 0):
            self.fail(call, "the step of range is 0", "Give a positive or a negative step.")
        return bounds[0], bounds[1], bounds[2]


def iterations(start: Expr, stop: Expr, step: Expr) -> range | None:
    """The values of a loop's variable, where the bounds are constants."""
    if isinstance(start, Const) and isinstance(stop, Const) and isinstance(step, Const):
        return range(int(start.value), int(stop.value), int(step.value))
    return None


_ZERO = Constant(WEAK_INT, 0)
_ONE = Constant(WEAK_INT, 1)


def _number(bound: Expr) -> Scalar:
    """A bound of a range as a number."""
    if isinstance(bound, Const):
        return Constant(WEAK_INT, int(bound.value))
    return Runtime(WEAK_INT, bound)


def _as_tuple(part: TupleValue | Items | Value) -> TupleValue | Items | Value:
    """A short range of constants as a tuple, anything else as it is."""
    if isinstance(part, Items) and part.known is not None and not part.known[MOST_UNROLLED:]:
        return TupleValue(tuple(Constant(WEAK_INT, number) for number in part.known))
    return part
