"""Global ids in variables, which a kernel computes first.

Intel's OpenCL CPU compiler (runtime 2026.21.7) computes products of ids wrong, for all but the
first vector of a work-group, in some kernels that ask for an id again in several branches; it was
never seen to where they ask once.  Kernels of one branch ask each time: the compiler makes a bound
of its loop over work-items of a guard that calls the function, and of no other (a guarded 3-point
stencil of 262,144 floats takes 22 µs so, 35 otherwise).
"""

from __future__ import annotations

from fusionq.codegen.dialect import WorkItems
from fusionq.codegen.scoping import Body
from fusionq.ir.nodes import For, If, Query, While
from fusionq.ir.range_guard import range_guard
from fusionq.ir.walk import statements


def has_several_branches(body: Body) -> bool:
    """Whether there is more than one branch or loop in ``body`` (without nested blocks), beside its
    range's guard."""
    guard = range_guard(body)
    inside = body if guard is None else guard.guard.then
    count = 0
    for stmt in statements(inside):
        if isinstance(stmt, (If, For, While)):
            count += 2 if isinstance(stmt, If) and stmt.orelse else 1
    return count > 1


class IdVariables:
    """The work-items of a kernel over a range; see ``WorkItems``."""

    def __init__(self, items: WorkItems) -> None:
        self._items = items
        self._ids: dict[str, str] = {}

    def query(self, query: Query, dim: int, ndim: int) -> str:
        """See ``WorkItems``."""
        text = self._items.query(query, dim, ndim)
        if query != "global_id":
            return text
        name = f"fq_id_{dim}"
        self._ids[name] = text
        return name

    def device_function(self, function: str, *arguments: str) -> str:
        """See ``WorkItems``."""
        return self._items.device_function(function, *arguments)

    def lines(self, int64: str) -> list[str]:
        """The declarations of the ids that were asked for."""
        return [f"const {int64} {name} = {text};" for name, text in sorted(self._ids.items())]
