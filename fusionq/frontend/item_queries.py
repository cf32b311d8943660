"""Item, NdItem and Group: their methods as queries of the IR."""

from __future__ import annotations

import numpy as np

from fusionq.frontend.values import Constant, ItemValue, Runtime, Scalar
from fusionq.ir.conjunctions import conjunction
from fusionq.ir.nodes import Binary, Compare, Const, Expr, ItemQuery, Query
from fusionq.ir.types import BOOL, INT64, WEAK_INT

COMPONENT_METHODS: dict[str, dict[str, Query]] = {
    "item": {"get_id": "global_id", "get_range": "global_range"},
    "nd_item": {
        "get_global_id": "global_id",
        "get_local_id": "local_id",
        "get_global_range": "global_range",
        "get_local_range": "local_range",
    },
    "group": {
        "get_group_id": "group_id",
        "get_group_range": "group_range",
        "get_local_range": "local_range",
    },
}
"""Methods that take a dimension."""

LINEAR_ID_METHODS: dict[str, dict[str, tuple[Query, Query]]] = {
    "item": {"get_linear_id": ("global_id", "global_range")},
    "nd_item": {
        "get_global_linear_id": ("global_id", "global_range"),
        "get_local_linear_id": ("local_id", "local_range"),
    },
    "group": {"get_group_linear_id": ("group_id", "group_range")},
}
"""Methods that give the row-major index of an id within a range."""

LINEAR_RANGE_METHODS: dict[str, dict[str, Query]] = {
    "item": {"get_linear_range": "global_range"},
    "nd_item": {
        "get_global_linear_range": "global_range",
        "get_local_linear_range": "local_range",
    },
    "group": {
        "get_group_linear_range": "group_range",
        "get_local_linear_range": "local_range",
    },
}
"""Methods that give the product of a range's extents."""

SUB_GROUP_METHODS = (
    "get_local_linear_id", "get_local_linear_range", "get_max_local_range", "get_group_linear_id",
    "get_group_linear_range",
)  # fmt: skip

SUB_GROUP_COMPONENTS = {
    "get_local_id": "get_local_linear_id", "get_local_range": "get_local_linear_range",
    "get_group_id": "get_group_linear_id", "get_group_range": "get_group_linear_range",
}  # fmt: skip
"""Those with a dimension; sub-groups have one."""

ITEM_MEMBERS: dict[str, tuple[str, ...]] = {
    kind: (
        *COMPONENT_METHODS[kind],
        *LINEAR_ID_METHODS[kind],
        *LINEAR_RANGE_METHODS[kind],
        *{"item": (), "nd_item": ("get_group", "get_sub_group"), "group": ("leader",)}[kind],
        "dimensions",
    )
    for kind in COMPONENT_METHODS
} | {"sub_group": (*SUB_GROUP_COMPONENTS, *SUB_GROUP_METHODS, "leader")}
"""All that a kernel may ask an Item, an NdItem, a Group or a SubGroup."""


def item_property(item: ItemValue, name: str, ndim: int) -> Scalar | None:
    """The value of ``dimensions`` or ``leader``; None for a method."""
    if name == "dimensions":
        return Constant(WEAK_INT, ndim)
    if name == "leader":
        zero = Const(INT64, 0)
        first = (Compare("eq", ItemQuery("local_id", dim), zero) for dim in range(ndim))
        return Runtime(BOOL, conjunction(first))
    return None


def sub_group_query(name: str, ndim: int, size: int) -> Scalar:
    """A query of a sub-group of ``size`` work-items, or its ``leader``."""
    if name in ("get_local_linear_range", "get_max_local_range"):
        return Constant(INT64, np.int64(size))
    # Sub-groups are pieces of the last dimension, which they fill.
    place = Binary(INT64, "mod", ItemQuery("local_id", ndim - 1), Const(INT64, size))
    if name == "get_local_linear_id":
        return Runtime(INT64, place)
    if name == "leader":
        return Runtime(BOOL, Compare("eq", place, Const(INT64, 0)))
    whole = (
        linear_range("local_range", ndim)
        if name == "get_group_linear_range"
        else linear_id("local_id", "local_range", ndim)
    )
    return Runtime(INT64, Binary(INT64, "floordiv", whole.expr, Const(INT64, size)))


def linear_id(ids: Query, extents: Query, ndim: int) -> Runtime:
    """The row-major index: ``(id0 * range1 + id1) * range2 + id2``."""
    index: Expr = ItemQuery(ids, 0)
    for dim in range(1, ndim):
        scaled = Binary(INT64, "mul", index, ItemQuery(extents, dim))
        index = Binary(INT64, "add", scaled, ItemQuery(ids, dim))
    return Runtime(INT64, index)


def linear_range(extents: Query, ndim: int) -> Runtime:
    """The product of the extents."""
    size: Expr = ItemQuery(extents, 0)
    for dim in range(1, ndim):
        size = Binary(INT64, "mul", size, ItemQuery(extents, dim))
    return Runtime(INT64, size)
