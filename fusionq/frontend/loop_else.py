"""``for … else`` and ``while … else`` as loops without, and a condition behind them.

    for k in range(n):                       left = False
        if a[k] > x:                         for k in range(n):
            break                   →            if a[k] > x:
    else:                                            left = True
        k = -1                                       break
                                             if not left:
                                                 k = -1

Where the ``else`` assigns the loop's own variable, each ``break`` keeps what that was, and it has
that value again where the loop was left.  Without a ``break`` in its body what stands under a
loop's ``else`` runs behind it always.
"""

from __future__ import annotations

import ast

from fusionq.frontend.scopes import assigned_names


def without_else(tree: ast.FunctionDef) -> None:
    """Rewrite all loops in ``tree`` that have an ``else``."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    _Rewriting(names).visit(tree)


class _Rewriting(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        if not node.orelse:
            return node
        behind, node.orelse = node.orelse, []
        numbered = map("left{}".format, range(len(self._names) + 1))
        flag = next(name for name in numbered if name not in self._names)
        own = assigned_names([node.target]) if isinstance(node, ast.For) else set()
        kept = {name: f"{name}.kept" for name in sorted(own & assigned_names(behind))}
        breaks = _Breaks(flag, kept)
        node.body = [s for stmt in node.body for s in breaks.visited(stmt)]
        if not breaks.found:
            return [node, *behind]
        self._names.add(flag)
        ends = ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))
        again = [_copied(name, before, node) for name, before in kept.items()]
        return [_set(flag, False, node), node, _at(ast.If(ends, behind, again), behind[0])]


class _Breaks(ast.NodeTransformer):
    """Sets a flag before each ``break`` of one loop, and keeps the values of names."""

    def __init__(self, flag: str, kept: dict[str, str]) -> None:
        self._flag = flag
        self._kept = kept
        self.found = False

    def visited(self, stmt: ast.stmt) -> list[ast.stmt]:
        """What a statement of the loop's body becomes."""
        found = self.visit(stmt)
        return found if isinstance(found, list) else [found]

    def visit_For(self, node: ast.For) -> ast.stmt:
        return node  # its breaks are its own

    def visit_While(self, node: ast.While) -> ast.stmt:
        return node

    def visit_Break(self, node: ast.Break) -> list[ast.stmt]:
        self.found = True
        values = [_copied(kept, name, node) for name, kept in self._kept.items()]
        return [_set(self._flag, True, node), *values, node]


def _set(name: str, value: bool, where: ast.AST) -> ast.stmt:
    return _at(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), where)


def _copied(name: str, value: str, where: ast.AST) -> ast.stmt:
    names = ast.Name(name, ast.Store()), ast.Name(value, ast.Load())
    return _at(ast.Assign([names[0]], names[1]), where)


def _at(stmt: ast.stmt, where: ast.AST) -> ast.stmt:
    """A made statement at the place of another one."""
    return ast.fix_missing_locations(ast.copy_location(stmt, where))
