"""Barriers, atomic operations, group functions and private arrays, as statements of the IR."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from fusionq.frontend.expressions import Expressions
from fusionq.frontend.signature import ArrayType
from fusionq.frontend.typing_rules import named_type, type_name
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    Constant,
    ItemValue,
    MethodValue,
    NewPrivateArray,
    ObjectValue,
    Runtime,
    Scalar,
    TupleValue,
    Value,
    describe,
)
from fusionq.ir.nodes import (
    ArrayDecl,
    Atomic,
    AtomicOp,
    Barrier,
    Const,
    Expr,
    Fence,
    For,
    GroupCall,
    GroupFunction,
    GroupOp,
    MemoryOrderName,
    MemoryScopeName,
    Stmt,
    Store,
    Var,
)
from fusionq.ir.types import INT64, ScalarType
from fusionq.language.atomics import AtomicRef, atomic_fence
from fusionq.language.groups import (
    all_of_group,
    any_of_group,
    exclusive_scan_over_group,
    group_barrier,
    group_broadcast,
    inclusive_scan_over_group,
    op_name,
    reduce_over_group,
)
from fusionq.language.local_memory import LocalAccessor, PrivateArray
from fusionq.language.memory_model import AddressSpace, MemoryOrder, MemoryScope

NOTHING = ObjectValue(None)
ATOMIC_TYPES = ("int32", "int64", "uint32", "uint64", "float32", "float64")
ATOMIC_METHODS: dict[str, AtomicOp] = {
    "fetch_add": "add", "fetch_sub": "sub", "fetch_min": "min", "fetch_max": "max",
    "fetch_and": "and", "fetch_or": "or", "fetch_xor": "xor",
    "exchange": "exchange", "load": "load", "store": "store",
}  # fmt: skip
_BITWISE = ("and", "or", "xor")
_RESULTS: dict[GroupFunction, str] = {
    "reduce": "reduced", "inclusive_scan": "scanned", "exclusive_scan": "scanned",
    "broadcast": "broadcast", "any": "any_item", "all": "all_items",
}  # fmt: skip
"""What the variable for a group function's result is called."""

_Member = TypeVar("_Member", bound=Enum)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call, and where it stands."""

    value: Value
    node: ast.expr


Arguments: TypeAlias = Mapping[str, Argument]


class GroupOperations(Expressions):
    """Lowers the calls that work-items make together, and those that need memory of their own."""

    def language_call(
        self,
        function: Callable[..., Any],
        positional: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.Call,
    ) -> Value:
        """The value of a call of one of ``LANGUAGE_FUNCTIONS``."""
        nodes = [*node.args, *(keyword.value for keyword in node.keywords)]
        pairs = [
            Argument(v, n) for v, n in zip((*positional, *keywords.values()), nodes, strict=True)
        ]
        named = dict(zip(keywords, pairs[len(positional) :], strict=True))
        parameters = inspect.signature(function)
        try:
            bound = parameters.bind(*pairs[: len(positional)], **named)
        except TypeError as error:
            name = ast.unparse(node.func)
            names = ", ".join(
                p.name if p.default is p.empty else f"{p.name}=…"
                for p in parameters.parameters.values()
            )
            self.fail(node, f"{name}: {error}", f"Write {name}({names}).")
        return LANGUAGE_FUNCTIONS[function](self, bound.arguments, node)

    # ----------------------------------------------------------------- arguments
    def text_or_value(self, node: ast.expr) -> Value:
        """The value of an argument that may also be a string, or the name of a global one."""
        text: object = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name) and node.id not in self.source.local_names:
            text = self.kernel.captures.name(self.source.function, node.id)
        return ObjectValue(text) if isinstance(text, str) else self.value(node)

    def _group(self, arguments: Arguments) -> None:
        """Check that the argument is the work-item's group."""
        argument = arguments["group"]
        if argument.value != ItemValue("group"):
            self.fail(
                argument.node,
                f"a group is needed here, not {describe(argument.value)}",
                "Pass item.get_group(); the kernel is submitted with an NdRange, and its item is "
                "an NdItem.",
            )

    def _number(self, arguments: Arguments, name: str) -> Scalar:
        return self.scalar(arguments[name].value, arguments[name].node)

    def _member(self, arguments: Arguments, name: str, default: _Member) -> _Member:
        """An argument that is a member of an enumeration, known at compile time."""
        argument = arguments.get(name)
        if argument is None:
            return default
        member = argument.value.object if isinstance(argument.value, ObjectValue) else None
        kind = type(default)
        if not isinstance(member, kind):
            self.fail(
                argument.node,
                f"{name} is a {kind.__name__}, known at compile time",
                f"Write one of its members, e.g. {default}.",
            )
        return member

    def _order(self, arguments: Arguments, default: MemoryOrder) -> MemoryOrderName:
        order = self._member(arguments, "memory_order", default)
        if order is MemoryOrder.CONSUME_UNSUPPORTED:
            self.fail(
                arguments["memory_order"].node,
                "the order 'consume' is not supported, as its name says",
                "Use MemoryOrder.ACQUIRE, which is stronger.",
            )
        return cast(MemoryOrderName, order.name.lower())

    def _scope(self, arguments: Arguments, name: str, default: MemoryScope) -> MemoryScopeName:
        return cast(MemoryScopeName, self._member(arguments, name, default).name.lower())

    # ------------------------------------------------------- barriers and fences
    def barrier(self, arguments: Arguments, node: ast.Call) -> Value:
        self._group(arguments)
        scope = self._scope(arguments, "fence_scope", MemoryScope.WORK_GROUP)
        span = self.span(node)
        barrier = Barrier(span=span)
        if scope in ("device", "system"):
            fences = Fence("release", scope, span), Fence("acquire", scope, span)
            self.block += [fences[0], barrier, fences[1]]
        else:
            self.block.append(barrier)
        return NOTHING

    def fence(self, arguments: Arguments, node: ast.Call) -> Value:
        order = self._order(arguments, MemoryOrder.SEQ_CST)
        scope = self._scope(arguments, "memory_scope", MemoryScope.DEVICE)
        self.block.append(Fence(order, scope, self.span(node)))
        return NOTHING

    # ----------------------------------------------------------- group functions
    def combining(self, function: GroupFunction, arguments: Arguments, node: ast.Call) -> Value:
        """A reduction or a scan."""
        self._group(arguments)
        op = self._operation(arguments)
        x = self._number(arguments, "x")
        if x.type.is_float and op in _BITWISE:
            self.fail(
                node,
                f"{op!r} of {type_name(x.type)} over a group",
                "It needs integers or bools: convert first, e.g. np.int64(x).",
            )
        if x.type.is_bool and op not in _BITWISE:
            self.fail(
                node,
                f"{op!r} of bools over a group",
                "Use 'and', 'or', 'xor', any_of_group or all_of_group, or convert first: int(x).",
            )
        return self._group_call(function, op, x, None, node)

    def _operation(self, arguments: Arguments) -> GroupOp:
        argument = arguments.get("op")
        if argument is None:
            return "add"
        value = argument.value
        name = op_name(value.object) if isinstance(value, ObjectValue) else None
        if name is None:
            self.fail(
                argument.node,
                "this is no operation of a group function",
                "Write 'add', 'mul', 'min', 'max', 'and', 'or' or 'xor'.",
            )
        return cast(GroupOp, name)

    def broadcast(self, arguments: Arguments, node: ast.Call) -> Value:
        self._group(arguments)
        source: Expr = Const(INT64, 0)
        if "source" in arguments:
            number, place = self._number(arguments, "source"), arguments["source"].node
            negative = isinstance(number, Constant) and int(number.value) < 0
            if not number.type.is_integer or negative:
                self.fail(
                    place,
                    "the source of a broadcast is not "
                    + ("negative" if negative else f"of type {type_name(number.type)}"),
                    "It is an integer: the linear local id of a work-item.",
                )
            source = self.convert(number, INT64, place)
        return self._group_call("broadcast", None, self._number(arguments, "x"), source, node)

    def vote(self, function: GroupFunction, arguments: Arguments, node: ast.Call) -> Value:
        """``any`` and ``all``."""
        self._group(arguments)
        truth = self.truth(self._number(arguments, "condition"), node)
        return self._group_call(function, None, truth, None, node)

    def _group_call(
        self,
        function: GroupFunction,
        op: GroupOp | None,
        x: Scalar,
        source: Expr | None,
        node: ast.Call,
    ) -> Value:
        type_ = x.type.strong
        result = self.fresh(_RESULTS[function])
        value = self.convert(x, type_, node)
        self.block.append(GroupCall(function, op, value, source, result, self.span(node)))
        return Runtime(type_, Var(type_, result))

    # --------------------------------------------------------- atomic operations
    def atomic_ref(self, arguments: Arguments, node: ast.Call) -> Value:
        array = self._atomic_array(arguments, node)
        index = arguments["index"]
        items = index.value.items if isinstance(index.value, TupleValue) else (index.value,)
        nodes = [index.node] * len(items)
        scalars = [self.scalar(item, index.node) for item in items]
        element = self.indexed(array, scalars, nodes, node)
        if len(element.indices) < element.type.ndim:
            self.fail(
                index.node,
                f"{len(element.indices)} indices for the {element.type.ndim}-d array "
                f"{element.name!r}",
                "An AtomicRef is to a single element: give a tuple with one index for each "
                "dimension.",
            )
        order = self._order(arguments, MemoryOrder.RELAXED)
        return AtomicValue(
            element, order, self._scope(arguments, "memory_scope", MemoryScope.DEVICE)
        )

    def _atomic_array(self, arguments: Arguments, node: ast.Call) -> ArrayValue:
        array, place = arguments["array"].value, arguments["array"].node
        if not isinstance(array, ArrayValue):
            self.fail(place, f"an array is needed here, not {describe(array)}", "Pass an array.")
        dtype = array.type.dtype
        if dtype.name not in ATOMIC_TYPES:
            self.fail(
                place,
                f"there are no atomic operations on {dtype}, the dtype of {array.name!r}",
                f"They take {', '.join(ATOMIC_TYPES)}.",
            )
        declared = self.kernel.arrays.get(array.name)
        space = AddressSpace[declared.space.upper()] if declared else AddressSpace.GLOBAL
        if space is AddressSpace.PRIVATE:
            self.fail(
                place,
                f"{array.name!r} is private: no other work-item can change it",
                "Use plain assignments, or an array argument or LocalAccessor.",
            )
        if "address_space" in arguments:
            given = self._member(arguments, "address_space", space)
            if given not in (space, AddressSpace.GENERIC):
                self.fail(
                    arguments["address_space"].node,
                    f"{array.name!r} is in {space.name.lower()} memory, not in {given}",
                    f"Write {space}, or leave it out.",
                )
        return array

    def atomic_method(self, owner: AtomicValue, node: ast.Attribute) -> Value:
        if node.attr in ATOMIC_METHODS:
            return MethodValue(owner, node.attr)
        if node.attr == "compare_exchange":
            self.fail(
                node,
                "compare_exchange is not supported: loops that wait for other work-items with "
                "it need not end on every device",
                "Use fetch_add, fetch_min and their like, or exchange.",
            )
        self.fail(
            node, f"an AtomicRef has no {node.attr!r}", f"It has {', '.join(ATOMIC_METHODS)}."
        )

    def atomic_operation(
        self, ref: AtomicValue, method: str, arguments: Sequence[Value], node: ast.Call
    ) -> Value:
        """The value before; ``store`` has none."""
        op, dtype = ATOMIC_METHODS[method], ref.element.type.dtype
        if len(arguments) != (op != "load"):
            takes = "no argument" if op == "load" else "one value"
            self.fail(
                node, f"{method} takes {takes}", f"Write {method}({'' if op == 'load' else 'x'})."
            )
        if op in _BITWISE and dtype.is_float:
            self.fail(node, f"{method} of {dtype}", "Bitwise operations need an array of integers.")
        value = None
        if arguments:
            operand = self.scalar(arguments[0], node.args[0])
            value = self.convert(operand, dtype, node.args[0])
        result = None if op == "store" else self.fresh("loaded" if op == "load" else "before")
        element, span = ref.element, self.span(node)
        self.block.append(
            Atomic(op, element.name, element.indices, value, result, ref.order, ref.scope, span)
        )
        return NOTHING if result is None else Runtime(dtype, Var(dtype, result))

    def discard(self, value: Value) -> None:
        """The value of the last call is not used: an atomic operation needs no variable for it."""
        last = self.block[-1] if self.block else None
        if not isinstance(last, Atomic) or last.result is None or last.op == "load":
            return
        if isinstance(value, Runtime) and value.expr == Var(value.type, last.result):
            self.block[-1] = replace(last, result=None)

    # ------------------------------------------------------------ private arrays
    def private_array(self, arguments: Arguments, node: ast.Call) -> Value:
        shape, place = arguments["shape"].value, arguments["shape"].node
        items = shape.items if isinstance(shape, TupleValue) else (shape,)
        extents = tuple(
            self.integer_constant(item, place, "the shape of a PrivateArray") for item in items
        )
        if not 1 <= len(extents) <= 3 or min(extents) < 1:
            self.fail(
                place,
                f"a PrivateArray of the shape {extents}",
                "Give one to three extents, each at least 1.",
            )
        zeros = self._flag(arguments) if "fill_zeros" in arguments else False
        return NewPrivateArray(ArrayType(self._dtype(arguments), len(extents)), extents, zeros)

    def _dtype(self, arguments: Arguments) -> ScalarType:
        argument = arguments["dtype"]
        obj = argument.value.object if isinstance(argument.value, ObjectValue) else None
        dtype = named_type(obj.type if isinstance(obj, np.dtype) else obj)
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
        dtype = array.type.dtype
        self.kernel.arrays[name] = ArrayDecl(name, dtype, array.shape, "private")
        if array.fill_zeros:
            self.block.append(self._zeros(name, array, node))
        return ArrayValue(name, array.type)

    def _zeros(self, name: str, array: NewPrivateArray, node: ast.AST) -> Stmt:
        span = self.span(node)
        zero = self.convert(Constant(array.type.dtype, 0), array.type.dtype, node)
        if prod(array.shape) == 1:
            return Store(name, tuple(Const(INT64, 0) for _ in array.shape), zero, span)
        loops = [self.fresh(f"{name}_{d}") for d in range(len(array.shape))]
        filled: Stmt = Store(name, tuple(Var(INT64, k) for k in loops), zero, span)
        for loop, extent in zip(reversed(loops), reversed(array.shape), strict=True):
            stop = Const(INT64, extent)
            filled = For(loop, Const(INT64, 0), stop, Const(INT64, 1), (filled,), span)
        return filled

    def local_accessor(self, arguments: Arguments, node: ast.Call) -> Value:
        self.fail(
            node,
            "a LocalAccessor is made on the host",
            "Pass it to submit as an argument; inside a kernel there is PrivateArray.",
        )


Handler: TypeAlias = Callable[[GroupOperations, Arguments, ast.Call], Value]


def _combining(function: GroupFunction) -> Handler:
    return lambda lowering, arguments, node: lowering.combining(function, arguments, node)


def _vote(function: GroupFunction) -> Handler:
    return lambda lowering, arguments, node: lowering.vote(function, arguments, node)


LANGUAGE_FUNCTIONS: dict[object, Handler] = {
    group_barrier: GroupOperations.barrier,
    atomic_fence: GroupOperations.fence,
    reduce_over_group: _combining("reduce"),
    inclusive_scan_over_group: _combining("inclusive_scan"),
    exclusive_scan_over_group: _combining("exclusive_scan"),
    group_broadcast: GroupOperations.broadcast,
    any_of_group: _vote("any"),
    all_of_group: _vote("all"),
    AtomicRef: GroupOperations.atomic_ref,
    PrivateArray: GroupOperations.private_array,
    LocalAccessor: GroupOperations.local_accessor,
}
"""The kernel language's own functions and types."""


def is_language_function(obj: object) -> bool:
    """Whether ``obj`` is one of ``LANGUAGE_FUNCTIONS``."""
    try:
        return obj in LANGUAGE_FUNCTIONS
    except TypeError:  # not hashable
        return False
