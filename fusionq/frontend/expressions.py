"""Expressions: from syntax to typed values."""

from __future__ import annotations

import ast
import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from types import NoneType
from typing import NoReturn

import numpy as np

from fusionq.frontend.captures import MISSING, UNSEEN, static_object
from fusionq.frontend.draft import Draft, DraftIf, meets, negated
from fusionq.frontend.item_queries import ITEM_MEMBERS, item_property
from fusionq.frontend.operators import (
    BINARY_OPERATORS,
    COMPARE_OPERATORS,
    UNARY_OPERATORS,
    Operators,
    as_number,
)
from fusionq.frontend.refused import REFUSED_SYNTAX, similar
from fusionq.frontend.typing_rules import WEAK_BOOL, named_type, number_type
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    Axis,
    Binding,
    Constant,
    ItemValue,
    MethodValue,
    ObjectValue,
    Runtime,
    Scalar,
    TupleValue,
    Unusable,
    Value,
    describe,
    same,
)
from fusionq.ir.nodes import Assign, Binary, Const, Expr, Load, Logical, LogicalOp, Var
from fusionq.ir.types import BOOL, INT64, WEAK_INT

MOST_CHAINED = 100
"""Operations of one chain, ``a + b + …``, that become one expression of the IR."""


class Expressions(Operators):
    """Lowers expressions; what needs statements emits them before."""

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """The value of a call."""

    @abstractmethod
    def atomic_method(self, owner: AtomicValue, node: ast.Attribute) -> Value:
        """A method of an AtomicRef, before the call."""

    def value(self, node: ast.expr) -> Value:
        """The value of any expression."""
        match node:
            case ast.Constant():
                return self.literal(node)
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.BinOp():
                return self.operation(node)
            case ast.UnaryOp(op=ast.Not()):
                return self.unary("not", self.condition(node.operand), node)
            case ast.UnaryOp():
                return self.unary(UNARY_OPERATORS[type(node.op)], self.number(node.operand), node)
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp():
                return self.logical_operation(node, self.bool_operand)
            case ast.IfExp():
                return self.conditional(node)
            case ast.Tuple():
                return TupleValue(tuple(self.in_order(node.elts, self.value)))
            case ast.Call():
                return self.call(node)
        self.refuse(node)

    def refuse(self, node: ast.AST) -> NoReturn:
        """Raise the error for syntax outside the language."""
        name = type(node).__name__
        default = (f"{name} is not supported", "See the kernel language in the documentation.")
        self.fail(node, *REFUSED_SYNTAX.get(type(node), default))

    def number(self, node: ast.expr) -> Scalar:
        """The value of an expression that must be a number."""
        return self.scalar(self.value(node), node)

    def numbers(self, *nodes: ast.expr) -> list[Scalar]:
        """The values of expressions that must be numbers, evaluated from left to right."""
        values = self.in_order(nodes, self.value)
        return [self.scalar(v, n) for v, n in zip(values, nodes, strict=True)]

    # --------------------------------------------------------------------- names
    def literal(self, node: ast.Constant) -> Value:
        scalar = number_type(node.value)
        if scalar is not None:
            return Constant(scalar, as_number(node.value))
        if node.value is None:
            return ObjectValue(None)
        self.fail(
            node,
            f"a {type(node.value).__name__} literal",
            "Kernels compute with bool, integers and floating point.",
        )

    def name(self, node: ast.Name) -> Value:
        if node.id not in self.source.local_names:
            return self.captured(
                self.kernel.captures.name(self.source.function, node.id), node.id, node
            )
        bound = (self.env or {}).get(node.id)
        if bound is None:
            self.fail(node, f"{node.id!r} is read before it is assigned", "Assign it first.")
        if isinstance(bound, Unusable):
            if bound.binding is not None and self.path.hold(bound.where):
                return bound.binding.value
            self.fail(node, bound.message, bound.hint)
        return bound.value

    def captured(self, obj: object, name: str, node: ast.AST) -> Value:
        """What a global, a closure variable or a module's attribute stands for."""
        if obj is MISSING:
            self.fail(node, f"the name {name!r} is not defined", "Define or import it.")
        scalar = number_type(obj)
        if scalar is not None:
            return Constant(scalar, as_number(obj))
        if isinstance(obj, tuple):
            return TupleValue(tuple(self.captured(item, name, node) for item in obj))
        if isinstance(obj, np.ndarray):
            self.fail(node, f"{name} is a global array", "Pass it as an argument.")
        if isinstance(obj, (str, bytes, list, dict, set, np.generic, complex)):
            self.fail(
                node,
                f"{name} is a {type(obj).__name__}",
                "Constants are bool, int, float, NumPy scalars and tuples of these; pass "
                "anything else as an argument.",
            )
        return ObjectValue(obj)

    # ---------------------------------------------------------------- attributes
    def static(self, node: ast.expr) -> object:
        """The object that a chain of names and attributes stands for, or MISSING."""
        return static_object(node, self._static_name, self.kernel.captures.attribute)

    def _static_name(self, name: str) -> object:
        if name not in self.source.local_names:
            return self.kernel.captures.name(self.source.function, name)
        bound = (self.env or {}).get(name)
        value = bound.value if isinstance(bound, Binding) else None
        return value.object if isinstance(value, ObjectValue) else MISSING

    def object_attribute(self, obj: object, node: ast.expr) -> Value:
        """An attribute, ``obj``, of an object that is known at compile time."""
        if obj is UNSEEN:
            self.fail(
                node,
                f"{ast.unparse(node)} is an attribute of an object that was passed on, which may "
                "be another one in the next process",
                "Read the attribute where the object has its name, and pass its value on.",
            )
        return self.captured(obj, ast.unparse(node), node)

    def attribute(self, node: ast.Attribute) -> Value:
        known = self.static(node)
        if known is not MISSING:
            return self.object_attribute(known, node)
        owner = self.value(node.value)
        match owner:
            case ArrayValue():
                return self.array_attribute(owner, node)
            case ItemValue():
                return self.item_attribute(owner, node)
            case AtomicValue():
                return self.atomic_method(owner, node)
            case ObjectValue(object=obj):
                found = self.kernel.captures.attribute(obj, node.attr)
                if found is not MISSING:
                    return self.object_attribute(found, node)
                self.fail(
                    node,
                    f"{ast.unparse(node.value)} has no {node.attr!r}",
                    similar(node.attr, dir(obj)),
                )
        self.fail(
            node,
            f"{describe(owner)} has no attribute {node.attr!r} in a kernel",
            "Attributes: of modules and of objects from outside the kernel; of arrays shape, ndim, "
            "size and dtype.",
        )

    def item_attribute(self, item: ItemValue, node: ast.Attribute) -> Value:
        """A method of the work-item or its group, before the call; or a property's value."""
        if node.attr not in ITEM_MEMBERS[item.kind]:
            hint = f"It has {', '.join(ITEM_MEMBERS[item.kind])}."
            if item.kind == "item" and node.attr in ITEM_MEMBERS["nd_item"]:
                hint += (
                    f"  {node.attr} is an NdItem's: submit the kernel with an NdRange, "
                    "and annotate its item as NdItem."
                )
            if item.kind == "nd_item" and node.attr in ITEM_MEMBERS["item"]:
                hint += f"  {node.attr} is an Item's: submit the kernel with a Range."
            self.fail(node, f"{describe(item)} has no {node.attr!r}", hint)
        found = item_property(item, node.attr, self.kernel.signature.ndim)
        return found if found is not None else MethodValue(item, node.attr)

    def array_attribute(self, array: ArrayValue, node: ast.Attribute) -> Value:
        extents = self.extents(array)
        match node.attr:
            case "shape":
                return TupleValue(tuple(extents))
            case "ndim":
                return Constant(WEAK_INT, array.ndim)
            case "size":
                size = extents[0]
                for extent in extents[1:]:
                    size = self.binary("mul", size, extent, node)
                return size
            case "dtype":
                return ObjectValue(array.type.dtype.dtype)
        self.fail(
            node,
            f"arrays have no {node.attr!r} in a kernel",
            "They have shape, ndim, size, dtype and elements.",
        )

    # ------------------------------------------------------------------ elements
    def subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, TupleValue):
            position = self.integer_constant(self.value(node.slice), node.slice, "a tuple's index")
            if not -len(owner.items) <= position < len(owner.items):
                self.fail(node, f"the tuple has {len(owner.items)} elements", "Index within it.")
            return owner.items[position]
        array = self.element(owner, node)
        if array.ndim:
            return array
        dtype = array.type.dtype
        return Runtime(dtype, Load(dtype, array.name, array.indices, self.span(node)))

    def element(self, owner: Value, node: ast.Subscript) -> ArrayValue:
        """The part of an array that a subscript denotes."""
        if not isinstance(owner, ArrayValue):
            self.fail(node, f"{describe(owner)} cannot be indexed", "Index arrays and tuples.")
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(n, ast.Slice) for n in nodes):
            return self.sliced(owner, nodes, node)
        values = self.in_order(nodes, self.value)
        if len(values) == 1 and isinstance(values[0], TupleValue):
            nodes, values = nodes * len(values[0].items), list(values[0].items)
        scalars = [self.scalar(v, n) for v, n in zip(values, nodes, strict=True)]
        return self.indexed(owner, scalars, nodes, node)

    def indexed(
        self, owner: ArrayValue, scalars: Sequence[Scalar], nodes: Sequence[ast.AST], node: ast.AST
    ) -> ArrayValue:
        """``owner`` with indices for its first dimensions, which ``nodes`` stand for."""
        if len(scalars) > owner.ndim:
            of = f"{owner.ndim}-d part of the array" if owner.axes else f"{owner.ndim}-d array"
            self.fail(
                node,
                f"{len(scalars)} indices for the {of} {owner.name!r}",
                "Give one index for each dimension.",
            )
        axes = list(owner.axes)
        for dim, extent, scalar, place in zip(
            owner.open, self.extents(owner), scalars, nodes, strict=False
        ):
            index = self.index(scalar, place)
            if isinstance(index, Const) and isinstance(extent, Constant):
                self._inside(int(index.value), int(extent.value), owner.name, place)
            cut = axes[dim] if dim < len(axes) else None
            if isinstance(cut, Axis):
                index = strided(cut, index)
                axes[dim] = index
            else:
                axes.append(index)
        return dataclasses.replace(owner, axes=tuple(axes))

    def _inside(self, index: int, extent: int, name: str, place: ast.AST) -> None:
        if index >= extent:
            self.fail(
                place,
                f"the index {index} is outside {name!r}, which has {extent} elements there",
                f"Indices go from 0 to {extent - 1}.",
            )

    # -------------------------------------------------------------------- slices
    def sliced(
        self, owner: ArrayValue, nodes: Sequence[ast.expr], node: ast.Subscript
    ) -> ArrayValue:
        """``a[1:, j]``: a view of the array."""
        if len(nodes) > owner.ndim:
            self.fail(
                node,
                f"{len(nodes)} indices for {describe(owner)} ({owner.name!r})",
                "Give at most one index or slice for each dimension.",
            )
        axes = list(owner.axes)
        for dim, extent, place in zip(owner.open, self.extents(owner), nodes, strict=False):
            cut = axes[dim] if dim < len(axes) else None
            made: Expr | Axis
            if isinstance(place, ast.Slice):
                made = self.axis(place, extent)
                if isinstance(cut, Axis):
                    start = strided(cut, made.start)
                    made = Axis(start, cut.step * made.step, made.extent)
            else:
                made = self.index(self.number(place), place)
                if isinstance(cut, Axis):
                    made = strided(cut, made)
            if cut is None:
                axes.append(made)
            else:
                axes[dim] = made
        return dataclasses.replace(owner, axes=tuple(axes))

    def axis(self, node: ast.Slice, extent: Scalar) -> Axis:
        """What ``start:stop:step`` leaves of a dimension of this extent."""
        step = 1
        if node.step is not None:
            step = self.integer_constant(self.value(node.step), node.step, "a slice's step")
            if step < 1:
                self.fail(
                    node.step, f"the step of a slice is {step}", "Use a positive step, or a loop."
                )
        start = self._bound(node.lower) if node.lower is not None else Constant(WEAK_INT, 0)
        stop = extent
        if node.upper is not None:
            stop = self._smaller(self._bound(node.upper), extent, node.upper)
        span = self.binary("sub", stop, start, node)
        if start != Constant(WEAK_INT, 0):
            span = self._larger(span, Constant(WEAK_INT, 0), node)
        if step > 1:
            rounded = self.binary("add", span, Constant(WEAK_INT, step - 1), node)
            span = self.binary("floordiv", rounded, Constant(WEAK_INT, step), node)
        first, count = (self.convert(s, INT64, node) for s in (start, span))
        return Axis(first, step, count)

    def _bound(self, node: ast.expr) -> Scalar:
        number = self.number(node)
        self.index(number, node)  # refuses what is no integer, or negative
        return Runtime(WEAK_INT, self.convert(number, INT64, node)) if isinstance(
            number, Runtime
        ) else Constant(WEAK_INT, int(number.value))

    def _smaller(self, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        if isinstance(a, Constant) and isinstance(b, Constant):
            return a if int(a.value) <= int(b.value) else b
        return self.smaller("pymin", a, b, node)

    def _larger(self, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        if isinstance(a, Constant) and isinstance(b, Constant):
            return a if int(a.value) >= int(b.value) else b
        return self.smaller("pymax", a, b, node)

    # ----------------------------------------------------------------- operators
    def operation(self, node: ast.BinOp) -> Scalar:
        """``a + b - c …``: from left to right, without recursion, and in pieces if it is long."""
        operations: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            if type(first.op) not in BINARY_OPERATORS:
                self.fail(first, "@ is not supported", "Write the loops out.")
            operations.append(first)
            first = first.left
        result: Value = self.number(first)
        for number, operation in enumerate(reversed(operations), 1):
            position = len(self.block)
            right = self.number(operation.right)
            result = self.evaluated_before(position, result, operation.left)
            left = self.scalar(result, operation.left)
            op = BINARY_OPERATORS[type(operation.op)]
            result = self.binary(op, left, right, operation)
            if number % MOST_CHAINED == 0 and number < len(operations):
                result = self.spilled(result, "partial", operation)
        return self.scalar(result, node)

    def comparison(self, node: ast.Compare) -> Scalar:
        left, right = self.in_order([node.left, node.comparators[0]], self.value)
        if len(node.ops) == 1 and isinstance(left, ObjectValue) and isinstance(right, ObjectValue):
            return self.object_comparison(node, left.object, right.object)
        for op in node.ops:
            if type(op) not in COMPARE_OPERATORS:
                self.fail(node, "'is' and 'in' are not supported", "Compare with == or !=.")
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

    def object_comparison(self, node: ast.Compare, a: object, b: object) -> Scalar:
        """``a.dtype == np.float32``, ``mode is Mode.FAST`` and their like, at compile time."""
        op = node.ops[0]
        if not isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            self.fail(node, "these objects cannot be compared", "Compare numbers or dtypes.")
        types = [named_type(obj.type if isinstance(obj, np.dtype) else obj) for obj in (a, b)]
        strong = [t.strong for t in types if t is not None]
        if len(strong) == 2 and isinstance(op, (ast.Eq, ast.NotEq)):
            equal = strong[0] == strong[1]
        elif any(isinstance(obj, (Enum, NoneType)) for obj in (a, b)):
            equal = a is b
        else:
            self.fail(
                node,
                "these objects cannot be compared",
                "Compare numbers, dtypes, members of enumerations, or with None.",
            )
        return Constant(WEAK_BOOL, equal == isinstance(op, (ast.Eq, ast.Is)))

    # ---------------------------------------------------------------- conditions
    def condition(self, node: ast.expr) -> Scalar:
        """The truth of an expression, as a bool."""
        match node:
            case ast.BoolOp():
                return self.logical_operation(node, self.condition)
            case _:
                return self.truth(self.number(node), node)

    def bool_operand(self, node: ast.expr) -> Scalar:
        """An operand of 'and' or 'or' whose value is used, not just its truth."""
        operand = self.number(node)
        if not operand.type.is_bool:
            self.fail(
                node,
                f"'and' and 'or' give one of their operands; this one has type {operand.type}",
                "Compare it first, e.g. x != 0, or use 'b if a else a'.",
            )
        return operand

    def logical_operation(self, node: ast.BoolOp, operand: Callable[[ast.expr], Scalar]) -> Scalar:
        op: LogicalOp = "and" if isinstance(node.op, ast.And) else "or"
        result = operand(node.values[0])
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
        with self.nested() as block:
            rhs = evaluate()
        self._refuse_meeting(block, node)
        result = WEAK_BOOL if lhs.type.weak and rhs.type.weak else BOOL
        value = self.convert(rhs, BOOL, node)
        if block:
            variable = Var(BOOL, self.fresh("condition"))
            self.block.append(Assign(variable.name, lhs.expr, self.span(node)))
            cond = variable if op == "and" else negated(variable)
            block.append(Assign(variable.name, value, self.span(node)))
            self.block.append(DraftIf(cond, block, [], self.span(node)))
            return Runtime(result, variable)
        if isinstance(value, Const):
            return rhs if bool(value.value) == decides else Runtime(result, lhs.expr)
        return Runtime(result, Logical(op, lhs.expr, value))

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
        branches: list[tuple[Value, list[Draft]]] = []
        for side in (node.body, node.orelse):
            with self.nested() as block:
                branches.append((self.value(side), block))
            self._refuse_meeting(block, side)
        (then, then_block), (orelse, orelse_block) = branches
        if same(then, orelse) and not isinstance(then, Runtime):
            return then
        a, b = self.scalar(then, node.body), self.scalar(orelse, node.orelse)
        common = self.joined(a, b, node, "this conditional expression")
        if not then_block and not orelse_block:
            return self.select(cond, a, b, common, node)
        variable = Var(common.strong, self.fresh("choice"))
        span = self.span(node)
        then_block.append(Assign(variable.name, self.convert(a, common.strong, node), span))
        orelse_block.append(Assign(variable.name, self.convert(b, common.strong, node), span))
        self.block.append(DraftIf(cond.expr, then_block, orelse_block, span))
        return Runtime(common, variable)


def strided(axis: Axis, index: Expr) -> Expr:
    """The whole dimension's index of an element of a slice."""
    if axis.step != 1:
        index = Binary(INT64, "mul", index, Const(INT64, axis.step))
    return index if axis.start == Const(INT64, 0) else Binary(INT64, "add", axis.start, index)
