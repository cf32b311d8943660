"""What calls of Python callables are inlined: functions, and what is bound to their parameters.

Bound methods, ``functools.partial``, ``staticmethod`` and objects whose class defines
``__call__`` are functions whose first parameters, or named ones, are known at compile time.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import TypeVar

from fusionq.base.dtypes import numba_dtype
from fusionq.base.frozen import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    """A Python function, with the objects that stand for its first parameters and for those of
    some names."""

    function: FunctionType
    arguments: tuple[object, ...] = ()
    keywords: tuple[tuple[str, object], ...] = ()

    @property
    def identity(self) -> str:
        """Text that differs for callees whose calls mean something else, beside their source and
        what is bound."""
        return "function"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the positional parameters, bound ones included."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def bound(self) -> dict[str, object]:
        """What is bound, by the parameter's name."""
        return dict(zip(self.parameters, self.arguments, strict=False)) | dict(self.keywords)

    @property
    def free_parameters(self) -> tuple[str, ...]:
        """Names of the positional parameters that a call has to give."""
        bound = self.bound
        return tuple(name for name in self.parameters if name not in bound)

    @property
    def defaults(self) -> dict[str, object]:
        """The positional parameters' defaults, by name."""
        values = self.function.__defaults__ or ()
        return dict(zip(self.parameters[::-1], values[::-1], strict=False))


def entry_of(table: Mapping[object, T], obj: object) -> T | None:
    """What a table of functions has for ``obj``, which may be anything; None if it has none."""
    try:
        return table.get(obj)
    except TypeError:  # not hashable
        return None


def callee_of(obj: object) -> Callee | None:
    """What a call of ``obj`` inlines; None for what is no Python code of the user's, such as
    NumPy's functions and the kernel language's own."""
    if isinstance(obj, Callee):
        return obj
    if isinstance(obj, FunctionType):
        written = (obj.__module__ or "").endswith("_bodies")  # in the kernel language, by us
        return None if is_known(obj.__module__) and not written else Callee(obj)
    if isinstance(obj, staticmethod):
        return callee_of(obj.__func__)
    if isinstance(obj, MethodType):
        return _with_arguments(callee_of(obj.__func__), (obj.__self__,), {})
    if isinstance(obj, partial):
        return _with_arguments(callee_of(obj.func), obj.args, obj.keywords)
    kind = type(obj)
    method = inspect.getattr_static(kind, "__call__", None)
    known = is_known(kind.__module__) or numba_dtype(obj) is not None
    if isinstance(obj, type) or known or not isinstance(method, FunctionType):
        return None
    return _with_arguments(callee_of(method), (obj,), {})


def _with_arguments(
    callee: Callee | None, arguments: tuple[object, ...], keywords: dict[str, object]
) -> Callee | None:
    if callee is None:
        return None
    named = dict(callee.keywords) | keywords
    return Callee(callee.function, callee.arguments + arguments, tuple(sorted(named.items())))


def is_known(module: str | None) -> bool:
    """Whether a module is NumPy's or the kernel language's: what its functions mean is known."""
    first, _, rest = (module or "").partition(".")
    if first == "fusionq":
        return rest.partition(".")[0] not in ("kernels", "benchmarks")
    return first in ("numpy", "functools", "enum", "typing")
