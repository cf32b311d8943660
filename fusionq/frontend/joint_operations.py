"""Group algorithms over arrays, whose bodies (``joint_bodies``) are inlined."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any

from fusionq.frontend import joint_bodies
from fusionq.frontend.callees import Callee
from fusionq.frontend.group_arguments import GroupArguments
from fusionq.frontend.item_queries import linear_id, linear_range, sub_group_query
from fusionq.frontend.language_arguments import NOTHING, Arguments
from fusionq.frontend.signature import ArrayType
from fusionq.frontend.typing_rules import WEAK_BOOL, type_name
from fusionq.frontend.values import (
    ArrayValue,
    Constant,
    ItemValue,
    ObjectValue,
    Runtime,
    Value,
    describe,
    has_fields,
)
from fusionq.ir.nodes import ArrayDecl, GroupCall, GroupFunction, GroupOp, Var
from fusionq.ir.types import BFLOAT16, BOOL, FLOAT32, ScalarType
from fusionq.language.combine import JOINT_LANES, identity


class JointOperations(GroupArguments):
    """Lowers ``joint_reduce`` and its kin."""

    def joint_reduce(self, arguments: Arguments, node: ast.Call) -> Value:
        """All elements combined."""
        x = self._elements("x", arguments)
        dtype = x.type.dtype
        op = self.operation_argument(arguments, dtype, node)
        init = self.initial(arguments, dtype, node)
        inner = FLOAT32 if dtype == BFLOAT16 else dtype
        named = self._group(arguments, node) | _operation(op, inner) | {"x": x}
        if named["group"] == ItemValue("sub_group"):
            body = _callee(joint_bodies.sub_group_reduction)
            named["op"] = ObjectValue(op)
        else:
            body = _callee(joint_bodies.joint_reduction)
            named["slots"] = self._slots(inner, 1)
        total = self.inline(body, [], named, node)
        result = self.retyped(self.scalar(total, node), dtype, node)
        return result if init is None else self.combined(op, init, result, node)

    def joint_scan(self, exclusive: bool, arguments: Arguments, node: ast.Call) -> Value:
        """A scan of all elements into another array."""
        x, out = self._elements("x", arguments), self._elements("out", arguments)
        dtype = x.type.dtype
        if out.type.dtype != dtype:
            self.fail(
                arguments["out"].node,
                f"out is of {type_name(out.type.dtype)}, x of {type_name(dtype)}",
                "A scan stores values of the type that it combines: give out that dtype.",
            )
        if out.name in self.kernel.tables:
            self.fail(
                arguments["out"].node,
                f"{out.name!r} is constant: it comes from outside the kernel",
                "Pass an array as an argument.",
            )
        op = self.operation_argument(arguments, dtype, node)
        init = self.initial(arguments, dtype, node)
        inner = FLOAT32 if dtype == BFLOAT16 else dtype
        named = self._group(arguments, node) | _operation(op, inner) | {"x": x, "out": out}
        named["init"] = named["start"] if init is None else self.retyped(init, inner, node)
        named["exclusive"] = Constant(WEAK_BOOL, exclusive)
        if named["group"] == ItemValue("sub_group"):
            body = _callee(joint_bodies.sub_group_scan)
            named["op"] = ObjectValue(op)
        else:
            body = _callee(joint_bodies.joint_scan)
            named["slots"] = self._slots(inner, 2)
        self.inline(body, [], named, node)
        return NOTHING

    def joint_vote(
        self, function: GroupFunction, negated: bool, arguments: Arguments, node: ast.Call
    ) -> Value:
        """Whether some, or every, element is true."""
        x = self._elements("x", arguments)
        named = self._group(arguments, node) | {"x": x}
        inside = named.pop("group") == ItemValue("sub_group")
        named["predicate"] = ObjectValue(
            self.predicate(arguments) or _callee(joint_bodies.is_true)
        )
        body = joint_bodies.some_element if function == "any" else joint_bodies.every_element
        found = self.inline(_callee(body), [], named, node)
        size = self.sub_group_size(node) if inside else None
        result = self.fresh("any_item" if function == "any" else "all_items")
        value = self.convert(self.scalar(found, node), BOOL, node)
        self.block.append(GroupCall(function, None, value, None, result, self.span(node), size))
        voted = Runtime(BOOL, Var(BOOL, result))
        return self.unary("not", voted, node) if negated else voted

    def _elements(self, name: str, arguments: Arguments) -> ArrayValue:
        value = arguments[name].value
        if not isinstance(value, ArrayValue) or value.ndim != 1 or has_fields(value):
            self.fail(
                arguments[name].node,
                f"a one-dimensional array is needed here, not {describe(value)}",
                "Pass a 1-d array, or a row or slice of one: a[i], a[:n].",
            )
        return value

    def _group(self, arguments: Arguments, node: ast.Call) -> dict[str, Value]:
        """The group, the work-item's place in it, and its size, as the bodies take them."""
        self.group_argument(arguments)
        group, ndim = arguments["group"].value, self.kernel.signature.ndim
        own: Value = linear_id("local_id", "local_range", ndim)
        items: Value = linear_range("local_range", ndim)
        if group == ItemValue("sub_group"):
            size = self.sub_group_size(node)
            own = sub_group_query("get_local_linear_id", ndim, size)
            items = sub_group_query("get_local_linear_range", ndim, size)
        return {"group": group, "own": own, "items": items}

    def _slots(self, dtype: ScalarType, count: int) -> ArrayValue:
        """Local memory for ``count`` times ``JOINT_LANES`` elements; calls of one kernel share it,
        since each ends at a barrier."""
        key = dtype, count
        if key not in self.kernel.slots:
            name = self.kernel.slots[key] = self.kernel.fresh(f"slots_{dtype.name}")
            shape = (count * JOINT_LANES,)
            self.kernel.arrays[name] = ArrayDecl(name, dtype, shape, "local")
        return ArrayValue(self.kernel.slots[key], ArrayType(dtype, 1))


def _operation(op: GroupOp, dtype: ScalarType) -> dict[str, Value]:
    """The operation and its identity, as the bodies take them."""
    return {
        "combine": ObjectValue(_callee(joint_bodies.COMBINE[op])),
        "start": Constant(dtype, identity(op, dtype.dtype)),
    }


def _callee(body: Callable[..., Any]) -> Callee:
    assert isinstance(body, FunctionType)
    return Callee(body)
