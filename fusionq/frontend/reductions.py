"""Reductions: what a work-item combines, in a variable of its own."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from fusionq.frontend.group_arguments import GroupArguments
from fusionq.frontend.language_arguments import NOTHING
from fusionq.frontend.values import Binding, ReductionValue, Runtime, Value
from fusionq.ir.nodes import Assign, BinaryOp, GroupOp, Var

_OPERATORS: dict[BinaryOp, tuple[str, GroupOp]] = {
    "add": ("+=", "add"), "mul": ("*=", "mul"),
    "and": ("&=", "and"), "or": ("|=", "or"), "xor": ("^=", "xor"),
}  # fmt: skip
"""How an operator is written that combines, and the operation that it is."""


class Reductions(GroupArguments):
    """Lowers ``r.combine(x)`` and ``r += x``."""

    def reduction_named(self, name: str) -> ReductionValue | None:
        """The reduction that a name stands for here, if it does."""
        bound = (self.env or {}).get(name)
        value = bound.value if isinstance(bound, Binding) else None
        return value if isinstance(value, ReductionValue) else None

    def combine_call(
        self,
        reduction: ReductionValue,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
        node: ast.Call,
    ) -> Value:
        """``r.combine(x)``."""
        if len(arguments) != 1 or keywords:
            self.fail(node, "combine takes one value", f"Write {reduction.name}.combine(x).")
        self._combine(reduction, arguments[0], node.args[0], node)
        return NOTHING

    def combine_operator(
        self, reduction: ReductionValue, op: BinaryOp, node: ast.AugAssign
    ) -> None:
        """``r += x``, where that is the reduction's operation."""
        kind = reduction.type
        own = [text for text, operation in _OPERATORS.values() if operation == kind.op]
        if not own or _OPERATORS.get(op, ("", None))[1] != kind.op:
            hint = f"Write {reduction.name}.combine(x)"
            self.fail(
                node,
                f"{ast.unparse(node)}: {reduction.name!r} is a reduction by {kind.op!r}",
                hint + (f", or {reduction.name} {own[0]} x." if own else "."),
            )
        self._combine(reduction, self.value(node.value), node.value, node)

    def _combine(
        self, reduction: ReductionValue, value: Value, given: ast.expr, node: ast.AST
    ) -> None:
        """Combine a value, converted as where it is stored, with what there is."""
        kind = reduction.type
        number = self.scalar(value, given)
        if kind.dtype.is_bool:
            number = self.truth(number, given)
        operand = self.spilled_expr(self.convert(number, kind.dtype, given), "combined", node)
        total = Var(kind.dtype, kind.total)
        values = Runtime(kind.dtype, total), Runtime(kind.dtype, operand)
        result = self.convert(self.combined(kind.op, *values, node), kind.dtype, node)
        self.block.append(Assign(total.name, result, self.span(node)))
