"""From a lambda expression's code object to its syntax tree: of several on a line, the one that
compiles to the same bytecode."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType

from fusionq.frontend.scopes import function_of_lambda


def lambda_tree(code: CodeType, lines: Sequence[str]) -> ast.FunctionDef | None:
    """The function that returns what the lambda expression of ``code`` gives, as a ``def`` in the
    same place; ``lines``: those of its file.  None where no such lambda stands there; of several
    that compile to the same, which mean the same, the first."""
    for node, found in _compiled("".join(lines), code.co_filename):
        if node.lineno == code.co_firstlineno and _is_same(found, code):
            return function_of_lambda(node)
    return None


@lru_cache(maxsize=2)
def _compiled(text: str, file: str) -> list[tuple[ast.Lambda, CodeType]]:
    """All lambda expressions of a file with their code objects."""
    tree = ast.parse(text, file)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    marked = ast.parse(text, file)
    first = text.count("\n") + 2  # lines that there are not say which code object is whose
    same = (node for node in ast.walk(marked) if isinstance(node, ast.Lambda))
    for line, node in enumerate(same, first):
        node.lineno = node.end_lineno = line
        node.col_offset, node.end_col_offset = 0, 1
    codes: dict[int, CodeType] = {}
    waiting = [compile(marked, file, "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        codes[code.co_firstlineno] = code
        waiting += [c for c in code.co_consts if isinstance(c, CodeType)]
    pairs = ((node, codes.get(line)) for line, node in enumerate(found, first))
    return [(node, code) for node, code in pairs if code is not None]


def _is_same(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects do the same, wherever they stand."""
    return _shape(one) == _shape(other) and all(map(_same_constant, one.co_consts, other.co_consts))


def _shape(code: CodeType) -> tuple[object, ...]:
    return (
        code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
        code.co_flags & 0xFF,  # without those of the file's __future__ imports
        len(code.co_consts),
    )  # fmt: skip


def _same_constant(one: object, other: object) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _is_same(one, other)
    return type(one) is type(other) and repr(one) == repr(other)  # -0.0 is not 0.0
