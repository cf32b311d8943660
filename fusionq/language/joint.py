"""Group algorithms over arrays: all work-items of a group call them together, and share the work.

``group`` is ``item.get_group()`` or ``item.get_sub_group()``.  ``x`` is a one-dimensional array, or
a row or slice of one, the same for all work-items of the group; so are all other arguments.  What
the group has stored in it before the call is there after ``group_barrier(group)``.

The order of operations depends on the number of elements alone, for a sub-group also on its size
(docs/semantics.md, Group functions).  Source: SYCL 2020, section 4.17.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusionq.language.combine import COMBINE, joint_lanes, joint_reduction, joint_scan
from fusionq.language.execute import KernelArray
from fusionq.language.groups import AnyGroup, Operation, op_name, truth, wide
from fusionq.language.item import SubGroup
from fusionq.language.meeting import meet

Predicate = Callable[[Any], Any]


def joint_reduce(group: AnyGroup, x: KernelArray, op: Operation = "add", init: Any = None) -> Any:
    """All elements of ``x`` combined, for each work-item; ``op`` and ``init`` as in
    ``reduce_over_group``.

    The result has the dtype of ``x``; for no elements it is what changes nothing: 0 for
    ``"add"``, infinity or the type's greatest value for ``"min"``.  Source: SYCL 2020, section
    4.17.4.5.
    """
    name, dtype = str(op_name(op)), x.dtype.dtype
    values = [wide(value) for value in _elements(group, x)]
    inner = wide(dtype.type(0)).dtype
    result = dtype.type(joint_reduction(name, values, inner, joint_lanes(_size(group))))
    return result if init is None else COMBINE[name](dtype.type(init), result)


def joint_inclusive_scan(
    group: AnyGroup, x: KernelArray, out: KernelArray, op: Operation = "add", init: Any = None
) -> None:
    """Store in ``out[i]`` the elements of ``x`` up to ``x[i]``, combined; ``op`` and ``init`` as in
    ``reduce_over_group``.

    ``out``: of the dtype of ``x`` and at least as long; ``x`` itself, or memory of its own.  When
    the call is over, all work-items of the group see all of it.  Source: SYCL 2020, section
    4.17.4.6.
    """
    _scan("inclusive_scan", group, x, out, op, init)


def joint_exclusive_scan(
    group: AnyGroup, x: KernelArray, out: KernelArray, op: Operation = "add", init: Any = None
) -> None:
    """Store in ``out[i]`` the elements of ``x`` before ``x[i]``, combined, and ``init`` in
    ``out[0]``, or what changes nothing; otherwise as ``joint_inclusive_scan``.

    Source: SYCL 2020, section 4.17.4.6.
    """
    _scan("exclusive_scan", group, x, out, op, init)


def joint_any_of(group: AnyGroup, x: KernelArray, predicate: Predicate | None = None) -> Any:
    """Whether some element of ``x``, or ``predicate`` of it, is true.  Source: SYCL 2020, section
    4.17.4.2."""
    votes = [truth(value, predicate) for value in _elements(group, x)]
    return meet("any", truth(any(votes), None), sub_group=_size(group))


def joint_all_of(group: AnyGroup, x: KernelArray, predicate: Predicate | None = None) -> Any:
    """Whether every element of ``x``, or ``predicate`` of it, is true.  Source: SYCL 2020, section
    4.17.4.3."""
    votes = [truth(value, predicate) for value in _elements(group, x)]
    return meet("all", truth(all(votes), None), sub_group=_size(group))


def joint_none_of(group: AnyGroup, x: KernelArray, predicate: Predicate | None = None) -> Any:
    """Whether no element of ``x``, or ``predicate`` of it, is true.  Source: SYCL 2020, section
    4.17.4.3."""
    return ~joint_any_of(group, x, predicate)


def _scan(
    function: str, group: AnyGroup, x: KernelArray, out: KernelArray, op: Operation, init: Any
) -> None:
    dtype = x.dtype.dtype
    first = None if init is None else wide(dtype.type(init))
    values = [wide(value) for value in _elements(group, x)]
    scanned = joint_scan(
        function, str(op_name(op)), values, wide(dtype.type(0)).dtype, joint_lanes(_size(group)),
        first,
    )  # fmt: skip
    _together(group)
    for place, value in enumerate(scanned):
        out[place] = value
    _together(group)


def _elements(group: AnyGroup, x: KernelArray) -> Sequence[Any]:
    """The elements, once all work-items are here."""
    _together(group)
    return [x[place] for place in range(x.shape[0])]


def _together(group: AnyGroup) -> None:
    meet("any", truth(True, None), sub_group=_size(group))


def _size(group: AnyGroup) -> int | None:
    return group.size if isinstance(group, SubGroup) else None
