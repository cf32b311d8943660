"""Functions that all work-items of a work-group, or of a sub-group, call together.

Every work-item of the group reaches the same call, or none does.  ``group`` is
``item.get_group()`` or ``item.get_sub_group()``.  The order of a group's work-items is that of
their linear local ids.  As plain Python they work where ``language.meeting`` runs the group's
work-items together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from fusionq.base.dtypes import is_bfloat16
from fusionq.language.combine import COMBINE
from fusionq.language.item import Group, SubGroup
from fusionq.language.meeting import meet
from fusionq.language.memory_model import MemoryScope
from fusionq.language.scalar_functions import python_max, python_min

AnyGroup: TypeAlias = Group | SubGroup
GroupOperation: TypeAlias = Literal["add", "mul", "min", "max", "and", "or", "xor"]
Operation: TypeAlias = GroupOperation | Callable[..., Any]
"""How a group function combines values; Python's ``min`` and ``max`` stand for their names."""

# A kernel that runs as plain Python has its own ``min`` and ``max``.
_FUNCTIONS = (("min", min), ("max", max), ("min", python_min), ("max", python_max))


def group_barrier(group: Group, fence_scope: MemoryScope = MemoryScope.WORK_GROUP) -> None:
    """Wait until every work-item of the group is here; what each wrote before, all see after.

    ``fence_scope``: the work-items to which it becomes visible.  Source: SYCL 2020, section
    4.17.3.
    """
    meet("barrier")


def reduce_over_group(group: AnyGroup, x: Any, op: Operation = "add", init: Any = None) -> Any:
    """All work-items' ``x`` combined, for each of them.

    ``op``: ``"add"``, ``"mul"``, ``"min"``, ``"max"`` of numbers; ``"and"``, ``"or"``,
    ``"xor"`` of integers and bools.  ``init``: combined, as the left operand, with the result.
    The result has the type of ``x`` (int64 or float64 for a Python number); integers wrap.
    The order of operations is that of docs/semantics.md, which shows in sums and products of
    floating-point numbers; bfloat16 is combined in float32, and what comes out is rounded.
    Source: SYCL 2020, section 4.17.4.5.
    """
    return _behind(init, op, _combined("reduce", group, x, op))


def inclusive_scan_over_group(
    group: AnyGroup, x: Any, op: Operation = "add", init: Any = None
) -> Any:
    """The ``x`` of the work-items up to this one, combined; ``op`` and ``init`` as in
    ``reduce_over_group``.

    Source: SYCL 2020, section 4.17.4.6.
    """
    return _behind(init, op, _combined("inclusive_scan", group, x, op))


def exclusive_scan_over_group(
    group: AnyGroup, x: Any, op: Operation = "add", init: Any = None
) -> Any:
    """The ``x`` of the work-items before this one, combined; ``op`` and ``init`` as in
    ``reduce_over_group``.  The first gets what changes nothing: 0 for ``"add"``, the type's
    greatest value or infinity for ``"min"``.

    Source: SYCL 2020, section 4.17.4.6.
    """
    return _behind(init, op, _combined("exclusive_scan", group, x, op))


def group_broadcast(group: AnyGroup, x: Any, source: Any = 0) -> Any:
    """The ``x`` of the work-item with the linear local id ``source``, for all of them.

    ``source``: the same for all, within the group.  Source: SYCL 2020, section 4.17.4.1.
    """
    return meet("broadcast", _number(x), None, source, _size(group))


def any_of_group(
    group: AnyGroup, condition: Any, predicate: Callable[[Any], Any] | None = None
) -> Any:
    """Whether ``condition``, or ``predicate(condition)``, holds for some work-item.  Source: SYCL
    2020, section 4.17.4.2."""
    return meet("any", truth(condition, predicate), sub_group=_size(group))


def all_of_group(
    group: AnyGroup, condition: Any, predicate: Callable[[Any], Any] | None = None
) -> Any:
    """Whether ``condition``, or ``predicate(condition)``, holds for every work-item.  Source: SYCL
    2020, section 4.17.4.3."""
    return meet("all", truth(condition, predicate), sub_group=_size(group))


def none_of_group(
    group: AnyGroup, condition: Any, predicate: Callable[[Any], Any] | None = None
) -> Any:
    """Whether ``condition``, or ``predicate(condition)``, holds for no work-item.  Source: SYCL
    2020, section 4.17.4.3."""
    return ~any_of_group(group, condition, predicate)


def shift_group_left(group: SubGroup, x: Any, delta: Any = 1) -> Any:
    """The ``x`` of the work-item ``delta`` places further on in the sub-group, its own where there
    is none.  Source: SYCL 2020, section 4.17.4.4."""
    return meet("shift_left", _number(x), None, delta, _size(group))


def shift_group_right(group: SubGroup, x: Any, delta: Any = 1) -> Any:
    """The ``x`` of the work-item ``delta`` places before in the sub-group, its own where there is
    none.  Source: SYCL 2020, section 4.17.4.4."""
    return meet("shift_right", _number(x), None, delta, _size(group))


def permute_group_by_xor(group: SubGroup, x: Any, mask: Any) -> Any:
    """The ``x`` of the work-item whose place in the sub-group is this one's exclusive or ``mask``,
    its own where there is none.  Source: SYCL 2020, section 4.17.4.4."""
    return meet("permute_xor", _number(x), None, mask, _size(group))


def select_from_group(group: SubGroup, x: Any, source: Any) -> Any:
    """The ``x`` of the work-item at the place ``source`` of the sub-group, its own where there is
    none.  Source: SYCL 2020, section 4.17.4.4."""
    return meet("select", _number(x), None, source, _size(group))


def op_name(op: object) -> str | None:
    """The operation that ``op`` names; None if there is no such thing."""
    if isinstance(op, str):
        return op if op in get_args(GroupOperation) else None
    return next((name for name, function in _FUNCTIONS if op is function), None)


def _combined(function: str, group: AnyGroup, x: Any, op: Operation) -> Any:
    """A reduction or scan; of bfloat16 in float32, and rounded."""
    number = _number(x)
    result = meet(function, wide(number), op_name(op), sub_group=_size(group))
    return number.dtype.type(result)


def wide(x: Any) -> Any:
    """A bfloat16 as a float32, any other number as it is."""
    return np.float32(x) if is_bfloat16(x.dtype) else x


def _number(x: Any) -> Any:
    return x if isinstance(x, np.generic) else np.asarray(x)[()]


def truth(condition: Any, predicate: Callable[[Any], Any] | None) -> np.bool_:
    """What a vote asks of one value."""
    return np.bool_(bool(condition if predicate is None else predicate(condition)))


def _behind(init: Any, op: Operation, result: Any) -> Any:
    return result if init is None else COMBINE[str(op_name(op))](result.dtype.type(init), result)


def _size(group: AnyGroup) -> int | None:
    """Work-items of a sub-group; None for a work-group."""
    return group.size if isinstance(group, SubGroup) else None
