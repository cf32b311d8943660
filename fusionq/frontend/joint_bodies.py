"""The group algorithms over arrays, written in the kernel language; ``joint_operations`` inlines
them.

``own`` is the work-item's place in its group of ``items``; ``combine`` the operation, ``op`` its
name, ``start`` its identity.  ``slots`` is local memory for ``JOINT_LANES`` elements, for a scan
twice as many.  The order of operations is that of ``language.combine``.
"""

from __future__ import annotations

from typing import Any

from fusionq.language.combine import JOINT_LANES
from fusionq.language.groups import (
    group_barrier,
    inclusive_scan_over_group,
    reduce_over_group,
    select_from_group,
    shift_group_right,
)


def joint_reduction(
    group: Any, own: Any, items: Any, x: Any, slots: Any, combine: Any, start: Any
) -> Any:
    for lane in range(own, JOINT_LANES, items):
        total = start
        for k in range(lane, x.shape[0], JOINT_LANES):
            total = combine(total, x[k])
        slots[lane] = total
    group_barrier(group)
    distance = JOINT_LANES // 2
    for _ in range(8):
        for lane in range(own, distance, items):
            slots[lane] = combine(slots[lane], slots[lane + distance])
        group_barrier(group)
        distance = distance // 2
    total = slots[0]
    group_barrier(group)
    return total


def sub_group_reduction(
    group: Any, own: Any, items: Any, x: Any, op: Any, combine: Any, start: Any
) -> Any:
    total = start
    for k in range(own, x.shape[0], items):
        total = combine(total, x[k])
    return reduce_over_group(group, total, op)


def joint_scan(
    group: Any,
    own: Any,
    items: Any,
    x: Any,
    out: Any,
    slots: Any,
    combine: Any,
    start: Any,
    init: Any,
    exclusive: Any,
) -> Any:
    carry = init
    for first in range(0, x.shape[0], JOINT_LANES):
        for lane in range(own, JOINT_LANES, items):
            slots[lane] = x[first + lane] if first + lane < x.shape[0] else start
        group_barrier(group)
        source = 0
        distance = 1
        for _ in range(8):
            for lane in range(own, JOINT_LANES, items):
                value = slots[source + lane]
                if lane >= distance:
                    value = combine(slots[source + lane - distance], value)
                slots[JOINT_LANES - source + lane] = value
            group_barrier(group)
            source = JOINT_LANES - source
            distance = distance * 2
        for lane in range(own, JOINT_LANES, items):
            if first + lane < x.shape[0]:
                if not exclusive:
                    out[first + lane] = combine(carry, slots[lane])
                elif lane == 0:
                    out[first + lane] = carry
                else:
                    out[first + lane] = combine(carry, slots[lane - 1])
        carry = combine(carry, slots[JOINT_LANES - 1])
        group_barrier(group)


def sub_group_scan(
    group: Any,
    own: Any,
    items: Any,
    x: Any,
    out: Any,
    op: Any,
    combine: Any,
    start: Any,
    init: Any,
    exclusive: Any,
) -> Any:
    carry = init
    for first in range(0, x.shape[0], items):
        value = x[first + own] if first + own < x.shape[0] else start
        scanned = combine(carry, inclusive_scan_over_group(group, value, op))
        if exclusive:
            before = shift_group_right(group, scanned)
            value = carry if own == 0 else before
        else:
            value = scanned
        if first + own < x.shape[0]:
            out[first + own] = value
        carry = select_from_group(group, scanned, items - 1)


def some_element(own: Any, items: Any, x: Any, predicate: Any) -> Any:
    found = False
    for k in range(own, x.shape[0], items):
        if predicate(x[k]):
            found = True
    return found


def every_element(own: Any, items: Any, x: Any, predicate: Any) -> Any:
    found = True
    for k in range(own, x.shape[0], items):
        if not predicate(x[k]):
            found = False
    return found


def is_true(x: Any) -> Any:
    return x != 0


def _add(a: Any, b: Any) -> Any:
    return a + b


def _mul(a: Any, b: Any) -> Any:
    return a * b


def _min(a: Any, b: Any) -> Any:
    return b if b < a else a


def _max(a: Any, b: Any) -> Any:
    return b if b > a else a


def _and(a: Any, b: Any) -> Any:
    return a & b


def _or(a: Any, b: Any) -> Any:
    return a | b


def _xor(a: Any, b: Any) -> Any:
    return a ^ b


COMBINE: dict[str, Any] = {
    "add": _add, "mul": _mul, "min": _min, "max": _max, "and": _and, "or": _or, "xor": _xor,
}  # fmt: skip
"""The operations, by name."""
