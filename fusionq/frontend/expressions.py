"""Expressions: from syntax to typed values."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

import numpy as np

from fusionq.base.articles import with_article
from fusionq.frontend.captures import MISSING, UNSEEN, static_object
from fusionq.frontend.complex_numbers import complex_constant
from fusionq.frontend.conditions import MOST_CHAINED
from fusionq.frontend.constants import MOST_TABLE_BYTES, field_names, is_table
from fusionq.frontend.elements import MOST_UNROLLED
from fusionq.frontend.item_queries import ITEM_MEMBERS, item_property, sub_group_query
from fusionq.frontend.nested_functions import NestedFunctions
from fusionq.frontend.operators import BINARY_OPERATORS, UNARY_OPERATORS, as_number
from fusionq.frontend.refused import COMBINING, REFUSED_SYNTAX, attribute_meant
from fusionq.frontend.typing_rules import number_type
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    Binding,
    ComplexValue,
    Constant,
    ItemValue,
    MethodValue,
    NewPrivateArray,
    ObjectValue,
    ReductionValue,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    VectorValue,
    describe,
    has_fields,
)
from fusionq.ir.nodes import BinaryOp
from fusionq.ir.types import WEAK_INT, element_type
from fusionq.language.memory_model import MEMORY_MODEL

ZERO = Constant(WEAK_INT, 0)
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"}


class Expressions(NestedFunctions):
    """Lowers expressions; what needs statements emits them before."""

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """The value of a call."""

    @abstractmethod
    def matrix_product(self, left: Value, right: Value, node: ast.BinOp) -> Value:
        """``a @ b`` of two rows."""

    @abstractmethod
    def named(self, node: ast.NamedExpr) -> Value:
        """``name := value``."""

    @abstractmethod
    def fixed(self, value: Value, node: ast.AST) -> Value:
        """The value, independent of variables and memory that change later."""

    @abstractmethod
    def list_comprehension(self, node: ast.ListComp) -> Value:
        """The items of a comprehension, as a list."""

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
                op = UNARY_OPERATORS[type(node.op)]
                return self.elementwise(
                    partial(self.sign, op, node=node), [self.operand(node.operand)], node
                )
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp():
                return self.and_or(node)
            case ast.IfExp():
                return self.conditional(node)
            case ast.Tuple() | ast.List():
                items = tuple(self.with_items(node.elts, self.value)[1])
                return TupleValue(items, is_list=isinstance(node, ast.List))
            case ast.Call():
                return self.with_memory(self.call(node), node)
            case ast.Lambda():
                return self.nested_function(node)
            case ast.NamedExpr():
                return self.named(node)
            case ast.ListComp():
                return self.list_comprehension(node)
        self.refuse(node)

    def named_value(self, node: ast.expr) -> Value:
        """The value of an expression that gets a name, as which an array that it makes is known."""
        return self.call(node) if isinstance(node, ast.Call) else self.value(node)

    def with_memory(self, value: Value, node: ast.AST) -> Value:
        """The value; an array that NumPy's functions make where it is used, as in
        ``np.array((x, y)) * 2``, is one of a name of its own."""
        is_used = isinstance(value, NewPrivateArray) and not value.is_asked_for
        return self.fixed(value, node) if is_used else value

    def with_items(
        self, nodes: Sequence[ast.expr], evaluate: Callable[[ast.expr], Value]
    ) -> tuple[list[ast.expr], list[Value]]:
        """As ``in_order``, with the items of a tuple for each ``*`` of one; and their nodes."""
        of_each = self.in_order(
            nodes, lambda n: self._of_star(n) if isinstance(n, ast.Starred) else evaluate(n)
        )
        found: list[tuple[ast.expr, Value]] = []
        for node, value in zip(nodes, of_each, strict=True):
            if isinstance(node, ast.Starred):
                assert isinstance(value, TupleValue)
                found += [(node.value, item) for item in value.items]
            else:
                found.append((node, value))
        return [node for node, _ in found], [value for _, value in found]

    def _of_star(self, node: ast.Starred) -> TupleValue:
        value = self.value(node.value)
        if not isinstance(value, TupleValue):
            self.fail(
                node,
                f"* of {describe(value)}",
                "Write * of a tuple; unpack a row first, x, y = a[i], or write the elements out.",
            )
        return value

    def refuse(self, node: ast.AST) -> NoReturn:
        """Raise the error for syntax outside the language."""
        name = type(node).__name__
        default = (f"{name} is not supported", "See the kernel language in the documentation.")
        self.fail(node, *REFUSED_SYNTAX.get(type(node), default))

    # --------------------------------------------------------------------- names
    def literal(self, node: ast.Constant) -> Value:
        scalar = number_type(node.value)
        if scalar is not None:
            return Constant(scalar, as_number(node.value))
        if isinstance(node.value, complex):
            return complex_constant(node.value)
        if node.value is None or isinstance(node.value, str):
            return ObjectValue(node.value)
        if node.value is Ellipsis:
            self.fail(node, "... is not supported", "Write a slice for each dimension: a[i, :].")
        self.fail(
            node,
            f"{with_article(type(node.value).__name__)} literal",
            "Kernels compute with bool, integers and floating point.",
        )

    def name(self, node: ast.Name) -> Value:
        owner = self.owner(node.id)
        if owner is None:
            return self.captured(
                self.kernel.captures.name(self.source.function, node.id), node.id, node
            )
        return self.bound_name(node, owner)

    def captured(self, obj: object, name: str, node: ast.AST) -> Value:
        """What a global, a closure variable or a module's attribute stands for."""
        if obj is MISSING:
            self.fail(node, f"the name {name!r} is not defined", "Define or import it.")
        obj = self.kernel.captures.frozen(obj)
        if isinstance(obj, MEMORY_MODEL):
            return ObjectValue(obj)
        scalar = number_type(obj)
        if scalar is not None:
            return Constant(scalar, as_number(obj))
        if isinstance(obj, (complex, np.complex64)):
            return complex_constant(obj)
        if isinstance(obj, tuple):
            items = tuple(self.captured(item, name, node) for item in obj)
            return TupleValue(items, field_names(obj))
        if isinstance(obj, np.ndarray):
            dtype = element_type(obj.dtype) if is_table(obj) else None
            if dtype is not None:
                if obj.ndim == 0:
                    return self.captured(obj[()], name, node)
                return self.table(obj, dtype, name)
            self.fail(
                node,
                f"{name} is an array from outside the kernel, of {obj.dtype}{list(obj.shape)}",
                f"Constant arrays have at most {MOST_TABLE_BYTES} bytes, and one of the kernel "
                "language's dtypes; pass others as arguments.",
            )
        if isinstance(obj, (bytes, dict, set)) or (
            isinstance(obj, np.generic) and not isinstance(obj, str)
        ):
            self.fail(
                node,
                f"{name} is {with_article(type(obj).__name__)}",
                "Constants are bool, int, float, strings to compare, NumPy scalars, tuples, lists "
                f"and small arrays of these; {_instead_of(obj)}.",
            )
        return ObjectValue(obj)

    # ---------------------------------------------------------------- attributes
    def static(self, node: ast.expr) -> object:
        """The object that a chain of names and attributes stands for, or MISSING."""
        return static_object(node, self._static_name, self.kernel.captures.attribute)

    def _static_name(self, name: str) -> object:
        owner = self.owner(name)
        if owner is None:
            return self.kernel.captures.name(self.source.function, name)
        bound = (owner.env or {}).get(name)
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
        number = getattr(obj, "__self__", None)
        is_method = isinstance(node, ast.Attribute) and node.attr == "conjugate"
        if is_method and isinstance(number, (complex, np.complex64)):
            return MethodValue(complex_constant(number), "conjugate")
        return self.captured(obj, ast.unparse(node), node)

    def attribute(self, node: ast.Attribute) -> Value:
        known = self.static(node)
        if known is not MISSING:
            return self.object_attribute(known, node)
        owner = self.value(node.value)
        match owner:
            case ArrayValue() if has_fields(owner) and not (
                node.attr == "dtype" or (owner.ndim and node.attr in ("shape", "ndim", "size"))
            ):
                return self.part_or_number(self.attribute_field(owner, node), node)
            case ArrayValue():
                return self.array_attribute(owner, node)
            case ItemValue():
                return self.item_attribute(owner, node)
            case AtomicValue():
                return self.atomic_method(owner, node)
            case TupleValue() if (item := owner.field(node.attr)) is not None:
                return item
            case ReductionValue():
                if node.attr != "combine":
                    self.fail(node, f"a reduction has no {node.attr!r}", "It has combine(x).")
                return MethodValue(owner, node.attr)
            case ComplexValue() | Runtime() | Constant() if node.attr in ("real", "imag"):
                if isinstance(owner, ComplexValue):
                    return owner.real if node.attr == "real" else owner.imag
                return owner if node.attr == "real" else self.retyped(ZERO, owner.type, node)
            case ComplexValue() if node.attr == "conjugate":
                return MethodValue(owner, node.attr)
            case ObjectValue(object=obj):
                found = self.kernel.captures.attribute(obj, node.attr)
                if found is not MISSING:
                    return self.object_attribute(found, node)
                self.fail(
                    node,
                    f"{ast.unparse(node.value)} has no {node.attr!r}",
                    attribute_meant(node.attr, obj),
                )
        if isinstance(owner, TupleValue) and owner.is_list:
            self.fail(
                node,
                f"{describe(owner)} has no {node.attr!r} in a kernel: its length is fixed",
                "Write what it holds all at once, [a, b, c], or make a PrivateArray with room for "
                "as many as there may be, and count them.",
            )
        self.fail(
            node,
            f"{describe(owner)} has no attribute {node.attr!r} in a kernel",
            "Attributes: of modules and of objects from outside the kernel; of arrays shape, ndim, "
            "size and dtype.",
        )

    def sub_group_size(self, node: ast.AST) -> int:
        """Work-items of the kernel's sub-groups, which it asks for."""
        size = self.kernel.signature.sub_group_size
        if size is None:
            self.fail(
                node,
                "there are no sub-groups here: the device has none, or the size is not known",
                "Submit the kernel to a queue whose device.sub_group_sizes has some.",
            )
        self.kernel.uses_sub_groups = True
        return size

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
        if (item.kind, node.attr) == ("sub_group", "leader"):
            return sub_group_query("leader", self.kernel.signature.ndim, self.sub_group_size(node))
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
                return self.number_of_elements(extents, node)
            case "dtype":
                return ObjectValue(array.type.dtype.dtype)
        self.fail(
            node,
            f"arrays have no {node.attr!r} in a kernel",
            COMBINING.get(node.attr, "They have shape, ndim, size, dtype and elements."),
        )

    def number_of_elements(self, extents: Sequence[Scalar], node: ast.AST) -> Scalar:
        """The product of an array's extents, of which there is one at least."""
        size, *others = extents
        for extent in others:
            size = self.binary("mul", size, extent, node)
        return size

    # ----------------------------------------------------------------- operators
    def operation(self, node: ast.BinOp) -> Value:
        """``a + b - c …``: from left to right, without recursion, and in pieces if it is long."""
        operations: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            operations.append(first)
            first = first.left
        result: Value = self._term(first)
        for number, operation in enumerate(reversed(operations), 1):
            position = len(self.block)
            right = self._term(operation.right)
            left = self.evaluated_before(position, result, operation.left)
            if isinstance(operation.op, ast.MatMult):
                result = self.matrix_product(left, right, operation)
                continue
            op = BINARY_OPERATORS[type(operation.op)]
            if isinstance(left, TupleValue) or isinstance(right, TupleValue):
                result = self._of_tuples(op, left, right, operation)
                continue
            result = self.elementwise(
                partial(self.arithmetic, op, node=operation), [left, right], operation
            )
            if number % MOST_CHAINED == 0 and number < len(operations):
                if isinstance(result, VectorValue):
                    self.fail(
                        operation, f"{number} operations on arrays", "Assign parts of it first."
                    )
                result = self.once(result, "partial", operation)
        return result

    def _term(self, node: ast.expr) -> Value:
        """An operand: a number, an array or a tuple."""
        value = self.value(node)
        return value if isinstance(value, TupleValue) else self.as_operand(value, node)

    def _of_tuples(self, op: BinaryOp, left: Value, right: Value, node: ast.BinOp) -> TupleValue:
        """``t + u`` of two tuples or two lists, and ``t * 3``."""
        if isinstance(left, TupleValue) and isinstance(right, TupleValue) and op == "add":
            if left.is_list == right.is_list:
                return TupleValue((*left.items, *right.items), is_list=left.is_list)
        elif op == "mul":
            of, by = (left, right) if isinstance(left, TupleValue) else (right, left)
            if isinstance(of, TupleValue) and not isinstance(by, TupleValue):
                times = self.integer_constant(by, node, "how often a tuple is repeated")
                if len(of.items) * times <= MOST_UNROLLED:
                    return TupleValue(of.items * times, is_list=of.is_list)
        self.fail(
            node,
            f"{describe(left)} {_SYMBOLS.get(op, op)} {describe(right)}",
            "Tuples are joined by +, and repeated by * up to 64 items; numbers of them are "
            "computed one by one: tuple(x + y for x, y in zip(t, u)).",
        )


def _instead_of(obj: object) -> str:
    """What to do about something from outside of a kernel that is no constant."""
    if isinstance(obj, bytes):
        return "ask for it outside of the kernel, and give the kernel the answer, a bool"
    if isinstance(obj, (dict, set)):
        return "take out of it outside of the kernel what it needs, as numbers or a tuple"
    return "pass numbers of other types as one of these, or as an array"
