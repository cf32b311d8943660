"""``match`` as ``if`` and ``elif``.

    match a[i] % 4:              subject = a[i] % 4
        case 0:                  if subject == 0:
            x = 1                    x = 1
        case 1 | 2:        →     elif subject == 1 or subject == 2:
            x = 2                    x = 2
        case n if n > limit:     else:
            x = n                    n = subject
                                     if n > limit:
                                         x = n

Patterns are values, ``None``, names, ``_``, alternatives, and sequences where the subject is
written as a tuple.  Statements with other patterns stay as they are, and are refused where they are
lowered.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import count
from typing import TypeAlias

from fusionq.base.frozen import dataclass

Subject: TypeAlias = "str | tuple[Subject, ...]"
"""The name that holds what is matched; of a tuple, those of its items."""


class _Unsupported(Exception):
    """A pattern that has no condition here."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """When a pattern matches (None: always), and what the names in it then stand for."""

    test: ast.expr | None
    names: tuple[tuple[str, Subject], ...] = ()


def without_match(tree: ast.FunctionDef) -> None:
    """Rewrite all ``match`` statements in ``tree``."""
    if any(isinstance(node, ast.Match) for node in ast.walk(tree)):
        _Rewriting(tree).visit(tree)


class _Rewriting(ast.NodeTransformer):
    def __init__(self, tree: ast.FunctionDef) -> None:
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        names |= {n.name for n in ast.walk(tree) if isinstance(n, ast.MatchAs) and n.name}
        self._unused = (name for name in map("subject{}".format, count()) if name not in names)

    def visit_Match(self, node: ast.Match) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        subject = self._names_for(node.subject)
        rest: list[ast.stmt] = []
        try:
            for case in reversed(node.cases):
                rest = self._case(case, subject, rest)
        except _Unsupported:
            return node
        target = _expression(subject, ast.Store())
        return [_at(ast.Assign([target], node.subject), node), *rest]

    def _names_for(self, node: ast.expr) -> Subject:
        if isinstance(node, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in node.elts):
            return tuple(self._names_for(item) for item in node.elts)
        return next(self._unused)

    def _case(
        self, case: ast.match_case, subject: Subject, rest: list[ast.stmt]
    ) -> list[ast.stmt]:
        found = _pattern(case.pattern, subject)
        bindings: list[ast.stmt] = [
            _at(
                ast.Assign([ast.Name(name, ast.Store())], _expression(of, ast.Load())),
                case.pattern,
            )
            for name, of in found.names
        ]
        test = found.test
        if case.guard is None:
            body = [*bindings, *case.body]
            return body if test is None else [_at(ast.If(test, body, rest), case.pattern)]
        if test is None:
            return [*bindings, _at(ast.If(case.guard, case.body, rest), case.guard)]
        if not bindings:
            both = ast.BoolOp(ast.And(), [test, case.guard])
            return [_at(ast.If(both, case.body, rest), case.guard)]
        flag = next(self._unused)

        def set_to(value: bool) -> ast.stmt:
            return _at(
                ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(value)), case.pattern
            )

        guarded = _at(ast.If(case.guard, [set_to(True)], []), case.guard)
        return [
            set_to(False),
            _at(ast.If(test, [*bindings, guarded], []), case.pattern),
            _at(ast.If(ast.Name(flag, ast.Load()), case.body, rest), case.guard),
        ]


def _pattern(pattern: ast.pattern, subject: Subject) -> _Pattern:
    match pattern:
        case ast.MatchValue() if isinstance(subject, str):
            return _Pattern(_compared(subject, ast.Eq(), pattern.value))
        case ast.MatchSingleton(value=None) if isinstance(subject, str):
            return _Pattern(_compared(subject, ast.Is(), ast.Constant(None)))
        case ast.MatchAs(pattern=None, name=None):
            return _Pattern(None)
        case ast.MatchAs(pattern=inner, name=str() as name):
            found = _Pattern(None) if inner is None else _pattern(inner, subject)
            return _Pattern(found.test, (*found.names, (name, subject)))
        case ast.MatchOr():
            alternatives = [_pattern(p, subject) for p in pattern.patterns]
            if any(p.names for p in alternatives):
                raise _Unsupported
            tests = [p.test for p in alternatives if p.test is not None]
            if len(tests) < len(alternatives):
                return _Pattern(None)
            return _Pattern(ast.BoolOp(ast.Or(), tests))
        case ast.MatchSequence() if isinstance(subject, tuple):
            return _of_sequence(pattern.patterns, subject)
    raise _Unsupported


def _of_sequence(patterns: Sequence[ast.pattern], subject: tuple[Subject, ...]) -> _Pattern:
    if any(isinstance(pattern, ast.MatchStar) for pattern in patterns):
        raise _Unsupported
    if len(patterns) != len(subject):
        return _Pattern(ast.Constant(False))
    found = [_pattern(pattern, of) for pattern, of in zip(patterns, subject, strict=True)]
    tests = [p.test for p in found if p.test is not None]
    test = ast.BoolOp(ast.And(), tests) if tests[1:] else (tests[0] if tests else None)
    return _Pattern(test, tuple(name for p in found for name in p.names))


def _compared(subject: str, op: ast.cmpop, value: ast.expr) -> ast.expr:
    return ast.Compare(ast.Name(subject, ast.Load()), [op], [value])


def _expression(subject: Subject, context: ast.expr_context) -> ast.expr:
    if isinstance(subject, str):
        return ast.Name(subject, context)
    return ast.Tuple([_expression(of, context) for of in subject], context)


def _at(stmt: ast.stmt, where: ast.AST) -> ast.stmt:
    """A made statement at the place of another node."""
    return ast.fix_missing_locations(ast.copy_location(stmt, where))
