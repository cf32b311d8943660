"""AtomicRef and atomic_fence, as statements of the IR."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusionq.frontend.draft import Draft, DraftIf
from fusionq.frontend.group_arguments import BITWISE
from fusionq.frontend.language_arguments import NOTHING, Arguments, LanguageArguments
from fusionq.frontend.typing_rules import type_name
from fusionq.frontend.values import (
    ArrayValue,
    AtomicValue,
    Constant,
    MethodValue,
    Runtime,
    TupleValue,
    Value,
    describe,
)
from fusionq.ir.nodes import (
    Assign,
    Atomic,
    AtomicOp,
    Binary,
    BinaryOp,
    Call,
    Compare,
    Expr,
    Fence,
    Load,
    Logical,
    Store,
    Unary,
    Var,
)
from fusionq.ir.types import BOOL, WEAK_INT, ScalarType
from fusionq.language.memory_model import AddressSpace, MemoryOrder, MemoryScope

ATOMIC_TYPES = ("int32", "int64", "uint32", "uint64", "float32", "float64")
ATOMIC_METHODS: dict[str, AtomicOp] = {
    "fetch_add": "add", "fetch_sub": "sub", "fetch_min": "min", "fetch_max": "max",
    "fetch_and": "and", "fetch_or": "or", "fetch_xor": "xor",
    "exchange": "exchange", "load": "load", "store": "store",
}  # fmt: skip

_ARITHMETIC: dict[AtomicOp, BinaryOp] = {
    "add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_FIRST = Constant(WEAK_INT, 0)


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
        if isinstance(index.value, TupleValue) and index.value.is_list:
            self.fail(index.node, "a list is no index", "Give a tuple of a number a dimension.")
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
        known = (*ATOMIC_METHODS, "compare_exchange")
        if node.attr in known:
            return MethodValue(owner, node.attr)
        self.fail(node, f"an AtomicRef has no {node.attr!r}", f"It has {', '.join(known)}.")

    def atomic_operation(
        self,
        ref: AtomicValue,
        method: str,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.Call,
    ) -> Value:
        """The value before; ``store`` has none, ``compare_exchange`` says whether it stored."""
        if method == "compare_exchange":
            return self._compare_exchange(ref, arguments, keywords, node)
        if keywords:
            self.fail(
                node,
                f"{ast.unparse(node.func)} takes no keyword arguments in a kernel",
                "Pass the arguments by position.",
            )
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
            value = self._operand(method, arguments[0], dtype, node.args[0])
        result = None if op == "store" else self.fresh("loaded" if op == "load" else "before")
        element, span = ref.element, self.span(node)
        if self._is_private(element):
            return self._unshared(op, element, value, node)
        self.block.append(
            Atomic(op, element.name, element.indices, value, result, ref.order, ref.scope, span)
        )
        return NOTHING if result is None else Runtime(dtype, Var(dtype, result))

    def _is_private(self, element: ArrayValue) -> bool:
        declared = self.kernel.arrays.get(element.name)
        return declared is not None and declared.space == "private"

    def _unshared(
        self, op: AtomicOp, element: ArrayValue, value: Expr | None, node: ast.Call
    ) -> Value:
        """The operation on a private array, which no other work-item sees: a load and a store."""
        dtype, span = element.type.dtype, self.span(node)
        before = Var(dtype, self.fresh("before"))
        load = Load(dtype, element.name, element.indices, span)
        self.block.append(Assign(before.name, load, span))
        if value is None:
            return Runtime(dtype, before)
        new = value
        if op in ("min", "max"):
            new = Call(dtype, f"py{op}", (before, value))
        elif op not in ("exchange", "store"):
            new = Binary(dtype, _ARITHMETIC[op], before, value)
        self.block.append(Store(element.name, element.indices, new, span))
        return NOTHING if op == "store" else Runtime(dtype, before)

    def _operand(self, method: str, value: Value, dtype: ScalarType, node: ast.expr) -> Expr:
        """The operand of an operation on elements of ``dtype``: of that type, or a Python number
        that it holds."""
        operand = self.scalar(value, node)
        found = operand.type
        if found != dtype and (not found.weak or (found.is_float and not dtype.is_float)):
            self.fail(
                node,
                f"{method} of {type_name(found)} on elements of {type_name(dtype)}",
                f"Convert the operand: np.{dtype.name}(…).",
            )
        return self.convert(operand, dtype, node)

    def _compare_exchange(
        self,
        ref: AtomicValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.Call,
    ) -> Value:
        names = ("expected", "desired", "expected_idx")
        given = dict(zip(names, zip(arguments, node.args, strict=True), strict=False))
        for keyword in node.keywords:
            # numba-dpex's compiler has another name for the first than its documentation.
            name = "expected" if keyword.arg == "expected_ref" else keyword.arg or ""
            if name in given:
                name = ""
            given[name] = keywords[keyword.arg or ""], keyword.value
        if len(arguments) > 3 or not {"expected", "desired"} <= given.keys() <= set(names):
            self.fail(
                node,
                "compare_exchange takes an array, a value, and an index into the array",
                "Write compare_exchange(expected, desired) for expected[0], or "
                "compare_exchange(expected, desired, k).",
            )
        (array, array_node), (desired, desired_node) = given["expected"], given["desired"]
        index, index_node = given.get("expected_idx", (_FIRST, node))
        dtype, span = ref.element.type.dtype, self.span(node)
        if not isinstance(array, ArrayValue) or array.ndim != 1 or array.type.dtype != dtype:
            self.fail(
                array_node,
                f"expected is a 1-d array of {type_name(dtype)}, not {describe(array)}",
                f"Make one: expected = fq.PrivateArray(1, np.{dtype.name}).",
            )
        if array.name in self.kernel.tables:
            self.fail(array_node, f"{array.name!r} is constant", "Make a PrivateArray.")
        place = self.scalar(index, index_node)
        element = self.indexed(array, [place], [index_node], node)
        value = self._operand("compare_exchange", desired, dtype, desired_node)
        new = self.spilled_expr(value, "desired", node)
        expected = Var(dtype, self.fresh("expected"))
        before = Var(dtype, self.fresh("before"))
        swapped = Var(BOOL, self.fresh("swapped"))
        load = Load(dtype, element.name, element.indices, span)
        same: Expr = Compare("eq", before, expected)
        if dtype.is_float:
            nans = Compare("ne", before, before), Compare("ne", expected, expected)
            same = Logical("or", same, Logical("and", *nans))
        at = ref.element
        swap: list[Draft] = [Store(at.name, at.indices, new, span)]
        operation: Draft = Assign(before.name, Load(dtype, at.name, at.indices, span), span)
        if not self._is_private(at):
            swap = []
            operation = Atomic(
                "compare_exchange", at.name, at.indices, new, before.name, ref.order, ref.scope,
                span, expected,
            )  # fmt: skip
        self.block += [
            Assign(expected.name, load, span),
            operation,
            Assign(swapped.name, same, span),
            DraftIf(
                Unary(BOOL, "not", swapped),
                [Store(element.name, element.indices, before, span)],
                swap,
                span,
            ),
        ]
        return Runtime(BOOL, swapped)

    def discard(self, value: Value) -> None:
        """The value of the last call is not used: an atomic operation needs no variable for it."""
        last = self.block[-1] if self.block else None
        if not isinstance(last, Atomic) or last.result is None or last.op == "load":
            return
        if isinstance(value, Runtime) and value.expr == Var(value.type, last.result):
            self.block[-1] = replace(last, result=None)
