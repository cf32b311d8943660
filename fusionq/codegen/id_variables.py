"""Global ids in variables, which a kernel computes first.

Intel's OpenCL CPU compiler (runtime 2026.21.7) computes products of ids wrong, for all but the
first vector of a work-group, in some kernels that ask for an id again in several branches; it was
never seen to where they ask once.
"""

from __future__ import annotations

from fusionq.codegen.dialect import WorkItems
from fusionq.ir.nodes import Query


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
