"""Work-items of a group that meet at barriers and group functions, and atomic operations.

A work-item of such a kernel is a generator.  It yields (the statement, its value, its source)
where the group meets and is sent its result when everybody is there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NoReturn, TypeAlias

import numpy as np

from fusionq.backends.reference.checked_arrays import CheckedArray
from fusionq.backends.reference.scalars import Scalar
from fusionq.base.errors import DeviceError
from fusionq.base.span import Span
from fusionq.ir.nodes import AtomicOp, Barrier, GroupCall
from fusionq.language.combine import COMBINE, alike, over_group, over_sub_group

Meeting: TypeAlias = tuple["Barrier | GroupCall", Any, Any]
Steps: TypeAlias = Generator[Meeting, Any, None]


def atomic(array: CheckedArray, span: Span, op: AtomicOp, value: Any, *indices: Any) -> Scalar:
    """One atomic operation; the value before it.  Work-items run one at a time here.  ``value``: of
    a ``compare_exchange`` the expected and the new one."""
    before: Scalar = array.load(span, *indices)
    if op == "compare_exchange":
        expected, new = value
        if alike(before, expected):
            array.store(span, new, *indices)
    elif op != "load":
        array.store(span, COMBINE[op](before, value), *indices)
    return before


def combined(array: CheckedArray, call: GroupCall, local_range: Sequence[Any]) -> Scalar:
    """A function of a work-group on the values in ``array``, in a work-group function: the result
    of a reduction; a scan leaves each work-item's in the array."""
    places = [np.int64(place) for place in range(prod(map(int, local_range)))]
    values = [array.load(call.span, place) for place in places]
    results = over_group(call.function, call.op, values, None)
    if call.function in ("inclusive_scan", "exclusive_scan"):
        for place, result in zip(places, results, strict=True):
            array.store(call.span, result, place)
    first: Scalar = results[0]
    return first


def run_group(kernel: str, items: Sequence[tuple[int, Steps]]) -> None:
    """Run the work-items of one group, given with their linear local ids, in the order given,
    from meeting to meeting.  DeviceError if some miss a meeting that others wait at."""
    steps = dict(items)
    order = {number: k for k, number in enumerate(steps)}
    going: dict[int, Any] = dict.fromkeys(steps)
    arrived: dict[int, Meeting] = {}
    while going:
        for number, result in going.items():
            try:
                arrived[number] = steps[number].send(result)
            except StopIteration:
                continue
        going = {}
        for company in list(_companies(arrived, len(steps))):
            together = {n: arrived.pop(n) for n in sorted(company, key=order.__getitem__)}
            going |= _results(together)
        if arrived and not going:
            _raise_missing(kernel, arrived, len(steps))


def _companies(arrived: Mapping[int, Meeting], size: int) -> Iterator[set[int]]:
    """The work-items that wait at one place with all that meet there."""
    places: dict[tuple[int, int], set[int]] = {}
    for number, (statement, _, _) in arrived.items():
        among = getattr(statement, "sub_group", None) or size
        places.setdefault((id(statement), number // among), set()).add(number)
    for (statement_id, _), company in places.items():
        statement = next(s for s, _, _ in arrived.values() if id(s) == statement_id)
        if len(company) == (getattr(statement, "sub_group", None) or size):
            yield company


def _raise_missing(kernel: str, arrived: Mapping[int, Meeting], size: int) -> NoReturn:
    spans = dict.fromkeys(str(statement.span) for statement, _, _ in arrived.values())
    raise DeviceError(
        f"kernel '{kernel}': {len(arrived)} of the {size} work-items of a group wait at "
        f"{' and '.join(spans)} for the others, which never come; every work-item of a group has "
        "to reach the same barriers"
    )


def _results(arrived: dict[int, Meeting]) -> dict[int, Any]:
    """What each work-item gets where the group met; the items keep their order."""
    numbers = sorted(arrived)
    statement, _, source = arrived[numbers[0]]
    if isinstance(statement, Barrier):
        return dict.fromkeys(arrived)
    values = [arrived[number][1] for number in numbers]
    if statement.sub_group is not None:
        sources = [arrived[number][2] for number in numbers]
        results = over_sub_group(statement.function, statement.op, values, sources)
        return _by_number(arrived, numbers, results)
    if any(arrived[number][2] != source for number in numbers):
        raise DeviceError(
            f"the work-items of a group ask for broadcasts from several at {statement.span}; "
            "the source has to be the same for all"
        )
    try:
        results = over_group(statement.function, statement.op, values, source)
    except IndexError as error:
        raise DeviceError(f"{error}, at {statement.span}") from None
    return _by_number(arrived, numbers, results)


def _by_number(
    arrived: Iterable[int], numbers: Sequence[int], results: Sequence[Any]
) -> dict[int, Any]:
    of = dict(zip(numbers, results, strict=True))
    return {number: of[number] for number in arrived}
