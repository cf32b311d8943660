"""Dialects of kernels: what other packages' decorators make, and their names.

A package of the entry-point group ``fusionq.dialects`` says what objects of another package of
kernels mean here.  The entry point's name is that other package's, and it is loaded when an object
of that package turns up for the first time, in a call of ``submit``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusionq.base.entry_points import registered
from fusionq.base.frozen import dataclass
from fusionq.frontend.kernel import KernelFunction


@dataclass(frozen=True, slots=True)
class KernelDialect:
    """Kernels as another package writes them: its decorators and its names.

    Where its rules differ from the kernel language's, the kernels that it makes are of a subclass
    of ``KernelFunction``, whose ``_capture`` reads the names that a kernel refers to as what they
    are called here, and whose ``_lower`` has the types and the arithmetic of that package, or
    refuses what differs.
    """

    kernel: Callable[[object], KernelFunction | None]
    """The kernel that one of the package's decorators has made, always the same one for the same
    object; None for an object that is no kernel."""

    counterpart: Callable[[Any], Any]
    """What stands for an object of the package here, such as one of its ranges; an object that
    has no counterpart is its own."""


def dialect_kernel(obj: object) -> KernelFunction | None:
    """The kernel that another package's decorator has made; None for an object that is none."""
    dialect = _dialect_of(type(obj))
    return None if dialect is None else dialect.kernel(obj)


def counterpart(obj: Any) -> Any:
    """What stands for an object of another package of kernels here; other objects unchanged."""
    dialect = _dialect_of(obj if isinstance(obj, type) else type(obj))
    return obj if dialect is None else dialect.counterpart(obj)


_DIALECTS: dict[str, KernelDialect | None] = dict.fromkeys(("builtins", "numpy", "fusionq"))
"""By the name of the package, for those whose objects have been asked about; None: no dialect."""


def _dialect_of(kind: type) -> KernelDialect | None:
    package = str(kind.__module__).partition(".")[0]
    try:
        return _DIALECTS[package]
    except KeyError:
        return _DIALECTS.setdefault(package, registered("fusionq.dialects", package))
