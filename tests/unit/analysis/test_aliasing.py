"""Where array arguments lie: what may share memory, and by what their elements are compared."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fusionq.analysis.aliasing import Place, extent_of, overlaps_itself, places
from tests.unit.lists import argument, root

MEMORY = np.zeros(64, np.float32)


def windows(shape, strides):
    return np.lib.stride_tricks.as_strided(MEMORY, shape, [4 * s for s in strides])


def addresses(array):
    """The bytes of each element, as (first byte, bytes)."""
    base = root(array).__array_interface__["data"][0]
    start = array.__array_interface__["data"][0] - base
    return [
        start + sum(i * s for i, s in zip(index, array.strides, strict=True))
        for index in product(*map(range, array.shape))
    ]


VIEWS = [
    MEMORY[8:20], MEMORY[14:26], MEMORY[8:20][::-1], MEMORY[40:52], MEMORY[9:30:3],
    MEMORY[10:31:3], MEMORY[20:32].reshape(3, 4), MEMORY[20:32].reshape(3, 4).T,
    MEMORY.view(np.float64)[4:9], MEMORY.view(np.int16)[17:40:2], MEMORY[36:60:2], MEMORY[10:10],
]  # fmt: skip


BYTES = MEMORY.view(np.uint8)
PACKED = np.zeros(16, [("x", "f4"), ("y", "i2")])
TURNS = [[VIEWS[k], *VIEWS[:k], *VIEWS[k + 1 :]] for k in range(len(VIEWS))]
"""The views, each of them once the first: addresses are counted from there."""


@pytest.mark.parametrize(
    "views",
    [
        *TURNS,
        [MEMORY[:12], BYTES[2:50].view(np.float32)],
        [PACKED["x"][:12], PACKED["x"][2:14]],
        [PACKED["x"][:12], PACKED["y"][:12], PACKED["x"][2:14]],
    ],
    ids=lambda views: f"{len(views)} from {views[0].shape}",
)
def test_addresses_are_equal_where_bytes_are(views):
    found = places([argument("v", view) for view in views])
    touched = []
    for view, place in zip(views, found, strict=True):
        assert (place.by_address is None) == (view.size == 0 or found.count(place) > 1)
        units = {}
        if place.by_address is not None:
            lie = place.by_address
            for n, index in enumerate(product(*map(range, view.shape))):
                at = lie.offset + sum(i * s for i, s in zip(index, lie.strides, strict=True))
                units[n] = {(place.group, at + w) for w in range(lie.width)}
        touched.append(units)
    for (a, of_a), (b, of_b) in product(list(zip(views, touched, strict=True)), repeat=2):
        for (n, at), (m, other) in product(enumerate(addresses(a)), enumerate(addresses(b))):
            shared = at < other + b.itemsize and other < at + a.itemsize
            assert shared == (not of_a[n].isdisjoint(of_b[m]))


def test_one_view_is_compared_by_index():
    a, b = np.zeros(12, np.float32), np.zeros(12, np.float32)
    given = [argument("v", v) for v in (a, b, a)]
    assert places(given) == (Place(0, 0, None), Place(1, 0, None), Place(0, 0, None))
    # So is adopted memory that is one and the same.
    adopted = [replace(v, owned=False, address=1 << 20 if k != 1 else 1 << 16)
               for k, v in enumerate(given)]  # fmt: skip
    assert places(adopted) == places(given)


def test_adopted_memory_is_compared_by_its_address():
    """Two arguments that do not know of each other may be one memory."""
    whole = argument("v", np.zeros(16, np.float32))
    adopted = [replace(whole, storage=k, owned=False, address=1000 + at)
               for k, at in enumerate((0, 32, 64, 200))]  # fmt: skip
    found = places(adopted)
    assert [p.group for p in found] == [0, 0, 0, 1]
    assert [p.by_address.offset for p in found[:3]] == [0, 8, 16]
    assert found[3].by_address is None
    backwards = [replace(whole, storage=0, owned=False, address=1000),
                 replace(whole, storage=1, owned=False, address=1100, strides=(-4,))]  # fmt: skip
    assert [p.group for p in places(backwards)] == [0, 0]


@pytest.mark.parametrize(
    ("view", "overlaps"),
    [
        (MEMORY[:12], False),
        (windows((4, 3), (3, 1)), False),
        (windows((4, 3), (1, 3)), True),
        (windows((3, 4), (1, 3)), False),
        (windows((4, 3), (2, 1)), True),
        (windows((5, 2), (2, 1)), False),
        (windows((5, 2), (1, 1)), True),
        (windows((2, 4), (0, 1)), True),
        (windows((1, 4), (0, 1)), False),
        (windows((2, 2, 2), (1, 2, 4)), False),
        (windows((2, 2, 2), (1, 2, 3)), True),
    ],
)
def test_whether_two_indices_are_one_element(view, overlaps):
    """Such a view is compared by address also with itself."""
    found = addresses(view)
    assert overlaps == (len(set(found)) < len(found))
    given = argument("v", view)
    assert overlaps_itself(given) == overlaps
    assert (places([given])[0].by_address is not None) == overlaps
    assert (places([replace(given, owned=False)])[0].by_address is not None) == overlaps


@pytest.mark.parametrize("view", [*VIEWS, windows((1, 4), (9, 1)), MEMORY[::-2], BYTES[:2]])
def test_bytes_that_a_view_reaches(view):
    given = argument("v", view)
    low, high = extent_of(given)
    found = addresses(view)
    if not found:
        assert low == high == 0
    else:
        assert (given.offset + low, given.offset + high) == (min(found), max(found) + view.itemsize)
