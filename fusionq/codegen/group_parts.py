"""Kernels side by side in one launch, each with code as it would have by itself.

A work-group finds its kernel by its number; within that, ids are those of the kernel:

    const long fq_first_group = group < first_1 ? 0 : first_1;
    if (group < first_1) {
        …global_id(0) as (get_global_id(1) - fq_first_group * get_local_size(1))…
    } else {
        …the same…
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.base.frozen import dataclass
from fusionq.codegen.dialect import WorkItems
from fusionq.ir.nodes import Query

FIRST_GROUP = "fq_first_group"
"""The variable with the first work-group of the kernel that a work-item runs."""


@dataclass(frozen=True, slots=True)
class ItemsOfParts:
    """Work-items whose ids are those of one of several kernels; see ``WorkItems``."""

    launched: WorkItems

    def query(self, query: Query, dim: int, ndim: int) -> str:
        """See ``WorkItems``."""
        text = self.launched.query(query, dim, ndim)
        if dim or query not in ("global_id", "group_id"):
            return text
        if query == "group_id":
            return f"({text} - {FIRST_GROUP})"
        size = self.launched.query("local_range", dim, ndim)
        return f"({text} - {FIRST_GROUP} * {size})"

    def device_function(self, function: str, *arguments: str) -> str:
        """See ``WorkItems``."""
        return self.launched.device_function(function, *arguments)


def first_group(names: Sequence[str], group: str, type: str) -> str:
    """The declaration of ``FIRST_GROUP``, of an integer ``type``, by the number of the ``group``
    and those of the first work-groups of all kernels but the first, in variables ``names``."""
    found = names[-1]
    for k in reversed(range(len(names))):
        own = "0" if k == 0 else names[k - 1]
        found = f"{group} < {names[k]} ? {own} : {found}"
    return f"const {type} {FIRST_GROUP} = {found};"


def branches(names: Sequence[str], group: str, bodies: Sequence[Sequence[str]]) -> list[str]:
    """The lines ``bodies`` of the kernels, of which each work-group runs those of its own; the
    others as of ``first_group``."""
    lines = []
    for k, body in enumerate(bodies):
        condition = f"if ({group} < {names[k]}) " if k < len(names) else ""
        lines.append(f"{'} else ' if k else ''}{condition}{{")
        lines += [f"    {line}" if line else line for line in body]
    return [*lines, "}"]
