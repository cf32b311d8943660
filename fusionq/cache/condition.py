"""The grammar of a plan's condition, for text that is not known to come from the analysis."""

from __future__ import annotations

import ast
from collections.abc import Collection

FUNCTIONS = ("floord", "min", "max")
MAX_LENGTH = 100_000

_OPERATORS = (
    ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd,
    ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


def is_condition(text: str, symbols: Collection[str]) -> bool:
    """Whether ``text`` is an expression of ``symbols``, integers, True and False, ``and or not``,
    comparisons, ``+ - * // %``, and calls of ``floord``, ``min`` and ``max``: nothing that does
    more than count when it is evaluated."""
    if len(text) > MAX_LENGTH:
        return False
    try:
        return _is_allowed(ast.parse(text, mode="eval").body, symbols)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_allowed(node: ast.expr, symbols: Collection[str]) -> bool:
    operators: list[ast.AST]
    match node:
        case ast.Constant(value):
            return type(value) in (bool, int)
        case ast.Name(name, ast.Load()):
            return name in symbols and name not in FUNCTIONS
        case ast.BoolOp(op, values):
            operators, inside = [op], values
        case ast.UnaryOp(op, operand):
            operators, inside = [op], [operand]
        case ast.BinOp(left, op, right):
            operators, inside = [op], [left, right]
        case ast.Compare(left, comparisons, comparators):
            operators, inside = [*comparisons], [left, *comparators]
        case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS and len(arguments) >= 2:
            operators, inside = [], arguments
        case _:
            return False
    return all(isinstance(operator, _OPERATORS) for operator in operators) and all(
        _is_allowed(item, symbols) for item in inside
    )
