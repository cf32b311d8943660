"""What Python offers and kernels do not: why, and what to write instead."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from difflib import get_close_matches
from types import BuiltinFunctionType, ModuleType

import numpy as np

REFUSED_SYNTAX: dict[type[ast.AST], tuple[str, str]] = {
    ast.Assert: (
        "assert of what is not known when the kernel is compiled",
        "Check on the host, before the submission.",
    ),
    ast.AsyncFor: ("async is not supported", "Use a plain for loop."),
    ast.AsyncFunctionDef: ("async is not supported", "Define a plain function outside."),
    ast.AsyncWith: ("async is not supported", "Kernels have no with."),
    ast.Await: ("await is not supported", "Wait for events on the host."),
    ast.ClassDef: ("a class cannot be defined in a kernel", "Pass plain arguments."),
    ast.Delete: ("del is not supported", "Leave it out; variables end with the kernel."),
    ast.Dict: ("dicts are not supported", "Use separate variables or arguments."),
    ast.DictComp: ("dicts are not supported", "Use separate variables or arguments."),
    ast.GeneratorExp: (
        "a generator that nothing goes over",
        "sum, any, all, min, max, tuple and list take one.",
    ),
    ast.Global: ("global is not supported", "Globals are constants; use an array argument."),
    ast.Import: ("import inside a kernel is not supported", "Import at the top of the file."),
    ast.ImportFrom: ("import inside a kernel is not supported", "Import at the top of the file."),
    ast.JoinedStr: ("strings are not supported", "Kernels compute with numbers."),
    ast.Match: (
        "match with such a pattern is not supported",
        "Patterns are numbers, strings, names and alternatives of these, and sequences where the "
        "subject is written as a tuple; else use if and elif.",
    ),
    ast.Nonlocal: ("nonlocal is not supported", "Closure variables are constants."),
    ast.Raise: ("raise is not supported", "Write an error code to an array instead."),
    ast.Set: ("sets are not supported", "Use a tuple."),
    ast.SetComp: ("sets are not supported", "Use a tuple: tuple(… for x in …)."),
    ast.Slice: ("slices are not supported", "Index single elements, or pass a sliced Buffer."),
    ast.Starred: (
        "* is not supported here",
        "Write the elements out; calls and tuples may have it.",
    ),
    ast.Try: ("try is not supported", "Kernels raise no exceptions."),
    ast.With: ("with is not supported", 'Leave it out; there is with fq.region("name"):'),
    ast.Yield: ("yield is not supported", "Kernels write their results to arrays."),
    ast.YieldFrom: ("yield is not supported", "Kernels write their results to arrays."),
}

REFUSED_BUILTINS: dict[str, str] = {
    "print": "Write values to an array and print them on the host.",
    "range": "Use it as 'for k in range(…)'.",
    "enumerate": "Use it as 'for k, x in enumerate(…)' of a tuple, or index with k of a range.",
    "zip": "Use it as 'for x, y in zip(…)' of tuples, or index with k of a range.",
    "reversed": "Use it as 'for x in reversed(…)' of a tuple, or a range with a negative step.",
}

COMBINE = (
    "Combine the elements in a for loop; a group does it together by fq.joint_reduce, all "
    "work-items by fq.Reduction."
)
_OWN_MEMORY = (
    "A work-item's own array is fq.PrivateArray(shape, dtype, fill_zeros=True), a group's an "
    "fq.LocalAccessor; others are arguments."
)
_RANDOM = "Pass random numbers in an array, or compute them from integers that an array keeps."
_GENERAL = "Kernels call math and NumPy scalar functions, and plain Python functions."

COMBINING: dict[str, str] = dict.fromkeys(
    (
        "all", "amax", "amin", "any", "argmax", "argmin", "average", "cumprod", "cumsum", "dot",
        "inner", "matmul", "max", "mean", "min", "norm", "prod", "std", "sum", "trace", "var",
        "vdot",
    ),
    COMBINE,
)  # fmt: skip
"""What NumPy computes of all elements of an array."""

_MAKING = frozenset(
    (
        "arange", "array", "asarray", "copy", "empty", "empty_like", "eye", "full", "full_like",
        "linspace", "ones", "ones_like", "zeros", "zeros_like",
    )
)  # fmt: skip


_FUNCTIONS = (BuiltinFunctionType, np.ufunc)

_IDS = "Ask the work-item, the kernel's first parameter"

ELSEWHERE: dict[str, str] = {
    "grid": f"{_IDS}: item.get_id(0).",
    "gridsize": f"{_IDS}: item.get_range(0).",
    "threadIdx": f"{_IDS}, an NdItem: item.get_local_id(d).",
    "blockIdx": f"{_IDS}, an NdItem: item.get_group().get_group_id(d).",
    "blockDim": f"{_IDS}, an NdItem: item.get_group().get_local_range(d).",
    "gridDim": f"{_IDS}, an NdItem: item.get_group().get_group_range(d).",
    "syncthreads": "Work-items of a group meet at fq.group_barrier(item.get_group()).",
    "barrier": "Work-items of a group meet at fq.group_barrier(item.get_group()).",
    "atomic": "Atomic operations are fq.AtomicRef(array, index).fetch_add(x) and its kin.",
    "shared": _OWN_MEMORY,
    "local": _OWN_MEMORY,
    "private": _OWN_MEMORY,
} | {name: f"{_IDS}: item.{name}(d)." for name in ("get_global_id", "get_id", "get_local_id")}
"""What other languages for kernels have under a name."""


def instead_of(function: object, name: str) -> str:
    """What to write in place of a function, called as ``name``, that kernels cannot call."""
    if name in REFUSED_BUILTINS:
        return REFUSED_BUILTINS[name]
    module = getattr(function, "__module__", None) or str(getattr(function, "__self__", ""))
    last = name.rpartition(".")[2]
    if "random" in module.lower():
        return _RANDOM
    if module.startswith("numpy"):
        return _OWN_MEMORY if last in _MAKING else COMBINING.get(last, _GENERAL)
    return _GENERAL


def attribute_meant(name: str, owner: object) -> str:
    """What an attribute that ``owner`` does not have may have been meant to be, for hints."""
    for module in (np, math):
        found = getattr(module, name, None)
        is_type = isinstance(found, type) and issubclass(found, np.generic)
        if isinstance(owner, ModuleType) and (is_type or isinstance(found, _FUNCTIONS)):
            return f"Did you mean {module.__name__}.{name}?"
    if isinstance(owner, ModuleType) and name in ELSEWHERE:
        return ELSEWHERE[name]
    return similar(name, dir(owner))


def similar(name: str, known: Iterable[str]) -> str:
    """What an unknown name may have been meant to be, for hints."""
    found = get_close_matches(name, [k for k in known if not k.startswith("_")], n=3)
    return f"Did you mean {' or '.join(found)}?" if found else "See its documentation."
