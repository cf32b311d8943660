"""The grammar of a plan's condition, for text that is not known to come from the analysis."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from keyword import iskeyword

from fusionq.analysis.validity_function import condition_function

MAX_LENGTH = 100_000

_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


_NAME = re.compile(r"[a-z]\w*", re.ASCII)


def is_condition(text: str, symbols: Sequence[str]) -> bool:
    """Whether ``text`` is an expression of ``symbols``, names that differ, integers, True and
    False, ``and or not``, comparisons, ``+ - *``, and ``//`` and ``%`` by positive integers:
    nothing that does more than count, or fails, when it is evaluated."""
    if len(text) > MAX_LENGTH or len(set(symbols)) < len(symbols):
        return False
    if not all(_NAME.fullmatch(name) and not iskeyword(name) for name in symbols):
        return False
    try:
        tree = ast.parse(text, mode="eval")
        if not _is_allowed(tree.body, symbols):
            return False
        condition_function(text, tuple(symbols))
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_allowed(node: ast.expr, symbols: Sequence[str]) -> bool:
    match node:
        case ast.Constant(value):
            return type(value) in (bool, int)
        case ast.Name(name):
            return name in symbols
        case ast.BoolOp(_, inside):
            pass
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            inside = [operand]
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult(), right):
            inside = [left, right]
        case ast.BinOp(left, ast.FloorDiv() | ast.Mod(), divisor):
            return _is_positive(divisor) and _is_allowed(left, symbols)
        case ast.Compare(left, operators, rest):
            if not all(isinstance(operator, _COMPARISONS) for operator in operators):
                return False
            inside = [left, *rest]
        case _:
            return False
    return all(_is_allowed(item, symbols) for item in inside)


def _is_positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0
