"""The arguments of group functions: the group, the operation, what it starts from, a predicate."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

from fusionq.frontend.callees import Callee
from fusionq.frontend.joint_bodies import COMBINE
from fusionq.frontend.language_arguments import Arguments, LanguageArguments
from fusionq.frontend.typing_rules import type_name
from fusionq.frontend.values import (
    ItemValue,
    ObjectValue,
    Runtime,
    Scalar,
    Value,
    describe,
)
from fusionq.ir.nodes import GroupOp
from fusionq.ir.python_text import constructor
from fusionq.ir.types import ScalarType
from fusionq.language.groups import op_name

BITWISE = ("and", "or", "xor")


class GroupArguments(LanguageArguments):
    """Reads the arguments that group functions have in common."""

    def group_argument(
        self, arguments: Arguments, kinds: Sequence[str] = ("group", "sub_group")
    ) -> None:
        """Check that the argument is the work-item's group or sub-group."""
        argument = arguments["group"]
        kind = argument.value.kind if isinstance(argument.value, ItemValue) else ""
        if kind == "sub_group" and kind not in kinds:
            self.fail(
                argument.node,
                "a barrier of a sub-group",
                "Pass item.get_group(): a barrier of the work-group is one of its sub-groups too.",
            )
        if kind == "group" and kind not in kinds:
            self.fail(
                argument.node,
                "this is a function of sub-groups",
                "Pass item.get_sub_group().",
            )
        if kind not in kinds:
            self.fail(
                argument.node,
                f"a group is needed here, not {describe(argument.value)}",
                "Pass item.get_group(); the kernel is submitted with an NdRange, and its item is "
                "an NdItem.",
            )

    def operation_argument(
        self, arguments: Arguments, type: ScalarType, node: ast.AST
    ) -> GroupOp:
        """The argument ``op``, for values of ``type``."""
        op = self._operation(arguments)
        if type.is_float and op in BITWISE:
            self.fail(
                node,
                f"{op!r} of {type_name(type)} over a group",
                "It needs integers or bools: convert first, e.g. np.int64(x).",
            )
        if type.is_bool and op not in BITWISE:
            self.fail(
                node,
                f"{op!r} of bools over a group",
                "Use 'and', 'or', 'xor', any_of_group or all_of_group, or convert first: int(x).",
            )
        return op

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

    def initial(
        self, arguments: Arguments, type: ScalarType, node: ast.AST
    ) -> Scalar | None:
        """The argument ``init`` in the type of the values; None where there is none."""
        argument = arguments.get("init")
        if argument is None or _is_none(argument.value):
            return None
        init = self.number_argument(arguments, "init")
        if not init.type.weak and init.type != type:
            self.fail(
                argument.node,
                f"init is of type {type_name(init.type)}, what is combined of {type_name(type)}",
                f"Convert it: {constructor(type)}(…).",
            )
        if init.type.is_float and not type.is_float:
            self.fail(
                argument.node,
                f"init is a float, what is combined of {type_name(type)}",
                "Write an integer.",
            )
        return Runtime(type, self.convert(init, type, argument.node))

    def combined(self, op: GroupOp, a: Scalar, b: Scalar, node: ast.AST) -> Scalar:
        """``a`` and ``b`` combined, as a group function does it."""
        return self.scalar(self.inline(Callee(COMBINE[op]), [a, b], {}, node), node)

    def voted(self, arguments: Arguments, value: Value, node: ast.Call) -> Scalar:
        """The truth of a value, or of the argument ``predicate`` of it."""
        callee = self.predicate(arguments)
        if callee is not None:
            value = self.inline(callee, [value], {}, node)
        return self.truth(self.scalar(value, node), node)

    def predicate(self, arguments: Arguments) -> Callee | None:
        """The argument ``predicate``, a function of the user's; None where there is none."""
        argument = arguments.get("predicate")
        if argument is None or _is_none(argument.value):
            return None
        value = argument.value
        callee = (
            self.kernel.captures.callee(value.object) if isinstance(value, ObjectValue) else None
        )
        if callee is None:
            self.fail(
                argument.node,
                f"a predicate is a plain Python function, not {describe(value)}",
                "Define one outside the kernel: def positive(x): return x > 0.",
            )
        return callee


def _is_none(value: Value) -> bool:
    return isinstance(value, ObjectValue) and value.object is None
