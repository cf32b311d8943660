"""Work-items of a group that meet at barriers and group functions, and atomic operations.

A work-item of such a kernel is a generator.  It yields (the statement, its value, its source)
where the group meets and is sent its result when everybody is there.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from fusionq.backends.reference.checked_arrays import CheckedArray
from fusionq.backends.reference.scalars import Scalar
from fusionq.base.errors import DeviceError
from fusionq.base.span import Span
from fusionq.ir.nodes import AtomicOp, Barrier, GroupCall
from fusionq.language.combine import COMBINE, over_group

Meeting: TypeAlias = tuple["Barrier | GroupCall", Any, Any]
Steps: TypeAlias = Generator[Meeting, Any, None]

def atomic(
    array: CheckedArray, span: Span, op: AtomicOp, value: Scalar | None, *indices: Any
) -> Scalar:
    """One atomic operation; the value before it.  Work-items run one at a time here."""
    before: Scalar = array.load(span, *indices)
    if op != "load":
        array.store(span, COMBINE[op](before, value), *indices)
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
    if any(arrived[number][2] != source for number in numbers):
        raise DeviceError(
            f"the work-items of a group ask for broadcasts from several at {statement.span}; "
            "the source has to be the same for all"
        )
    try:
        results = over_group(statement.function, statement.op, values, source)
    except IndexError as error:
        raise DeviceError(f"{error}, at {statement.span}") from None
    by_number = dict(zip(numbers, results, strict=True))
    return {number: by_number[number] for number in arrived}
