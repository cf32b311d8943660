"""Python's functions of a sequence: ``sum``, ``math.prod``, ``min``, ``max``, ``any`` and ``all``
of a tuple or of a row, from its first element to its last, as Python computes them.

The bodies are inlined; ``min`` and ``max`` of tuples are those of several numbers.
"""

from __future__ import annotations

import ast
import math
from types import FunctionType
from typing import Any


def _sum(values: Any) -> Any:
    total = 0
    for x in values:
        total += x
    return total


def _prod(values: Any) -> Any:
    total = 1
    for x in values:
        total *= x
    return total


def _min(values: Any) -> Any:
    found = values[0]
    for x in values[1:]:
        found = min(found, x)
    return found


def _max(values: Any) -> Any:
    found = values[0]
    for x in values[1:]:
        found = max(found, x)
    return found


def _any(values: Any) -> Any:
    found = False
    for x in values:
        if x:
            found = True
            break
    return found


def _all(values: Any) -> Any:
    found = True
    for x in values:
        if not x:
            found = False
            break
    return found


_BODIES = {sum: _sum, math.prod: _prod, min: _min, max: _max, any: _any, all: _all}
SEQUENCE_BODIES: dict[object, FunctionType] = {
    function: body for function, body in _BODIES.items() if isinstance(body, FunctionType)
}
"""Function → its body in the kernel language."""


def is_sequence_function(obj: object) -> bool:
    """Whether a call of ``obj`` may have a sequence for its one argument."""
    return any(obj is function for function in SEQUENCE_BODIES)


def with_items(node: ast.Call, count: int) -> ast.Call:
    """A call of a tuple as one of its ``count`` items, for messages."""
    return ast.copy_location(ast.Call(node.func, [node.args[0]] * count, []), node)
