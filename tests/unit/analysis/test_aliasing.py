"""Where array arguments lie: what may share memory, and by what their elements are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusionq.analysis.aliasing import (
    Place,
    extent_of,
    has_unit_stride,
    is_contiguous,
    overlaps_itself,
    places,
    places_by_memory,
)
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
        alone = len({p.view for p in found if p.group == place.group}) == 1
        assert (place.by_address is None) == (view.size == 0 or alone)
        units = {n: {(place.group, f"element {n}")} for n in range(view.size)}
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


RECORDS = np.zeros(
    (3, 4), np.dtype([("t", "i1"), ("x", "f4"), ("v", "f8", (2,)), ("y", "i2")], align=True)
)
UNION = np.zeros(9, {"names": ["f", "i"], "formats": ["f4", "i4"], "offsets": [0, 0]})
GRID = np.zeros((6, 8), np.float32)


@pytest.mark.parametrize(
    ("views", "groups"),
    [
        ([RECORDS[n] for n in RECORDS.dtype.names], [0, 1, 2, 3]),
        ([RECORDS["x"], RECORDS["v"][:, 1:], RECORDS["x"][1:, ::-2], RECORDS["v"][..., 1]],
         [0, 1, 0, 1]),
        ([RECORDS["v"][..., 0], RECORDS["v"][::-1, :, 1], RECORDS["y"].T], [0, 1, 2]),
        ([PACKED["x"], PACKED["y"][::-1], PACKED["x"][3:]], [0, 1, 0]),
        ([UNION["f"], UNION["i"][::-2]], [0, 0]),
        ([MEMORY[::2], MEMORY[1::2], MEMORY[6:60:4], MEMORY[3::6]], [0, 1, 0, 1]),
        ([MEMORY[::2], MEMORY[1::3]], [0, 0]),
        ([GRID[:, 2], GRID[:, 3:5], GRID[:, 4:], GRID[:, :2]], [0, 1, 1, 2]),
        ([GRID[::2], GRID[1::2], GRID[0, 3:], GRID[5, :2]], [0, 1, 0, 1]),
        ([GRID[:, ::2], GRID[::2, 1::2], GRID[1::2, 1::2]], [0, 1, 2]),
        ([GRID[:, 7], GRID.reshape(-1)[7:9]], [0, 0]),
        ([GRID[:, 7], GRID.reshape(-1)[8:11]], [0, 1]),
    ],
)  # fmt: skip
def test_views_between_each_others_elements_share_no_memory(views, groups):
    assert [p.group for p in places([argument("v", view) for view in views])] == groups


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_views_of_different_groups_have_no_byte_in_common(seed):
    rng = np.random.default_rng(seed)
    memory = np.zeros(256, np.uint8)
    views = []
    for _ in range(rng.integers(2, 6)):
        dtype = np.dtype(rng.choice(["i1", "i2", "f4", "f8"]))
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
        steps = rng.choice([0, 1, 2, 3, 4, 6, 8, 12, 24], len(shape))
        strides = [int(s) for s in steps * rng.choice([-1, 1], len(shape))]
        reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low, high = -sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        at = low + int(rng.integers(0, 256 - low - high - dtype.itemsize))
        views.append(np.ndarray(shape, dtype, memory, at, strides))
    found = places([argument("v", view) for view in views])
    touched = []
    for view in views:
        bytes_of = set()
        for at in addresses(view):
            bytes_of |= set(range(at, at + view.itemsize))
        touched.append(bytes_of)
    for (p, a), (q, b) in product(zip(found, touched, strict=True), repeat=2):
        assert p.group == q.group or a.isdisjoint(b)


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


# -------------------------------------------------------------------------------- layouts
@pytest.mark.parametrize(
    ("view", "contiguous", "unit"),
    [
        (MEMORY, True, True),
        (MEMORY[::2], False, False),
        (GRID, True, True),
        (GRID[:, 2:5], False, True),
        (GRID.T, False, False),
        (GRID[2:3, :], True, True),
    ],
)
def test_layouts(view, contiguous, unit):
    found = argument("v", view)
    assert (is_contiguous(found), has_unit_stride(found)) == (contiguous, unit)
    # At addresses that are no multiples of an element's size, neighbours are no vector.
    packed = replace(found, alignment=2)
    assert not is_contiguous(packed) and not has_unit_stride(packed)


@dataclass(frozen=True)
class Arrays:
    """What ``places_by_memory`` sees of a submission."""

    views: tuple[np.ndarray, ...]

    @property
    def places(self):
        return [(v.shape, v.strides, None, addresses(v)[0], None) for v in self.views]

    @property
    def form(self):
        made = [argument("v", view) for view in self.views]
        dtypes = [a.dtype for a in made]
        return SimpleNamespace(dtypes=dtypes, contiguous=all(map(is_contiguous, made)))


def test_places_by_memory_are_those_of_equal_views():
    whole, other = MEMORY[:32], MEMORY[32:]
    same = (Place(0, 0, None), Place(1, 0, None), Place(0, 0, None))
    lists = [Arrays((whole, other)), Arrays((whole,))]
    assert places_by_memory(lists, (0, 1, 0)) == same
    # Another start, shape, type or stride is another view of the memory.
    for view in (MEMORY[1:33], MEMORY[:31], whole.view(np.int32), MEMORY[:64:2]):
        assert places_by_memory([Arrays((whole,)), Arrays((view,))], (0, 0)) is None
        assert places_by_memory([Arrays((whole,)), Arrays((view,))], (0, 1)) is not None


def test_no_place_by_memory_where_a_view_has_an_element_twice():
    twice, apart = windows((4, 4), (1, 1)), MEMORY[:16:2]
    assert places_by_memory([Arrays((twice,))], (0,)) is None
    assert places_by_memory([Arrays((apart, MEMORY))], (0, 1)) is not None
