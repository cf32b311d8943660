"""Prepared launches for other memory, and where their scalars are others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusionq.analysis.submission import ArrayPlace, ScalarValue
from fusionq.backends.base import Backend, MovableLaunch
from fusionq.memory.storage import Storage


def move_launches(
    launches: Sequence[MovableLaunch | None],
    pointers: Sequence[Mapping[str, int]],
    backend: Backend,
    memory: Sequence[object],
    places: Sequence[ArrayPlace],
    addresses: list[int | None],
) -> None:
    """Have the arrays of ``launches`` at those of ``addresses`` that their ``pointers`` say, by
    parameter; where an address is not known, it is added.  DeviceError where memory cannot be
    allocated or reached."""
    find_addresses(launches, pointers, backend, memory, places, addresses)
    for launch in launches:
        if launch is not None:
            launch.move(addresses)


def find_addresses(
    launches: Sequence[MovableLaunch | None],
    pointers: Sequence[Mapping[str, int]],
    backend: Backend,
    memory: Sequence[object],
    places: Sequence[ArrayPlace],
    addresses: list[int | None],
) -> None:
    """Add to ``addresses`` those of arrays that the ``launches`` have, by their ``pointers``, and
    that are not known; DeviceError where memory cannot be allocated or reached."""
    if None not in addresses:
        return
    for launch, of_launch in zip(launches, pointers, strict=True):
        for place in of_launch.values() if launch is not None else ():
            if addresses[place] is None:
                held = memory[place]
                assert isinstance(held, Storage)
                addresses[place] = held.make_reachable(backend) + places[place][3]


def changed_places(values: Sequence[ScalarValue], bound: Sequence[ScalarValue]) -> list[int]:
    """The places of those of ``values`` that are not what launches have, which is ``bound``."""
    return [
        k
        for k, value in enumerate(values)
        if value is not bound[k] and not is_same(value, bound[k])
    ]


def is_same(value: ScalarValue, other: ScalarValue) -> bool:
    """Whether two scalars are of one type and one value.  Floating zeros that are two objects are
    not looked into, since they have a sign; nor are NaNs, which equal nothing."""
    if type(value) is not type(other) or value != other:
        return False
    return bool(value) or isinstance(value, (int, np.integer))
