"""The names that parts of a syntax tree assign, scope by scope."""

from __future__ import annotations

import ast
from collections.abc import Iterable

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned_names(nodes: Iterable[ast.AST]) -> set[str]:
    """All names that the statements assign, but for those of functions and comprehensions in
    them, which are their own."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if isinstance(node, ast.FunctionDef):
                found.add(node.name)
            waiting += _defaults(node)
        elif not isinstance(node, COMPREHENSIONS):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            waiting += ast.iter_child_nodes(node)
    return found


def _defaults(node: ast.FunctionDef | ast.Lambda) -> list[ast.AST]:
    """The defaults of a function's parameters, which are evaluated where it is defined."""
    return [*node.args.defaults, *filter(None, node.args.kw_defaults)]


def rebound_names(statement: ast.stmt) -> frozenset[str]:
    """The names that expressions of a statement assign, by ``:=``; not those of statements in
    it."""
    found: set[str] = set()
    waiting = list(ast.iter_child_nodes(statement))
    if isinstance(statement, ast.FunctionDef):
        waiting = _defaults(statement)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.NamedExpr):
            found.add(node.target.id)
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            waiting += _defaults(node)
        elif not isinstance(node, (ast.stmt, *COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)


def function_of_lambda(node: ast.Lambda) -> ast.FunctionDef:
    """The function that returns what a lambda expression gives, as a ``def`` in the same place."""
    body = ast.copy_location(ast.Return(node.body), node.body)
    tree = ast.FunctionDef(
        name="lambda_", args=node.args, body=[body], decorator_list=[], returns=None
    )  # fmt: skip
    if "type_params" in ast.FunctionDef._fields:  # Python 3.12
        tree.__dict__["type_params"] = []
    return ast.copy_location(tree, node)
