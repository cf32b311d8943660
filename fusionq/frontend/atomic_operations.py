"""AtomicRef and atomic_fence, as statements of the IR."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from fusionq.frontend.group_arguments import BITWISE
from fusionq.frontend.language_arguments import NOTHING, Arguments, LanguageArguments
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    MethodValue,
    Runtime,
    TupleValue,
    Value,
    describe,
)
from fusionq.ir.nodes import Atomic, AtomicOp, Fence, Var
from fusionq.language.memory_model import AddressSpace, MemoryOrder, MemoryScope

ATOMIC_TYPES = ("int32", "int64", "uint32", "uint64", "float32", "float64")
ATOMIC_METHODS: dict[str, AtomicOp] = {
    "fetch_add": "add", "fetch_sub": "sub", "fetch_min": "min", "fetch_max": "max",
    "fetch_and": "and", "fetch_or": "or", "fetch_xor": "xor",
    "exchange": "exchange", "load": "load", "store": "store",
}  # fmt: skip


class AtomicOperations(LanguageArguments):
    """Lowers atomic operations and fences."""

    def fence(self, arguments: Arguments, node: ast.Call) -> Value:
        order = self.order_argument(arguments, MemoryOrder.SEQ_CST)
        scope = self.scope_argument(arguments, "memory_scope", MemoryScope.DEVICE)
        self.block.append(Fence(order, scope, self.span(node)))
        return NOTHING

    def atomic_ref(self, arguments: Arguments, node: ast.Call) -> Value:
        array = self._atomic_array(arguments, node)
        index = arguments["index"]
        items = index.value.items if isinstance(index.value, TupleValue) else (index.value,)
        nodes = [index.node] * len(items)
        scalars = [self.scalar(item, index.node) for item in items]
        element = self.indexed(array, scalars, nodes, node)
        if element.ndim:
            self.fail(
                index.node,
                f"{len(element.indices)} indices for the {element.type.ndim}-d array "
                f"{element.name!r}",
                "An AtomicRef is to a single element: give a tuple with one index for each "
                "dimension.",
            )
        order = self.order_argument(arguments, MemoryOrder.RELAXED)
        return AtomicValue(
            element, order, self.scope_argument(arguments, "memory_scope", MemoryScope.DEVICE)
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
        if array.name in self.kernel.tables:
            self.fail(place, f"{array.name!r} is constant", "Pass an array as an argument.")
        if space is AddressSpace.PRIVATE:
            self.fail(
                place,
                f"{array.name!r} is private: no other work-item can change it",
                "Use plain assignments, or an array argument or LocalAccessor.",
            )
        if "address_space" in arguments:
            given = self.member_argument(arguments, "address_space", space)
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
        if op in BITWISE and dtype.is_float:
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
