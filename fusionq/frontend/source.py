"""From a Python function to its syntax tree, with lines as in the user's file."""

from __future__ import annotations

import ast
import inspect
import linecache
import tokenize
from functools import cached_property
from types import CodeType, FunctionType

from fusionq.base.errors import KernelLanguageError
from fusionq.base.frozen import dataclass
from fusionq.base.span import Span
from fusionq.frontend.loop_else import without_else
from fusionq.frontend.match_statements import without_match
from fusionq.frontend.scopes import assigned_names


@dataclass(frozen=True, slots=True)
class KernelText:
    """The lines that a kernel is written in, its own and those of the functions that it calls.

    ``digest``: sha256 (hex) of these lines and of the constants that they use.  ``places``: for
    each function its file, its first line there, and how many lines it has.
    """

    digest: str
    places: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class FunctionSource:
    """A function's syntax tree and where it stands.

    ``tree``: without decorators; line numbers are those of ``file``.
    ``lines``: the function's source lines, the first is line ``first_line`` of ``file``.
    """

    function: FunctionType
    tree: ast.FunctionDef
    file: str
    lines: tuple[str, ...]
    first_line: int

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the positional parameters."""
        arguments = self.tree.args
        return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args))

    @cached_property
    def local_names(self) -> frozenset[str]:
        """The parameters and all names that the body assigns."""
        named_only = (a.arg for a in self.tree.args.kwonlyargs)
        return frozenset((*self.parameters, *named_only, *self.assigned))

    @cached_property
    def names_in_expressions(self) -> bool:
        """Whether an expression of it assigns a name, by ``:=``."""
        return any(isinstance(node, ast.NamedExpr) for node in ast.walk(self.tree))

    def of(self, function: FunctionType) -> FunctionSource:
        """That of a ``function`` of the same code, with what was found out for this one."""
        if function is self.function:
            return self
        other = object.__new__(FunctionSource)
        other.__dict__.update(self.__dict__, function=function)
        return other

    def inner(self, tree: ast.FunctionDef) -> FunctionSource:
        """A function that is defined inside of this one."""
        return FunctionSource(self.function, tree, self.file, self.lines, self.first_line)

    @cached_property
    def assigned(self) -> frozenset[str]:
        """The names that the body assigns."""
        return frozenset(assigned_names(self.tree.body))

    @cached_property
    def mentioned(self) -> tuple[tuple[str, ast.expr], ...]:
        """What in the body may stand for an object of its surroundings, or for a parameter that is
        known: each text once, in order, with one of its nodes."""
        parameters = {*self.parameters, *(a.arg for a in self.tree.args.kwonlyargs)}
        own = self.local_names - (parameters - self.assigned)
        found: dict[str, ast.expr] = {}
        for statement in self.tree.body:
            for node in ast.walk(statement):
                if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and _begins(node, own):
                    found[ast.unparse(node)] = node
        return tuple(sorted(found.items()))

    @cached_property
    def normalised(self) -> str:
        """The source without comments, layout, decorators and docstring."""
        body = self.tree.body
        if ast.get_docstring(self.tree, clean=False) is not None:
            body = body[1:] or [ast.Pass()]
        fields = dict(ast.iter_fields(self.tree)) | {"body": body}
        return ast.unparse(ast.FunctionDef(**fields, lineno=self.tree.lineno))

    def line_text(self, line: int) -> str:
        """The text of a line of the file, or '' for one outside the function."""
        index = line - self.first_line
        return self.lines[index].rstrip() if 0 <= index < len(self.lines) else ""

    def span(self, node: ast.AST) -> Span:
        """Where a node of ``tree`` stands."""
        line = getattr(node, "lineno", self.tree.lineno)
        return Span(self.file, line, self.line_text(line).strip())

    def error(self, node: ast.AST, message: str, hint: str) -> KernelLanguageError:
        """An error at a node: where, what and why, the source line with a caret, a way out."""
        line = getattr(node, "lineno", self.tree.lineno)
        text = self.line_text(line)
        column = len(text.encode()[: getattr(node, "col_offset", 0)].decode(errors="replace"))
        indent = len(text) - len(text.lstrip())
        caret = " " * max(column - indent, 0) + "^"
        return KernelLanguageError(
            f"{self.file}:{line}: in {self.name!r}: {message}\n"
            f"    {text.strip()}\n    {caret}\n  {hint}"
        )


def _begins(node: ast.expr, own: frozenset[str]) -> bool:
    """Whether a chain of attributes, ``getattr`` included, begins with a name that is none of
    ``own``."""
    while True:
        match node:
            case ast.Name():
                return node.id not in own
            case ast.Attribute(value=inner) | ast.Call(func=ast.Name(), args=[inner, _]):
                node = inner
            case _:
                return False


MOST_SOURCES = 1024
"""Of code that has been read."""

_read: dict[int, tuple[CodeType, FunctionSource]] = {}
"""By the code's identity: a function that is defined in another one is a new object at each call of
that, and has the same code."""


def function_source(function: FunctionType) -> FunctionSource:
    """The source of a plain Python function, which is read once for all functions of its code.

    Works for functions from files, notebook cells, and ``exec`` with a ``linecache`` entry, and
    for lambda expressions there.  Raises KernelLanguageError where no source is available.
    """
    code = function.__code__
    known = _read.get(id(code))
    if known is None:
        if len(_read) >= MOST_SOURCES:
            _read.clear()
        known = _read[id(code)] = code, _function_source(function)
    return known[1].of(function)


def _function_source(function: FunctionType) -> FunctionSource:
    code = function.__code__
    where = f"{code.co_filename}:{code.co_firstlineno}"
    try:
        lines = _lines(function)
        if code.co_name == "<lambda>":
            return _lambda_source(function, lines, where)
        module = _parsed(
            _block(lines, _last_line(code) - code.co_firstlineno + 1), code.co_filename
        )
        if module is None:
            lines = inspect.getblock(lines)
            module = _parsed(lines, code.co_filename)
    except (OSError, TypeError, IndexError, SyntaxError, tokenize.TokenError) as error:
        raise KernelLanguageError(
            f"{where}: the source of {function.__name__!r} cannot be had ({error}), and kernels "
            "are compiled from source\n  Define it in a file or a notebook cell; for code made "
            "with exec, compile() it under a file name of its own and enter the text in "
            "linecache.cache under that name."
        ) from None
    if module is None:
        raise _changed(function, where)
    first_line = max(code.co_firstlineno, 1)
    indented = lines[0][:1].isspace()
    ast.increment_lineno(module, first_line - (2 if indented else 1))
    first = module.body[0]
    tree = first.body[0] if indented and isinstance(first, ast.If) else first
    if isinstance(tree, ast.AsyncFunctionDef):
        raise KernelLanguageError(
            f"{where}: {function.__name__!r} is an async function, which a kernel cannot be"
            "\n  Write it with a plain def."
        )
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        raise _changed(function, where)
    tree.decorator_list = []
    without_match(tree)
    without_else(tree)
    own = tuple(lines[: (tree.end_lineno or first_line) - first_line + 1])
    return FunctionSource(function, tree, code.co_filename, own, first_line)


def _lambda_source(function: FunctionType, lines: list[str], where: str) -> FunctionSource:
    from fusionq.frontend.lambda_source import lambda_tree  # few kernels need it

    code = function.__code__
    before = linecache.getlines(code.co_filename)[: code.co_firstlineno - 1]
    tree = lambda_tree(code, [*before, *lines])
    if tree is None:
        raise _changed(function, where)
    first_line = tree.lineno
    own = tuple(lines[: (tree.end_lineno or first_line) - first_line + 1])
    return FunctionSource(function, tree, code.co_filename, own, first_line)


def _lines(function: FunctionType) -> list[str]:
    """The lines of its file from the function's first decorator on.

    By the code object: a decorator's wrapper must not stand for what it wraps.  ``inspect`` is
    asked only for what ``linecache`` does not have by name (it searches all modules first).
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return inspect.getsourcelines(code)[0]
    if code.co_firstlineno > len(lines):
        raise OSError(f"{code.co_filename} has only {len(lines)} lines")
    return lines[code.co_firstlineno - 1 :]


def _block(lines: list[str], inside: int) -> list[str]:
    """The lines of the function that begins with the first of ``lines`` and has ``inside`` lines at
    least: up to the next one that is not indented further.

    ``inspect.getblock`` knows better where that lies in a string or in brackets, but splits all
    into tokens, which takes ten times as long.
    """
    indentation = _indentation(lines[0])
    for end in range(inside, len(lines)):
        line = lines[end].lstrip()
        if line and line[0] != "#" and _indentation(lines[end]) <= indentation:
            return lines[:end]
    return lines


def _indentation(line: str) -> int:
    return len(line.expandtabs()) - len(line.lstrip().expandtabs())


def _last_line(code: CodeType) -> int:
    """The last line that anything in it begins on."""
    lines = [line for _, _, line in code.co_lines() if line is not None]
    inner = [_last_line(c) for c in code.co_consts if isinstance(c, CodeType)]
    return max([code.co_firstlineno, *lines, *inner])


def _parsed(lines: list[str], file: str) -> ast.Module | None:
    """The one statement that stands there, under a condition if it is indented; None where it is
    not all there, or not alone."""
    indented = lines[0][:1].isspace()
    try:
        module = ast.parse(("if True:\n" if indented else "") + "".join(lines), file)
    except SyntaxError:
        return None
    first = module.body[0]
    body = first.body if indented and isinstance(first, ast.If) else module.body
    return module if len(body) == len(module.body) == 1 else None


def _changed(function: FunctionType, where: str) -> KernelLanguageError:
    return KernelLanguageError(
        f"{where}: the source at this place is not that of {function.__name__!r}; the file "
        "was probably changed after it was imported\n  Import it again, or start Python anew."
    )
