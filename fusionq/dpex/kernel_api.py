"""The counterparts of ``numba_dpex.kernel_api`` in the kernel language.

Nothing of numba-dpex is imported: its objects are known by the module of their class, and whoever
passes one has imported it.
"""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from types import FunctionType
from typing import Any

_PACKAGE = "numba_dpex"
_KERNEL_API = "numba_dpex.kernel_api"


def is_dpex_function(obj: object) -> bool:
    """Whether ``obj`` was made with ``numba_dpex.kernel`` or ``numba_dpex.device_func``."""
    return _module_of(type(obj)).startswith(_PACKAGE) and isinstance(
        getattr(obj, "py_func", None), FunctionType
    )


def translated(obj: Any) -> Any:
    """What stands for an object of ``numba_dpex.kernel_api`` here; other objects unchanged.

    Classes, functions and the members of enumerations have the same names; a range or a
    LocalAccessor is made anew.
    """
    kind = type(obj)
    if not (_module_of(obj) or _module_of(kind)).startswith(_KERNEL_API):
        return obj
    language = import_module("fusionq.language")
    if isinstance(obj, Enum):
        return getattr(language, kind.__name__)[obj.name]
    match kind.__name__:
        case "Range":
            return language.Range(*obj)
        case "NdRange":
            return language.NdRange(tuple(obj.global_range), tuple(obj.local_range))
        case "LocalAccessor":
            return language.LocalAccessor(obj._shape, obj._dtype)
    return getattr(language, getattr(obj, "__name__", ""), obj)


def _module_of(obj: object) -> str:
    module = getattr(obj, "__module__", None)
    return module if isinstance(module, str) else ""
