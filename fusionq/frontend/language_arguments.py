"""The arguments of calls of the kernel language's own functions."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias, TypeVar, cast

from fusionq.base.articles import with_article
from fusionq.base.frozen import dataclass
from fusionq.frontend.expressions import Expressions
from fusionq.frontend.values import ObjectValue, Scalar, Value
from fusionq.ir.nodes import MemoryOrderName, MemoryScopeName
from fusionq.language.memory_model import MemoryOrder, MemoryScope

NOTHING = ObjectValue(None)
"""What calls give that are statements."""

_Member = TypeVar("_Member", bound=Enum)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call, and where it stands."""

    value: Value
    node: ast.expr


Arguments: TypeAlias = Mapping[str, Argument]


class LanguageArguments(Expressions):
    """Reads arguments that have to be of a certain kind."""

    def text_or_value(self, node: ast.expr) -> Value:
        """The value of an argument that may also be a string, or the name of a global one."""
        text: object = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name) and self.owner(node.id) is None:
            text = self.kernel.captures.name(self.source.function, node.id)
        return ObjectValue(text) if isinstance(text, str) else self.value(node)

    def number_argument(self, arguments: Arguments, name: str) -> Scalar:
        """An argument that must be a number."""
        return self.scalar(arguments[name].value, arguments[name].node)

    def member_argument(self, arguments: Arguments, name: str, default: _Member) -> _Member:
        """An argument that is a member of an enumeration, known at compile time."""
        argument = arguments.get(name)
        if argument is None:
            return default
        member = argument.value.object if isinstance(argument.value, ObjectValue) else None
        kind = type(default)
        if not isinstance(member, kind):
            self.fail(
                argument.node,
                f"{name} is {with_article(kind.__name__)}, known at compile time",
                f"Write one of its members, e.g. {default}.",
            )
        return member

    def order_argument(self, arguments: Arguments, default: MemoryOrder) -> MemoryOrderName:
        """The argument ``memory_order``."""
        order = self.member_argument(arguments, "memory_order", default)
        if order is MemoryOrder.CONSUME_UNSUPPORTED:
            self.fail(
                arguments["memory_order"].node,
                "the order 'consume' is not supported, as its name says",
                "Use MemoryOrder.ACQUIRE, which is stronger.",
            )
        return cast(MemoryOrderName, order.name.lower())

    def scope_argument(
        self, arguments: Arguments, name: str, default: MemoryScope
    ) -> MemoryScopeName:
        """An argument that is a memory scope."""
        return cast(MemoryScopeName, self.member_argument(arguments, name, default).name.lower())
