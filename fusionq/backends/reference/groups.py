"""Work-items of a group that meet at barriers and group functions, and atomic operations.

A work-item of such a kernel is a generator.  It yields (the statement, its value, its source)
where the group meets and is sent its result when everybody is there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from fusionq.backends.reference.memory import CheckedArray
from fusionq.backends.reference.scalars import FUNCTIONS, Scalar
from fusionq.errors import DeviceError
from fusionq.ir.nodes import AtomicOp, Barrier, GroupCall, GroupOp, Span

Meeting: TypeAlias = tuple["Barrier | GroupCall", Any, Any]
Steps: TypeAlias = Generator[Meeting, Any, None]

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": FUNCTIONS["pymin"],
    "max": FUNCTIONS["pymax"],
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exchange": lambda a, b: b,
    "store": lambda a, b: b,
}


def atomic(
    array: CheckedArray, span: Span, op: AtomicOp, value: Scalar | None, *indices: Any
) -> Scalar:
    """One atomic operation; the value before it.  Work-items run one at a time here."""
    before: Scalar = array.load(span, *indices)
    if op != "load":
        array.store(span, _COMBINE[op](before, value), *indices)
    return before


def run_group(kernel: str, items: Sequence[tuple[int, Steps]]) -> None:
    """Run the work-items of one group, given with their linear local ids, in the order given,
    from meeting to meeting.  DeviceError if some miss a meeting that others wait at."""
    waiting: dict[int, Any] = dict.fromkeys((number for number, _ in items))
    steps = dict(items)
    while True:
        arrived: dict[int, Meeting] = {}
        for number in waiting:
            with suppress(StopIteration):
                arrived[number] = steps[number].send(waiting[number])
        if not arrived:
            return
        places = {id(statement) for statement, _, _ in arrived.values()}
        if len(arrived) != len(steps) or len(places) != 1:
            spans = dict.fromkeys(str(statement.span) for statement, _, _ in arrived.values())
            raise DeviceError(
                f"kernel '{kernel}': {len(arrived)} of the {len(steps)} work-items of a group "
                f"wait at {' and '.join(spans)} for the others, which never come; every work-item "
                "of a group has to reach the same barriers"
            )
        waiting = _results(arrived)


def _results(arrived: dict[int, Meeting]) -> dict[int, Any]:
    """What each work-item gets where the group met; the items keep their order."""
    numbers = sorted(arrived)
    statement, _, source = arrived[numbers[0]]
    if isinstance(statement, Barrier):
        return dict.fromkeys(arrived)
    values = [arrived[number][1] for number in numbers]
    results = _combined(statement, values, source)
    by_number = dict(zip(numbers, results, strict=True))
    return {number: by_number[number] for number in arrived}


def _combined(statement: GroupCall, values: list[Any], source: Any) -> list[Any]:
    match statement.function:
        case "any":
            return [np.bool_(any(values))] * len(values)
        case "all":
            return [np.bool_(all(values))] * len(values)
        case "broadcast":
            return [values[int(source)]] * len(values)
    assert statement.op is not None
    combine = _COMBINE[statement.op]
    totals = [values[0]]
    for value in values[1:]:
        totals.append(combine(totals[-1], value))
    if statement.function == "reduce":
        return [totals[-1]] * len(values)
    if statement.function == "inclusive_scan":
        return totals
    return [identity(statement.op, values[0].dtype), *totals[:-1]]


def identity(op: GroupOp, dtype: np.dtype[Any]) -> Any:
    """The value that changes nothing under ``op``."""
    if op in ("add", "or", "xor"):
        return dtype.type(0)
    if op == "mul":
        return dtype.type(1)
    if op == "and":
        return dtype.type(True) if dtype.kind == "b" else ~dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(np.inf if op == "min" else -np.inf)
    if dtype.kind == "b":
        return dtype.type(op == "min")
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if op == "min" else limits.min)
