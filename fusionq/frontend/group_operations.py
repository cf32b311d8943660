"""Barriers and group functions as statements of the IR; the language's own calls."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from fusionq.frontend.atomic_operations import AtomicOperations
from fusionq.frontend.joint_operations import JointOperations
from fusionq.frontend.language_arguments import NOTHING, Argument, Arguments
from fusionq.frontend.private_arrays import PrivateArrays
from fusionq.frontend.reductions import Reductions
from fusionq.frontend.regions import Regions
from fusionq.frontend.typing_rules import type_name
from fusionq.frontend.values import (
    Constant,
    ItemValue,
    Runtime,
    Scalar,
    Value,
)
from fusionq.ir.nodes import Barrier, Const, Expr, Fence, GroupCall, GroupFunction, GroupOp, Var
from fusionq.ir.types import BFLOAT16, FLOAT32, INT64
from fusionq.language.atomics import AtomicRef, atomic_fence
from fusionq.language.groups import (
    all_of_group,
    any_of_group,
    exclusive_scan_over_group,
    group_barrier,
    group_broadcast,
    inclusive_scan_over_group,
    none_of_group,
    permute_group_by_xor,
    reduce_over_group,
    select_from_group,
    shift_group_left,
    shift_group_right,
)
from fusionq.language.joint import (
    joint_all_of,
    joint_any_of,
    joint_exclusive_scan,
    joint_inclusive_scan,
    joint_none_of,
    joint_reduce,
)
from fusionq.language.local_memory import LocalAccessor, PrivateArray
from fusionq.language.memory_model import MemoryScope
from fusionq.language.regions import mark, region

_RESULTS: dict[GroupFunction, str] = {
    "reduce": "reduced", "inclusive_scan": "scanned", "exclusive_scan": "scanned",
    "broadcast": "broadcast", "any": "any_item", "all": "all_items",
    "shift_left": "shifted", "shift_right": "shifted", "permute_xor": "permuted",
    "select": "selected",
}  # fmt: skip
"""What the variable for a group function's result is called."""


class GroupOperations(AtomicOperations, PrivateArrays, Regions, JointOperations, Reductions):
    """Lowers the calls of the kernel language's own functions."""

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

    def barrier(self, arguments: Arguments, node: ast.Call) -> Value:
        self.group_argument(arguments, ("group",))
        scope = self.scope_argument(arguments, "fence_scope", MemoryScope.WORK_GROUP)
        span = self.span(node)
        barrier = Barrier(span=span)
        if scope in ("device", "system"):
            fences = Fence("release", scope, span), Fence("acquire", scope, span)
            self.block += [fences[0], barrier, fences[1]]
        else:
            self.block.append(barrier)
        return NOTHING

    def combining(self, function: GroupFunction, arguments: Arguments, node: ast.Call) -> Value:
        """A reduction or a scan."""
        self.group_argument(arguments)
        x = self.number_argument(arguments, "x")
        op = self.operation_argument(arguments, x.type, node)
        result = self._group_call(function, op, x, None, arguments, node)
        init = self.initial(arguments, result.type, node)
        return result if init is None else self.combined(op, init, result, node)

    def broadcast(self, arguments: Arguments, node: ast.Call) -> Value:
        self.group_argument(arguments)
        source: Expr = Const(INT64, 0)
        if "source" in arguments:
            number, place = self.number_argument(arguments, "source"), arguments["source"].node
            negative = isinstance(number, Constant) and int(number.value) < 0
            if not number.type.is_integer or negative:
                self.fail(
                    place,
                    "the source of a broadcast is not "
                    + ("negative" if negative else f"of type {type_name(number.type)}"),
                    "It is an integer: the linear local id of a work-item.",
                )
            source = self.convert(number, INT64, place)
        x = self.number_argument(arguments, "x")
        return self._group_call("broadcast", None, x, source, arguments, node)

    def shuffle(
        self, function: GroupFunction, name: str, arguments: Arguments, node: ast.Call
    ) -> Value:
        """A shift, a permutation or ``select``; ``name``: the argument beside the value."""
        self.group_argument(arguments, ("sub_group",))
        source: Expr = Const(INT64, 1)
        if name in arguments:
            number, place = self.number_argument(arguments, name), arguments[name].node
            if not number.type.is_integer:
                self.fail(
                    place,
                    f"{name} is of type {type_name(number.type)}",
                    "It is an integer: convert it, e.g. int(x).",
                )
            source = self.convert(number, INT64, place)
        x = self.number_argument(arguments, "x")
        return self._group_call(function, None, x, source, arguments, node)

    def vote(
        self, function: GroupFunction, negated: bool, arguments: Arguments, node: ast.Call
    ) -> Value:
        """``any`` and ``all``, and the opposite."""
        self.group_argument(arguments)
        voted = self.voted(arguments, arguments["condition"].value, node)
        result = self._group_call(function, None, voted, None, arguments, node)
        return self.unary("not", result, node) if negated else result

    def _group_call(
        self,
        function: GroupFunction,
        op: GroupOp | None,
        x: Scalar,
        source: Expr | None,
        arguments: Arguments,
        node: ast.Call,
    ) -> Runtime:
        type_ = x.type.strong
        exchanged = FLOAT32 if type_ == BFLOAT16 else type_  # which has all of its values
        result = self.fresh(_RESULTS[function])
        value = self.convert(Runtime(type_, self.convert(x, type_, node)), exchanged, node)
        inside = arguments["group"].value == ItemValue("sub_group")
        size = self.sub_group_size(node) if inside else None
        self.block.append(GroupCall(function, op, value, source, result, self.span(node), size))
        found = Runtime(exchanged, Var(exchanged, result))
        return Runtime(type_, self.convert(found, type_, node))

    def lone_region(self, arguments: Arguments, node: ast.Call) -> Value:
        self.fail(node, "a region is entered by with", 'Write with fq.region("name"):')

    def local_accessor(self, arguments: Arguments, node: ast.Call) -> Value:
        self.fail(
            node,
            "a LocalAccessor is made on the host",
            "Pass it to submit as an argument; inside a kernel there is PrivateArray.",
        )


Handler: TypeAlias = Callable[[GroupOperations, Arguments, ast.Call], Value]


def _combining(function: GroupFunction) -> Handler:
    return lambda lowering, arguments, node: lowering.combining(function, arguments, node)


def _vote(function: GroupFunction, negated: bool = False) -> Handler:
    return lambda lowering, arguments, node: lowering.vote(function, negated, arguments, node)


def _joint_scan(exclusive: bool) -> Handler:
    return lambda lowering, arguments, node: lowering.joint_scan(exclusive, arguments, node)


def _joint_vote(function: GroupFunction, negated: bool = False) -> Handler:
    return lambda lowering, arguments, node: lowering.joint_vote(
        function, negated, arguments, node
    )


def _shuffle(function: GroupFunction, name: str) -> Handler:
    return lambda lowering, arguments, node: lowering.shuffle(function, name, arguments, node)


LANGUAGE_FUNCTIONS: dict[object, Handler] = {
    group_barrier: GroupOperations.barrier,
    atomic_fence: GroupOperations.fence,
    reduce_over_group: _combining("reduce"),
    inclusive_scan_over_group: _combining("inclusive_scan"),
    exclusive_scan_over_group: _combining("exclusive_scan"),
    group_broadcast: GroupOperations.broadcast,
    any_of_group: _vote("any"),
    all_of_group: _vote("all"),
    none_of_group: _vote("any", negated=True),
    joint_reduce: GroupOperations.joint_reduce,
    joint_inclusive_scan: _joint_scan(exclusive=False),
    joint_exclusive_scan: _joint_scan(exclusive=True),
    joint_any_of: _joint_vote("any"),
    joint_all_of: _joint_vote("all"),
    joint_none_of: _joint_vote("any", negated=True),
    shift_group_left: _shuffle("shift_left", "delta"),
    shift_group_right: _shuffle("shift_right", "delta"),
    permute_group_by_xor: _shuffle("permute_xor", "mask"),
    select_from_group: _shuffle("select", "source"),
    AtomicRef: GroupOperations.atomic_ref,
    PrivateArray: GroupOperations.private_array,
    LocalAccessor: GroupOperations.local_accessor,
    mark: GroupOperations.mark,
    region: GroupOperations.lone_region,
}
"""The kernel language's own functions and types."""


def is_language_function(obj: object) -> bool:
    """Whether ``obj`` is one of ``LANGUAGE_FUNCTIONS``."""
    try:
        return obj in LANGUAGE_FUNCTIONS
    except TypeError:  # not hashable
        return False
