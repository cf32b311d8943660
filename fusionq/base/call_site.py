"""Where in the user's code a call comes from, and what its arguments are called there."""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType

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


def user_frame() -> FrameType | None:
    """The innermost frame outside this package (its kernel library counts as outside)."""
    frame: FrameType | None = sys._getframe(1)
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


def user_line() -> tuple[str, int, str]:
    """What ``user_span`` consists of."""
    frame = user_frame()
    if frame is None:
        return "<unknown>", 0, ""
    file, number = frame.f_code.co_filename, frame.f_lineno or 0
    return file, number, linecache.getline(file, number, frame.f_globals).strip()


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
    candidates = {
        labels
        for first, last, labels in _submit_calls(span.file, tuple(linecache.getlines(span.file)))
        if first <= span.line <= last and len(labels) == len(names)
    }
    return candidates.pop() if len(candidates) == 1 else names


_ARGUMENTS = {"submit": slice(2, None), "memcpy": slice(2), "fill": slice(2)}
"""Which arguments of a queue's method its kernel has."""


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
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        arguments = _ARGUMENTS.get(node.func.attr)
        if arguments is None or any(isinstance(a, ast.Starred) for a in node.args):
            continue
        labels = tuple(_label(argument) for argument in node.args[arguments])
        calls.append((node.lineno, node.end_lineno or node.lineno, labels))
    return tuple(calls)


def _label(argument: ast.expr) -> str:
    """The source text of an argument; of ``access(x, …)`` and ``Reduction(x, …)`` that of ``x``."""
    if isinstance(argument, ast.Call) and argument.args:
        function = argument.func
        name = function.attr if isinstance(function, ast.Attribute) else None
        name = function.id if isinstance(function, ast.Name) else name
        if name in ("access", "Reduction"):
            argument = argument.args[0]
    return ast.unparse(argument)
