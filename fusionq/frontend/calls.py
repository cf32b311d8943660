"""Calls: of scalar functions, types, item methods, and of Python functions, inlined."""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from fusionq.frontend.callees import Callee
from fusionq.frontend.captures import MISSING
from fusionq.frontend.complex_numbers import Element, complex_type
from fusionq.frontend.function_handlers import convert_number
from fusionq.frontend.function_table import call_scalar_function
from fusionq.frontend.group_operations import GroupOperations, is_language_function
from fusionq.frontend.item_queries import (
    COMPONENT_METHODS,
    LINEAR_ID_METHODS,
    LINEAR_RANGE_METHODS,
    SUB_GROUP_COMPONENTS,
    linear_id,
    linear_range,
    sub_group_query,
)
from fusionq.frontend.number_methods import METHODS_ALONE, NUMBER_METHODS
from fusionq.frontend.refused import REFUSED_BUILTINS, instead_of
from fusionq.frontend.sequence_functions import (
    SEQUENCE_BODIES,
    is_sequence_function,
    with_items,
)
from fusionq.frontend.typing_rules import named_type
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    ComplexValue,
    Constant,
    FunctionValue,
    ItemValue,
    MethodValue,
    ObjectValue,
    ReductionValue,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    VectorValue,
    describe,
    has_fields,
    is_array,
    is_complex,
)
from fusionq.frontend.written_functions import call_written_function
from fusionq.ir.nodes import ItemQuery
from fusionq.ir.types import INT64, WEAK_FLOAT, WEAK_INT, ScalarType


def _is_elementwise(obj: object) -> bool:
    """Whether a function of NumPy goes over the elements of arrays."""
    return isinstance(obj, np.ufunc) or obj is np.where or obj is np.clip


class Calls(GroupOperations):
    """Lowers calls."""

    @abstractmethod
    def sequence_call(self, function: object, node: ast.Call) -> Value | None:
        """A call of one argument that is gone over; None for another call."""

    @abstractmethod
    def array_call(
        self, function: object, arguments: Sequence[Value], node: ast.Call
    ) -> Value | None:
        """A call of NumPy's that combines the elements of arrays; None for another call."""

    @abstractmethod
    def of_expression(self, function: object, values: VectorValue, node: ast.Call) -> Value:
        """Python's ``sum`` and its like of an expression of rows."""

    @abstractmethod
    def array_method(self, node: ast.Call) -> Value | None:
        """A call of a method that combines the elements of an array; None for another call."""

    @abstractmethod
    def inline_nested(
        self,
        function: FunctionValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.AST,
    ) -> Value:
        """The result of a call of a function that is defined in the kernel."""

    def call(self, node: ast.Call) -> Value:
        known = self.static(node)
        if known is not MISSING:
            return self.object_attribute(known, node)
        named_attribute = self._getattr(node)
        if named_attribute is not None:
            return self.attribute(named_attribute)
        of_number = self._number_method(node)
        if of_number is not None:
            return of_number
        of_array = self.array_method(node)
        if of_array is not None:
            return of_array
        callee = self.value(node.func)
        if isinstance(callee, ObjectValue):
            self._refuse_builtin(callee.object, node)
            gone_over = self.sequence_call(callee.object, node)
            if gone_over is not None:
                return gone_over
        if any(keyword.arg is None for keyword in node.keywords):
            self.fail(node, "** is not supported in calls", "Write the arguments out.")
        keywords = [(keyword.arg or "", keyword.value) for keyword in node.keywords]
        own = isinstance(callee, ObjectValue) and is_language_function(callee.object)
        position = len(self.block)
        nodes, values = self.with_items(
            [*node.args, *(value for _, value in keywords)],
            self.text_or_value if own else self.value,
        )
        callee = self.evaluated_before(position, callee, node)
        count = len(nodes) - len(keywords)
        node = ast.copy_location(ast.Call(node.func, nodes[:count], node.keywords), node)
        positional = values[:count]
        named = {name: v for (name, _), v in zip(keywords, values[len(positional) :], strict=True)}
        if isinstance(callee, ObjectValue) and own:
            assert callable(callee.object)
            return self.language_call(callee.object, positional, named, node)
        if isinstance(callee, FunctionValue):
            return self.inline_nested(callee, positional, named, node)
        if isinstance(callee, ObjectValue):
            inlined = self.kernel.captures.callee(callee.object)
            if inlined is not None:
                return self.inline(inlined, positional, named, node)
        if isinstance(callee, MethodValue) and isinstance(callee.owner, AtomicValue):
            return self.atomic_operation(callee.owner, callee.name, positional, named, node)
        if isinstance(callee, MethodValue) and isinstance(callee.owner, ReductionValue):
            return self.combine_call(callee.owner, positional, named, node)
        if isinstance(callee, ObjectValue):
            made = self.numpy_array(callee.object, positional, named, node)
            if made is not None:
                return made
        if named:
            self.fail(
                node,
                f"{ast.unparse(node.func)} takes no keyword arguments in a kernel",
                "Leave optional arguments out, and pass the others by position.",
            )
        if isinstance(callee, MethodValue) and isinstance(callee.owner, ComplexValue):
            if positional:
                self.fail(node, "conjugate takes no arguments", "Write z.conjugate().")
            return self.conjugate(callee.owner, node)
        if isinstance(callee, MethodValue):
            assert isinstance(callee.owner, ItemValue)
            return self.item_method(callee.owner, callee.name, positional, node)
        if not isinstance(callee, ObjectValue):
            hint = "Call functions."
            if isinstance(node.func, ast.Attribute) and isinstance(callee, (Runtime, Constant)):
                hint = f"It is no method: write {ast.unparse(node.func)} without parentheses."
            self.fail(node, f"{describe(callee)} cannot be called", hint)
        return self.object_call(callee.object, positional, node)

    def _number_method(self, node: ast.Call) -> Scalar | None:
        """``x.view(np.uint32)``, ``x.astype(np.float64)``, ``x.item()`` and ``x.bit_count()`` of a
        number; None for other calls."""
        function = node.func
        names = (*NUMBER_METHODS, *METHODS_ALONE)
        if not isinstance(function, ast.Attribute) or function.attr not in names:
            return None
        owner = self.value(function.value) if self.static(function) is MISSING else None
        if not isinstance(owner, (Runtime, Constant)):
            return None
        if function.attr in METHODS_ALONE:
            if node.args or node.keywords:
                name = function.attr
                self.fail(node, f"{name} takes no arguments", f"Write x.{name}().")
            return METHODS_ALONE[function.attr](self, owner, node)
        if len(node.args) != 1 or node.keywords:
            self.fail(node, f"{function.attr} takes a type", f"Write {function.attr}(np.float32).")
        obj = self.value(node.args[0])
        return NUMBER_METHODS[function.attr](self, owner, obj, node)

    def _getattr(self, node: ast.Call) -> ast.Attribute | None:
        """``getattr(x, name)`` with a known name as ``x.name``; None for another call."""
        if len(node.args) != 2 or node.keywords or self.static(node.func) is not getattr:
            return None
        text = node.args[1]
        name = text.value if isinstance(text, ast.Constant) else self.static(text)
        if not isinstance(name, str):
            return None
        attribute = ast.Attribute(node.args[0], name, ast.Load())
        return ast.copy_location(attribute, node)

    def _refuse_builtin(self, obj: object, node: ast.Call) -> None:
        """Refuse a built-in function by its name, whatever its arguments are."""
        name = getattr(obj, "__name__", "")
        if name in REFUSED_BUILTINS and obj is getattr(builtins, name):
            self.fail(node, f"{name} cannot be called in a kernel", REFUSED_BUILTINS[name])

    def object_call(self, obj: object, arguments: Sequence[Value], node: ast.Call) -> Value:
        """A call of a type, of a function of the table, or an error."""
        name = ast.unparse(node.func)
        scalar = named_type(obj)
        of_arrays = self.array_call(obj, arguments, node)
        if of_arrays is not None:
            return of_arrays
        if is_sequence_function(obj) and len(arguments) == 1:
            return self.of_sequence(obj, arguments[0], node)
        if any(map(is_array, arguments)) and _is_elementwise(obj):
            return self.elementwise(partial(self.function_of, obj, node=node), arguments, node)
        if obj is complex or complex_type(obj) is not None:
            if len(arguments) == 1 and is_array(arguments[0]) and obj is not complex:
                return self.elementwise(
                    lambda number: self.converted_to_complex(obj, [number], node), arguments, node
                )
            return self.converted_to_complex(obj, arguments, node)
        if getattr(obj, "__module__", None) == "cmath":
            arguments = [self.made_complex(a, node) for a in arguments]
        if any(map(is_complex, arguments)):
            numbers = [self.number_value(a, n) for a, n in zip(arguments, node.args, strict=True)]
            return self.complex_function(obj, numbers, node)
        if scalar is not None:
            if len(arguments) != 1:
                self.fail(node, f"{name} takes one number", "Write the number to convert.")
            text = arguments[0].object if isinstance(arguments[0], ObjectValue) else None
            if isinstance(text, str) and scalar.is_float:  # float("inf")
                return self.retyped(self._number_written(text, node), scalar, node)
            if is_array(arguments[0]) and not scalar.weak:
                return self.elementwise(
                    lambda number: self._as_type(scalar, number, node), arguments, node
                )
            return convert_number(self, scalar, self.scalar(arguments[0], node.args[0]), node)
        if obj is len and len(arguments) == 1:
            return self.length(arguments[0], node)
        if (obj is np.finfo or obj is np.iinfo) and len(arguments) == 1:
            return self.type_limits(obj, arguments[0], node)
        written = call_written_function(self, obj, arguments, node)
        if written is not None:
            return written
        return self.function_of(obj, *arguments, node=node)

    def of_sequence(self, obj: object, value: Value, node: ast.Call) -> Value:
        """``sum``, ``math.prod``, ``min``, ``max``, ``any`` and ``all`` of a tuple or of a row."""
        if isinstance(value, TupleValue) and obj in (min, max) and value.items:
            if not value.items[1:]:
                return value.items[0]
            return self.function_of(obj, *value.items, node=with_items(node, len(value.items)))
        if isinstance(value, VectorValue) and value.ndim == 1:
            return self.of_expression(obj, value, node)
        of_row = isinstance(value, ArrayValue) and value.ndim == 1 and not has_fields(value)
        if not of_row and not (isinstance(value, TupleValue) and obj not in (min, max)):
            self.fail(
                node,
                f"{ast.unparse(node.func)} of {describe(value)}",
                "It takes a tuple, a row, e.g. a[i], or a generator, e.g. of a row's squares: "
                "x * x for x in a[i].",
            )
        return self.inline(Callee(SEQUENCE_BODIES[obj]), [value], {}, node)

    def _number_written(self, text: str, node: ast.Call) -> Constant:
        """``float("inf")``."""
        try:
            return Constant(WEAK_FLOAT, float(text))
        except ValueError:
            self.fail(node, f"{text!r} is no number", 'Write one, e.g. float("inf").')

    def _as_type(self, scalar: ScalarType, number: Element, node: ast.Call) -> Scalar:
        if isinstance(number, ComplexValue):
            self.refuse_complex(ast.unparse(node.func), node)
        return convert_number(self, scalar, self.scalar(number, node), node)

    def function_of(self, obj: object, *arguments: Value, node: ast.Call) -> Element:
        """The value of a function of the table, or an error."""
        if any(map(is_complex, arguments)):
            return self.complex_function(
                obj, [self.number_value(argument, node) for argument in arguments], node
            )
        value = call_written_function(self, obj, arguments, node)
        if value is None:
            value = call_scalar_function(self, obj, arguments, node)
        if value is not None:
            return self.scalar(value, node)
        name = ast.unparse(node.func)
        if hasattr(obj, "specialise"):
            self.fail(
                node,
                f"{name} is a kernel; only plain functions can be called",
                "Move what both need into a function without the decorator.",
            )
        self.fail(node, f"{name} cannot be called in a kernel", instead_of(obj, name))

    def length(self, value: Value, node: ast.Call) -> Value:
        """``len`` of an array or a tuple."""
        if isinstance(value, TupleValue):
            return Constant(WEAK_INT, len(value.items))
        if isinstance(value, ArrayValue) and value.ndim:
            return self.extents(value)[0]
        self.fail(node, f"len of {describe(value)}", "len takes an array or a tuple.")

    def type_limits(self, info: object, value: Value, node: ast.Call) -> Value:
        """``np.finfo(np.float32)`` and ``np.iinfo(np.int8)``, at compile time."""
        obj = value.object if isinstance(value, ObjectValue) else None
        scalar = named_type(obj.type if isinstance(obj, np.dtype) else obj)
        if scalar is not None and not scalar.weak:
            if info is np.finfo and scalar.is_float:
                return ObjectValue(np.finfo(scalar.name))
            if info is np.iinfo and scalar.is_integer:
                return ObjectValue(np.iinfo(scalar.name))
        self.fail(
            node,
            f"{ast.unparse(node)} has no limits",
            "Give np.finfo a floating NumPy type, np.iinfo an integer one.",
        )

    def item_method(
        self, item: ItemValue, name: str, arguments: Sequence[Value], node: ast.Call
    ) -> Value:
        """A query of the Item, the NdItem or the Group."""
        ndim = self.kernel.signature.ndim
        if item.kind == "sub_group":
            if name in SUB_GROUP_COMPONENTS:
                self.dimension(name, arguments, node, 1)
                name = SUB_GROUP_COMPONENTS[name]
            elif arguments:
                self.fail(node, f"{name} takes no arguments", f"Write {name}().")
            return sub_group_query(name, ndim, self.sub_group_size(node))
        query = COMPONENT_METHODS[item.kind].get(name)
        if query is not None:
            return Runtime(INT64, ItemQuery(query, self.dimension(name, arguments, node, ndim)))
        if arguments:
            self.fail(node, f"{name} takes no arguments", f"Write {name}().")
        if name == "get_group":
            return ItemValue("group")
        if name == "get_sub_group":
            self.sub_group_size(node)
            return ItemValue("sub_group")
        if name in LINEAR_ID_METHODS[item.kind]:
            return linear_id(*LINEAR_ID_METHODS[item.kind][name], ndim)
        return linear_range(LINEAR_RANGE_METHODS[item.kind][name], ndim)

    def dimension(
        self, name: str, arguments: Sequence[Value], node: ast.Call, ndim: int
    ) -> int:
        """Which of ``ndim`` dimensions a query asks for; it may be left out where there is one."""
        if not arguments and ndim == 1:
            return 0
        if len(arguments) != 1:
            self.fail(node, f"{name} takes one dimension", f"Write {name}(0) … {name}({ndim - 1}).")
        dim = self.integer_constant(arguments[0], node.args[0], "the dimension")
        if not 0 <= dim < ndim:
            self.fail(
                node,
                f"dimension {dim} of a range that has {ndim}",
                f"Dimensions count from 0 to {ndim - 1}; or submit a range with more dimensions.",
            )
        return dim
