"""A kernel for a part of a launch: ids and ranges are those of the whole.

    i = item.get_global_id(0)    →    i = item.get_global_id(0) + first_item_0

A part has whole work-groups, so local ids, local memory and what a group does together stay as they
are.  Where a part begins, and how large the whole is, are the kernel's last parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.base.target import LaunchShape
from fusionq.ir.fresh_names import FreshNames
from fusionq.ir.nodes import Binary, Expr, For, ItemQuery, Kernel, Param, Query, ScalarParam
from fusionq.ir.types import INT64
from fusionq.ir.walk import rewrite_body, statements

_WANTED: Mapping[Query, str] = {
    "global_id": "first_item", "group_id": "first_group",
    "global_range": "items", "group_range": "groups",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchPart:
    """A kernel for parts of a launch, and what its last parameters are: of the part's first
    work-item and work-group the ids, of the whole launch the ranges."""

    kernel: Kernel
    added: tuple[tuple[Query, int], ...]

    def values(self, whole: LaunchShape, first: tuple[int, ...]) -> list[int]:
        """Those parameters for the part of ``whole`` that begins at work-group ``first``."""

        def value(query: Query, dim: int) -> int:
            local = whole.local_range[dim]
            match query:
                case "global_id":
                    return first[dim] * local
                case "group_id":
                    return first[dim]
                case "global_range":
                    return whole.global_range[dim]
            return whole.global_range[dim] // local

        return [value(query, dim) for query, dim in self.added]


def launch_part(kernel: Kernel) -> LaunchPart:
    """``kernel``, which is not persistent, for parts of its launches."""
    names = FreshNames(
        [
            *(p.name for p in kernel.params),
            *(name for name, _ in kernel.variables),
            *(array.name for array in kernel.arrays),
            *(s.var for s in statements(kernel.body) if isinstance(s, For)),
        ]
    )
    added: dict[tuple[Query, int], str] = {}

    def param(query: Query, dim: int) -> Param:
        if (query, dim) not in added:
            added[query, dim] = names.fresh(f"{_WANTED[query]}_{dim}")
        return Param(INT64, added[query, dim])

    def expr(e: Expr) -> Expr:
        match e:
            case ItemQuery("global_id" | "group_id", dim):
                return Binary(INT64, "add", e, param(e.query, dim))
            case ItemQuery("global_range" | "group_range", dim):
                return param(e.query, dim)
        return e

    body = rewrite_body(kernel.body, expr)
    params = (*kernel.params, *(ScalarParam(name, INT64) for name in added.values()))
    return LaunchPart(replace(kernel, params=params, body=body), tuple(added))
