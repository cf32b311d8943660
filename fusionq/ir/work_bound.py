"""How many operations a kernel takes at most, where its text tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod

from fusionq.ir.nodes import Binary, Const, Expr, Extent, For, Kernel, Persistent, Stmt, While
from fusionq.ir.walk import nested_bodies, statement_expressions, subexpressions

Shapes = Mapping[str, Sequence[int]]
"""The extents of each array parameter."""


class WorkBound:
    """How many operations a kernel takes at most.  What no extent changes is counted once."""

    __slots__ = ("_body", "_each", "_is_persistent", "_latest")

    def __init__(self, kernel: Kernel) -> None:
        self._body = kernel.body
        self._is_persistent = False
        self._latest: tuple[Shapes, float] = {}, 0.0
        """What a work-item does by the shapes of the latest launch."""
        if kernel.body and isinstance(persistent := kernel.body[0], Persistent):
            self._is_persistent = True
            codes = [_operations(code.kernel.body, {}) for code in persistent.codes]
            self._each = sum(codes[stage.code] for stage in persistent.stages)
        else:
            self._each = _operations(kernel.body, {})

    @property
    def depends_on_shapes(self) -> bool:
        """Whether ``operations`` needs the shapes."""
        return self._is_persistent or self._each == inf

    def operations(self, items: int, shapes: Shapes) -> float:
        """Operations of ``items`` work-items, about, or more; infinite where a loop's end depends
        on more than constants and extents.  Of a persistent kernel: every stage over all elements
        of its arrays."""
        if self._is_persistent:
            return self._each * sum(prod(shape) for shape in shapes.values())
        each = self._each
        if each == inf:
            known, each = self._latest
            if known != shapes or not known:
                each = _operations(self._body, shapes)
                self._latest = shapes, each
        return items * each


def _operations(body: Sequence[Stmt], shapes: Shapes) -> float:
    total = 0.0
    for statement in body:
        total += sum(1 for e in statement_expressions(statement) for _ in subexpressions(e))
        # One at least: infinitely many times nothing is no number.
        inner = 1 + sum(_operations(nested, shapes) for nested in nested_bodies(statement))
        if isinstance(statement, While):
            return inf
        total += inner * (_trips(statement, shapes) if isinstance(statement, For) else 1)
    return total


def _trips(loop: For, shapes: Shapes) -> float:
    bounds = [_value(e, shapes) for e in (loop.start, loop.stop, loop.step)]
    start, stop, step = bounds
    if start is None or stop is None or step is None:
        return inf
    # One at least: no times infinite is no number.
    return max(len(range(start, stop, step)) if step else 0, 1)


def _value(expr: Expr, shapes: Shapes) -> int | None:
    match expr:
        case Const():
            return int(expr.value)
        case Extent() if expr.array in shapes:
            return shapes[expr.array][expr.dim]
        case Binary(_, "add" | "sub" | "mul" as op, lhs, rhs):
            a, b = _value(lhs, shapes), _value(rhs, shapes)
            if a is None or b is None:
                return None
            return {"add": a + b, "sub": a - b, "mul": a * b}[op]
    return None
