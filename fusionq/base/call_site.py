"""Where in the user's code a call comes from, and what its arguments are called there."""

from __future__ import annotations

import ast
import linecache
import re
import sys
import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType

from fusionq.base.errors import ArgumentError, FusionAborted
from fusionq.base.span import Span

_BETWEEN = {"contextlib", "copy", "pickle", "numpy"}
"""Packages that call us on behalf of the user."""


@lru_cache(maxsize=4096)
def _is_internal(module: str) -> bool:
    package, _, rest = module.partition(".")
    if package in _BETWEEN:
        return True
    return package == "fusionq" and rest.partition(".")[0] not in ("kernels", "benchmarks")


def user_frame(above: int = 0) -> FrameType | None:
    """The innermost frame outside this package (its kernel library counts as outside); the caller,
    and as many frames ``above`` it, are known to be of this package."""
    frame: FrameType | None = sys._getframe(1 + above)
    while frame is not None and _is_internal(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def is_inside(depth: int = 1) -> bool:
    """Whether a function of this package is at work in this thread, ``depth`` frames above the
    caller or further up.  The command line does not count: it runs users' scripts."""
    frame: FrameType | None = sys._getframe()
    for _ in range(1 + depth):
        frame = None if frame is None else frame.f_back
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("fusionq.") and _is_internal(module) and "fusionq.cli" not in module:
            return True
        frame = frame.f_back
    return False


def user_span() -> Span:
    """File, line and source line of the user's call that led here."""
    return Span(*user_line())


def argument_error(message: str) -> ArgumentError:
    """An ArgumentError that names the user's call which led here."""
    return ArgumentError(f"{user_span()}: {message}")


def user_line(above: int = 0) -> tuple[str, int, str]:
    """What ``user_span`` consists of; one and the same object for one place of the program.
    ``above`` as of ``user_frame``."""
    return _place_of(user_frame(1 + above))[1]


def call_in(frame: FrameType | None) -> Hashable:
    """What the call that the user's ``frame`` is at has in common with others: it is equal for
    calls of one name on one line, if that has no other such call."""
    return _place_of(frame)[2]


def _place_of(frame: FrameType | None) -> tuple[CodeType | None, tuple[str, int, str], Hashable]:
    """A frame's function, its line, and what tells its call from others."""
    if frame is None:
        return None, _UNKNOWN, _UNKNOWN
    code = frame.f_code
    place = id(code), frame.f_lasti
    known = _lines.get(place)
    if known is None:
        file, number = code.co_filename, frame.f_lineno or 0
        line = file, number, linecache.getline(file, number, frame.f_globals).strip()
        alone = len(_METHODS.findall(line[2])) < 2
        if len(_lines) >= MOST_LINES:
            _lines.clear()
        known = _lines[place] = code, line, line if alone else (line, code, frame.f_lasti)
    return known


_UNKNOWN = "<unknown>", 0, ""

MOST_LINES = 4096
"""Calls of the user's whose lines are known."""

_lines: dict[tuple[int, int], tuple[CodeType, tuple[str, int, str], Hashable]] = {}
"""By the function, which is kept so that no other has its id, and the instruction."""


def warn_aborted(message: str, otherwise: Span | None = None) -> None:
    """Issue a FusionAborted warning, as ``warn`` does."""
    warn(message, FusionAborted, otherwise)


def warn(message: str, category: type[Warning], otherwise: Span | None = None) -> None:
    """Issue a warning that points at the user's line; at ``otherwise`` where no code of the user's
    is at work, as at the end of the program."""
    frame = user_frame()
    if sys.is_finalizing() or (frame is None and otherwise is None):
        return
    if frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno or 0
        registry = frame.f_globals.setdefault("__warningregistry__", {})
    else:
        assert otherwise is not None
        file, line, registry = otherwise.file, otherwise.line, {}
    warnings.warn_explicit(
        f"{file}:{line}: {message}",
        category,
        filename=file,
        lineno=line,
        registry=registry,
    )


def located(span: Span, message: str) -> str:
    """``message`` with the place in front, if that is not there already."""
    return message if message.startswith(f"{span.file}:") else f"{span}: {message}"


@contextmanager
def told_as_warnings() -> Iterator[None]:
    """Warnings that a filter makes errors of are printed where the block is nobody's call that
    could raise: what finalizers have noted, and the end of the program."""
    try:
        yield
    except Warning as warning:
        print(f"{type(warning).__name__}: {warning}", file=sys.stderr)


def argument_labels(span: Span, names: tuple[str, ...]) -> tuple[str, ...]:
    """What the arguments of the ``submit``, ``memcpy`` or ``fill`` call at ``span`` are called in
    the user's source, for example ``tmp1``; the kernel's own parameter ``names`` where that cannot
    be told."""
    candidates = {labels for labels in _labels_at(span) if len(labels) == len(names)}
    if len(candidates) > 1:
        _ambiguous[span] = frozenset().union(*candidates)
    return candidates.pop() if len(candidates) == 1 else names


def ambiguous_labels(span: Span) -> frozenset[str]:
    """What arguments at ``span`` are called where several calls are there and Python does not tell
    which is which, so that ``argument_labels`` has given parameters' names; else none."""
    return _ambiguous.get(span, frozenset())


_ambiguous: dict[Span, frozenset[str]] = {}


_ARGUMENTS = {"submit": slice(2, None), "memcpy": slice(2), "fill": slice(2)}
"""Which arguments of a queue's method its kernel has."""

_METHODS = re.compile(r"\b(?:submit|memcpy|fill)\b")


def _labels_at(span: Span) -> Iterator[tuple[str, ...]]:
    """The argument labels of the calls of such methods at ``span``: of the user's that is being
    made, where Python knows its place, else of all that reach over it."""
    frame = user_frame()
    if frame is not None and (frame.f_code.co_filename, frame.f_lineno) == (span.file, span.line):
        found = labels_of_call(frame.f_code, frame.f_lasti)
        if found is not None:
            yield found
            return
    for first, last, labels in _submit_calls(span.file, tuple(linecache.getlines(span.file))):
        if first <= span.line <= last:
            yield labels


@lru_cache(maxsize=1024)
def labels_of_call(code: CodeType, instruction: int) -> tuple[str, ...] | None:
    """The argument labels of the call at an instruction (PEP 657); None where Python does not know
    its place, or no plain call of such a method is there.

    It is a hundred times as fast as to parse the whole file.
    """
    if sys.version_info < (3, 11):
        return None
    place = next(islice(code.co_positions(), instruction // 2, None), None)
    if place is None:
        return None
    first, last, start, end = place
    if first is None or last is None or start is None or end is None:
        return None
    lines = [line.encode() for line in linecache.getlines(code.co_filename)[first - 1 : last]]
    if len(lines) != last - first + 1:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        call = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return _labels(call)


@lru_cache(maxsize=64)
def _submit_calls(
    file: str, lines: tuple[str, ...]
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """First line, last line and argument labels of every plain call of such a method."""
    try:
        tree = ast.parse("".join(lines), file)
    except (SyntaxError, ValueError):
        return ()
    calls = []
    for node in ast.walk(tree):
        labels = _labels(node)
        if labels is not None:
            assert isinstance(node, ast.Call)
            calls.append((node.lineno, node.end_lineno or node.lineno, labels))
    return tuple(calls)


def _labels(node: ast.AST) -> tuple[str, ...] | None:
    """Those of a plain call of such a method; None of anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    arguments = _ARGUMENTS.get(node.func.attr)
    if arguments is None or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    return tuple([_label(argument) for argument in node.args[arguments]])


def _label(argument: ast.expr) -> str:
    """The source text of an argument; of ``access(x, …)`` and ``Reduction(x, …)`` that of ``x``."""
    if isinstance(argument, ast.Call) and argument.args:
        function = argument.func
        name = function.attr if isinstance(function, ast.Attribute) else None
        name = function.id if isinstance(function, ast.Name) else name
        if name in ("access", "Reduction"):
            argument = argument.args[0]
    return ast.unparse(argument)
