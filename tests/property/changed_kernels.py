"""Kernels whose source has been changed at random: some still are kernels, most are not."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.property.group_programs import group_programs
from tests.property.kernel_expressions import Draw, Features
from tests.property.kernel_fragments import EXTREMES, expressions, statements
from tests.property.programs import Program, SubmissionSpec, programs
from tests.property.stage_programs import stage_programs

T = TypeVar("T")
FRAGMENTS, LINES = expressions(), statements()
OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.operator: tuple(ast.operator.__subclasses__()),
    ast.cmpop: tuple(ast.cmpop.__subclasses__()),
    ast.boolop: tuple(ast.boolop.__subclasses__()),
    ast.unaryop: tuple(ast.unaryop.__subclasses__()),
}
WRAPPERS = (
    "if {0}:\n    pass", "while {0}:\n    pass", "for {0} in range({1}):\n    pass",
    "for n in range(2):\n    pass\nelse:\n    pass", "with {0}:\n    pass",
    "try:\n    pass\nexcept ValueError:\n    pass", "def {0}():\n    pass", "class {0}:\n    pass",
    "async def {0}(x):\n    pass", "match {0}:\n    case {1}:\n        pass",
    "if {0}:\n    pass\nelif {1}:\n    return",
)  # fmt: skip
SIGNATURES = (
    "def f(*{0}): pass", "def f(**{0}): pass", "def f(*, {0}): pass", "def f({0}, /): pass",
    "def f({0}=1): pass", "def f({0}: int): pass", "def f({0}) -> int: pass", "def f(): pass",
    "def f({0}, *, {1}=None): pass", "@{0}\ndef f({1}): pass", "async def f({0}): pass",
)  # fmt: skip


def names_of(tree: ast.AST) -> list[str]:
    """The names in a kernel's source, its parameters first."""
    found = [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    found += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return list(dict.fromkeys(found)) or ["item"]


class Changes:
    """Changes a module's syntax tree in place, each at a drawn position."""

    def __init__(self, draw: Draw, tree: ast.Module) -> None:
        self._draw = draw
        self._tree = tree
        self._names = names_of(tree)

    def _of(self, choices: Sequence[T]) -> T:
        choice: T = self._draw(st.sampled_from(choices))
        return choice

    def _filled(self, text: str) -> str:
        """With names of the kernel in a fragment's gaps."""
        a, b = self._of(self._names), self._of(self._names)
        return text.format(a, b, a=a, b=b)

    def any(self) -> None:
        """One change of any kind."""
        kinds: tuple[Callable[[], None], ...] = (
            self._expression, self._statement, self._transplant, self._operator, self._constant,
            self._rename, self._remove, self._repeat, self._wrap, self._call, self._signature,
        )  # fmt: skip
        self._of(kinds)()

    def _nodes(self) -> Iterator[ast.AST]:
        """What may change: functions, and the values of constant tables.

        The rest of a module runs where its kernel is defined, in this process: an assignment to
        an attribute of NumPy or a loop without end would be the end of the test and no finding.
        """
        for statement in self._tree.body:
            match statement:
                case ast.FunctionDef():
                    yield from ast.walk(statement)
                case ast.Assign():
                    yield from ast.walk(statement.value)

    def _places(self, kind: type[ast.AST]) -> list[tuple[ast.AST, str, int | None]]:
        """Where nodes of ``kind`` stand: parent, field, and position in it."""
        found: list[tuple[ast.AST, str, int | None]] = []
        for node in self._nodes():
            for name, value in ast.iter_fields(node):
                if isinstance(value, kind):
                    found.append((node, name, None))
                elif isinstance(value, list):
                    found += [(node, name, n) for n, v in enumerate(value) if isinstance(v, kind)]
        return found

    def _put(self, kind: type[ast.AST], make: Callable[[ast.AST], ast.AST]) -> None:
        """Another node in place of one of ``kind``."""
        places = self._places(kind)
        if not places:
            return
        node, name, position = self._of(places)
        value = getattr(node, name)
        if position is None:
            setattr(node, name, make(value))
        else:
            value[position] = make(value[position])

    def _expression(self) -> None:
        text = self._filled(self._of(FRAGMENTS))
        made = ast.parse(f"async def f():\n    return {text}").body[0]
        assert isinstance(made, ast.AsyncFunctionDef) and isinstance(made.body[0], ast.Return)
        found = made.body[0].value
        assert found is not None
        self._put(ast.expr, lambda _: found)

    def _statement(self) -> None:
        text = self._filled(self._of(LINES))
        (made,) = ast.parse(_indented("async def f():", text)).body
        assert isinstance(made, ast.AsyncFunctionDef)
        self._insert(made.body)

    def _insert(self, body: list[ast.stmt]) -> None:
        places = self._places(ast.stmt)
        if places:
            node, name, position = self._of(places)
            assert position is not None
            getattr(node, name)[position:position] = body

    def _transplant(self) -> None:
        found = [node for node in self._nodes() if isinstance(node, ast.expr)]
        if found:
            graft = copy.deepcopy(self._of(found))
            self._put(ast.expr, lambda _: graft)

    def _operator(self) -> None:
        kind = self._of(list(OPERATORS))
        made = self._of(OPERATORS[kind])()
        self._put(kind, lambda _: made)

    def _constant(self) -> None:
        value: Any = self._of(EXTREMES)
        self._put(ast.Constant, lambda _: ast.Constant(value))

    def _rename(self) -> None:
        name = self._of((*self._names, "kernel", "item", "range", "np", "unknown", "__debug__x"))

        def renamed(node: ast.AST) -> ast.AST:
            assert isinstance(node, ast.Name)
            return ast.Name(name, node.ctx)

        self._put(ast.Name, renamed)

    def _remove(self) -> None:
        self._put(ast.stmt, lambda _: ast.Pass())

    def _repeat(self) -> None:
        found = [n for n in self._nodes() if isinstance(n, ast.stmt)]
        self._insert([copy.deepcopy(self._of(found))])

    def _wrap(self) -> None:
        (outer,) = ast.parse(_indented("async def f():", self._filled(self._of(WRAPPERS)))).body
        assert isinstance(outer, ast.AsyncFunctionDef)
        made = outer.body[0]

        def wrapped(node: ast.AST) -> ast.AST:
            inner = made.cases[0] if isinstance(made, ast.Match) else made
            inner.body = [node]  # type: ignore[attr-defined]  # all of WRAPPERS have one
            return made

        self._put(ast.stmt, wrapped)

    def _call(self) -> None:
        calls = [node for node in self._nodes() if isinstance(node, ast.Call)]
        if not calls:
            return
        call, name = self._of(calls), ast.Name(self._of(self._names), ast.Load())
        change = self._of(range(5))
        if change == 0:
            call.args = call.args[:-1]
        elif change == 1:
            call.args = [*call.args, name]
        elif change == 2:
            call.args = [*call.args, ast.Starred(name, ast.Load())]
        else:
            word = None if change == 3 else self._of(("dtype", "out", "dim", "x"))
            call.keywords = [*call.keywords, ast.keyword(word, name)]

    def _signature(self) -> None:
        functions = [n for n in self._nodes() if isinstance(n, ast.FunctionDef)]
        if functions:
            other = ast.parse(self._filled(self._of(SIGNATURES))).body[0]
            assert isinstance(other, ast.FunctionDef | ast.AsyncFunctionDef)
            function = self._of(functions)
            function.decorator_list = other.decorator_list
            function.returns = other.returns
            mine, theirs = function.args, other.args
            mine.vararg, mine.kwarg = theirs.vararg, theirs.kwarg
            mine.kwonlyargs, mine.kw_defaults = theirs.kwonlyargs, theirs.kw_defaults
            mine.defaults = theirs.defaults[: len(mine.args)]


def _indented(head: str, text: str) -> str:
    return "\n".join([head, *(f"    {line}" for line in text.split("\n"))])


@dataclass(frozen=True)
class ChangedKernel:
    """A list of one submission, whose kernel has been changed."""

    program: Program

    @property
    def submission(self) -> SubmissionSpec:
        """The one."""
        return self.program.submissions[0]

    def __repr__(self) -> str:
        return repr(self.program)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it."""
        printer.text(repr(self))


@st.composite
def changed_kernels(draw: Any, features: Features = Features(statements=3)) -> ChangedKernel:  # noqa: B008  # frozen
    """A submission of a random list after one to six changes of its kernel's source.

    What is drawn is often no Python at all: ``None`` and the like at places where they cannot
    stand are for the compiler, and not drawn again.
    """
    program = draw(st.one_of(programs(features), stage_programs(), group_programs(features)))
    submission = draw(st.sampled_from(program.submissions))
    tree = ast.parse(submission.kernel.source)
    changes = Changes(draw, tree)
    for _ in range(draw(st.integers(1, 6))):
        changes.any()
    try:
        source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        compile(source, "<changed>", "exec")
    except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError):
        source = submission.kernel.source
    source = source.replace("import numpy as np", "import numpy as np\nimport fusionq as fq")
    kernel = replace(submission.kernel, source=source)
    return ChangedKernel(replace(program, submissions=(replace(submission, kernel=kernel),)))
