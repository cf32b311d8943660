"""What a work-item or a work-group owns of an array, and each reason why it owns nothing."""

from __future__ import annotations

from typing import Any

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import isl_operations
from fusionq.analysis.footprint import Footprint, bounding_box, item_elements
from fusionq.analysis.isl_operations import TOO_HARD
from fusionq.analysis.item_space import ItemSpace, common_space
from fusionq.analysis.list_analysis import ListAnalysis, analyse
from fusionq.analysis.local_footprint import local_footprint
from fusionq.analysis.private_footprint import private_footprint
from fusionq.language.ranges import NdRange
from tests.unit.lists import root, submissions

N = 64
ENOUGH = 1 << 20
"""Bytes of private memory that no test here needs."""
UNCOVERED = "is not certain to be preceded by a write of the same element in the same"


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def copy_2d(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j]


@fq.kernel
def mirror_eight(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i // 8 * 8 + 7 - i % 8] = a[i]


@fq.kernel
def pairs(item: fq.Item, a, out):
    i = item.get_id(0)
    out[2 * i] = a[i]
    out[2 * i + 1] = a[i]


@fq.kernel
def first_of_pairs(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[2 * i]


@fq.kernel
def positive(item: fq.Item, a, out):
    i = item.get_id(0)
    if a[i] > 0:
        out[i] = a[i]


def vector(n: int = N, dtype: type = np.float32) -> np.ndarray[Any, Any]:
    return np.zeros(n, dtype)


def uses_of(analysis: ListAnalysis, array: np.ndarray[Any, Any]) -> list[Any]:
    """Every access of the list to the memory of ``array``."""
    return [
        (s, access)
        for s, accesses in enumerate(analysis.accesses)
        for access in accesses.accesses
        if analysis.submissions[s].arguments[analysis.argument_index(s, access.array)].storage
        == id(root(array))
    ]


def private(array: Any, *calls: Any, private_bytes: int = ENOUGH) -> tuple[Any, ListAnalysis]:
    """The footprint of ``array`` for each work-item of ``calls`` in one kernel."""
    analysis = analyse(submissions(*calls))
    space = common_space(analysis.submissions)
    assert isinstance(space, ItemSpace)
    uses = uses_of(analysis, array)
    return private_footprint(analysis, uses, space.mode, private_bytes), analysis


def local(array: Any, group: tuple[int, ...], *calls: Any) -> Footprint | str:
    """The footprint of ``array`` for each work-group of ``group``."""
    analysis = analyse(submissions(*calls))
    space = common_space(analysis.submissions)
    assert isinstance(space, ItemSpace)
    return local_footprint(analysis, uses_of(analysis, array), space.mode, group)


def begins_at(footprint: Footprint | str, wanted: str) -> bool:
    """Whether the box begins where the map ``wanted`` says, for every owner."""
    assert isinstance(footprint, Footprint)
    base: isl.Map | None = None
    for aff in footprint.base:
        one = isl.Map.from_aff(aff)
        base = one if base is None else base.flat_range_product(one)
    assert base is not None
    return bool(isl.Map(wanted).is_equal(base))


# ------------------------------------------------------------------------- work-items
def test_one_element_a_work_item():
    t = vector()
    found, _ = private(t, (copy, N, vector(), t), (copy, N, t, vector()))
    assert found == Footprint((1,), ())
    assert found.is_scalar


def test_what_is_written_and_never_read_is_part_of_the_box():
    t = vector(2 * N)
    found, _ = private(t, (pairs, N, vector(), t), (first_of_pairs, N, t, vector()))
    assert found.extents == (2,)
    assert not found.is_scalar
    assert begins_at(found, "{ [i0] -> [2i0] }")


def test_two_dimensions():
    @fq.kernel
    def quads(item: fq.Item, a, out):
        i, j = item.get_id(0), item.get_id(1)
        for k in range(2):
            for m in range(3):
                out[2 * i + k, 3 * j + m] = a[i, j]

    @fq.kernel
    def corner(item: fq.Item, a, out):
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = a[2 * i + 1, 3 * j + 2]

    t, a = np.zeros((8, 15)), np.zeros((4, 5))
    found, _ = private(t, (quads, (4, 5), a, t), (corner, (4, 5), t, np.zeros((4, 5))))
    assert found.extents == (2, 3)
    assert begins_at(found, "{ [i0, i1] -> [2i0, 3i1] }")
    t = np.zeros((4, 5))
    found, _ = private(t, (copy_2d, (4, 5), a, t), (copy_2d, (4, 5), t, np.zeros((4, 5))))
    assert found == Footprint((1, 1), ())


def test_work_items_that_meet_by_linear_ids():
    """What holds then holds for rows of this length only."""

    @fq.kernel
    def by_rows_of_six(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[i // 6, i % 6]

    t = np.zeros((4, 6))
    found, analysis = private(
        t, (copy_2d, (4, 6), np.zeros((4, 6)), t), (by_rows_of_six, 24, t, vector(24))
    )
    assert found == Footprint((1, 1), ())
    assert analysis.symbols.size(6) in analysis.pinned
    first, *_, last = uses_of(analysis, t)
    analysis.pinned = {"something else"}
    for use in (first, last):
        item_elements(analysis, use, "linear")
    assert analysis.pinned == {"something else", analysis.symbols.size(6)}


def test_an_extent_that_is_a_size_holds_for_this_size_only():
    @fq.kernel
    def blocks(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(a.shape[1]):
            for m in range(a.shape[2]):
                out[i, k, m] = a[i, k, m]

    @fq.kernel
    def three(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(3):
            out[i, k] = a[i, k]

    t = np.zeros((N, 5, 7))
    found, analysis = private(
        t, (blocks, N, np.zeros((N, 5, 7)), t), (blocks, N, t, np.zeros((N, 5, 7)))
    )
    assert found.extents == (1, 5, 7)
    assert analysis.pinned >= {analysis.symbols.size(5), analysis.symbols.size(7)}
    analysis.pinned = {"something else"}
    sizes = ", ".join(analysis.symbols.names)
    bounding_box(analysis, isl.Map(f"[{sizes}] -> {{ [i] -> [e] : 0 <= e < n1 }}"))
    assert analysis.pinned >= {"something else", "n1"}
    t = np.zeros((N, 5))
    found, analysis = private(t, (three, N, np.zeros((N, 5)), t), (three, N, t, np.zeros((N, 5))))
    assert found.extents == (1, 3)
    assert analysis.pinned == set()


def test_moments_of_different_depths():
    """A write inside loops comes before what stands behind them, and not before itself."""

    @fq.kernel
    def repeatedly(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(3):
            for _ in range(2):
                out[i] = a[i] + k

    @fq.kernel
    def read_first(item: fq.Item, a, t, out):
        i = item.get_id(0)
        for _ in range(3):
            out[i] = t[i]
            t[i] = a[i]

    @fq.kernel
    def read_later(item: fq.Item, a, t, out):
        i = item.get_id(0)
        for k in range(3):
            if k > 0:
                out[i] = t[i]
            t[i] = a[i]

    t = vector()
    assert private(t, (repeatedly, N, vector(), t), (copy, N, t, vector()))[0] == Footprint(
        (1,), ()
    )
    assert private(t, (read_later, N, vector(), t, vector()))[0] == Footprint((1,), ())
    refused, _ = private(t, (read_first, N, vector(), t, vector()))
    assert UNCOVERED in refused and refused.endswith("element in the same work-item")


@pytest.mark.parametrize(
    ("bytes_", "wanted"),
    [
        (16, (2, 2)),
        (15, "a work-item's 2 x 2 elements take 16 bytes, more than the 15 that private memory is "
             "used for"),
    ],
)  # fmt: skip
def test_private_memory_is_bounded(bytes_, wanted):
    @fq.kernel
    def square(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(2):
            for m in range(2):
                out[2 * i + k, m] = a[2 * i + k, m]

    def array():
        return np.zeros((2 * N, 2), np.float32)

    t = array()
    found, _ = private(t, (square, N, array(), t), (square, N, t, array()), private_bytes=bytes_)
    assert (found.extents if isinstance(found, Footprint) else found) == wanted


def test_reasons_against_private_memory():
    @fq.kernel
    def count(item: fq.Item, a, out):
        i = item.get_id(0)
        fq.AtomicRef(out, i).fetch_add(a[i])

    t, a, b = vector(dtype=np.int32), vector(dtype=np.int32), vector(dtype=np.int32)
    shared = "an element is touched by more than one work-item"
    assert private(t, (mirror_eight, N, a, t), (copy, N, t, b))[0] == shared
    assert private(t, (copy, N, t, a))[0] == "no kernel of the list writes it"
    atomic, _ = private(t, (count, N, a, t))
    assert atomic.startswith("the atomic operation at ")
    assert atomic.endswith(" shares it between work-items")
    for calls in ([(copy, N, t, a)], [(positive, N, a, t)], [(copy, N - 1, a, t)]):
        uncovered, _ = private(t, *calls, (copy, N, t, b), (copy, N, a, t))
        assert UNCOVERED in uncovered


# ------------------------------------------------------------------------ work-groups
def test_the_elements_of_a_work_group():
    t = vector()
    calls = (mirror_eight, N, vector(), t), (copy, N, t, vector())
    found = local(t, (8,), *calls)
    assert isinstance(found, Footprint) and found.extents == (8,)
    assert begins_at(found, "{ [i0] -> [8i0] }")
    assert local(t, (12,), *calls) == "an element is touched by more than one work-group"
    both = local(t, (16,), *calls)
    assert isinstance(both, Footprint) and both.extents == (16,)


def test_work_groups_of_two_dimensions():
    @fq.kernel
    def turned_in_tiles(item: fq.Item, a, out):
        i, j = item.get_id(0), item.get_id(1)
        out[i // 2 * 2 + 1 - i % 2, j // 3 * 3 + 2 - j % 3] = a[i, j]

    t, a, b = np.zeros((8, 9)), np.zeros((8, 9)), np.zeros((8, 9))
    calls = (turned_in_tiles, (8, 9), a, t), (copy_2d, (8, 9), t, b)
    found = local(t, (2, 3), *calls)
    assert isinstance(found, Footprint) and found.extents == (2, 3)
    assert begins_at(found, "{ [i0, i1] -> [2i0, 3i1] }")
    assert local(t, (3, 2), *calls) == "an element is touched by more than one work-group"


def test_only_an_earlier_submission_writes_for_others_of_the_group():
    """Behind a write of the same submission there may be no barrier."""

    @fq.kernel
    def exchanged(item: fq.Item, a, t, out):
        i = item.get_id(0)
        t[i] = a[i]
        out[i] = t[i // 8 * 8 + 7 - i % 8]

    t, a, b = vector(), vector(), vector()
    uncovered = local(t, (8,), (exchanged, N, a, t, b))
    assert isinstance(uncovered, str) and UNCOVERED in uncovered
    assert uncovered.endswith("element in the same work-group")
    assert isinstance(local(t, (8,), (copy, N, a, t), (exchanged, N, a, t, b)), Footprint)
    # A later submission's write is no help, and neither is one that may not happen.
    assert UNCOVERED in str(local(t, (8,), (exchanged, N, a, t, b), (copy, N, a, t)))
    assert UNCOVERED in str(local(t, (8,), (positive, N, a, t), (exchanged, N, a, t, b)))
    assert UNCOVERED in str(local(t, (8,), (copy, N, t, b), (copy, N, a, t)))


def test_nor_does_a_neighbour_in_two_dimensions_write_in_time():
    @fq.kernel
    def from_above(item: fq.Item, a, t, out):
        i, j = item.get_id(0), item.get_id(1)
        t[i, j] = a[i, j]
        out[i, j] = t[i // 2 * 2 + 1 - i % 2, j]

    t, a, b = np.zeros((8, 9)), np.zeros((8, 9)), np.zeros((8, 9))
    assert UNCOVERED in str(local(t, (2, 3), (from_above, (8, 9), a, t, b)))
    earlier = (copy_2d, (8, 9), a, t)
    assert isinstance(local(t, (2, 3), earlier, (from_above, (8, 9), a, t, b)), Footprint)


def test_reasons_against_local_memory():
    @fq.kernel
    def gather(item: fq.Item, index, a, out):
        i = item.get_id(0)
        out[i] = a[index[i]]

    t, a, b = vector(N + 1), vector(), vector()
    views = "the list uses it through views that differ or overlap themselves"
    assert local(t, (8,), (copy, N, a, t[:N]), (copy, N, t[1:], b)) == views
    t = vector()
    assert local(t, (8,), (copy, N, t, b)) == "no kernel of the list writes it"
    index = vector(dtype=np.int64)
    unknown = str(local(t, (8,), (copy, N, a, t), (gather, N, index, t, b)))
    assert unknown.startswith("the index at ")
    assert unknown.endswith(" is not affine, so its element is unknown")


# ------------------------------------------------------------------------------ boxes
@pytest.mark.parametrize(
    ("elements", "wanted"),
    [
        ("{ [i] -> [e] : 3i - 1 <= e <= 3i + 1 and i >= 1; [0] -> [e] : 0 <= e <= 1 }", 3),
        # The first element of one owner is behind, or in front of, that of the others.
        ("{ [i] -> [e] : 3i <= e <= 3i + 2 and i >= 1; [0] -> [5] }", 6),
        ("{ [i] -> [e] : 3i <= e <= 3i + 2 and 0 <= i <= 8; [9] -> [40] }", 14),
        ("{ [i] -> [e] : 2e >= 5i and 2e <= 5i + 3 }", 2),
        ("{ [i] -> [e] : i <= e <= 2i }", None),
        # Of two first elements one is in front of all, and bounds nothing.
        ("{ [i] -> [e] : 3i <= e <= 3i + 2 and i >= 1; [0] -> [e] : -5 <= e <= 1 }", None),
    ],
)
def test_boxes(elements, wanted):
    analysis = analyse(submissions((copy, N, vector(), vector())))
    box = bounding_box(analysis, isl.Map(elements))
    if wanted is None:
        assert box == "the elements that belong together have no box of bounded size"
        return
    assert isinstance(box, Footprint) and box.extents == (wanted,)
    (first,) = (isl.Map.from_aff(aff) for aff in box.base)
    last = first.apply_range(isl.Map(f"{{ [e] -> [e + {wanted - 1}] }}"))
    owned = isl.Map(elements)
    assert owned.lexmin().is_subset(first.apply_range(isl.Map("{ [e] -> [f] : f >= e }")))
    assert owned.lexmax().is_subset(last.apply_range(isl.Map("{ [e] -> [f] : f <= e }")))


def test_what_is_too_hard_is_refused(monkeypatch):
    t = vector()
    calls = (copy, N, vector(), t), (copy, N, t, vector())
    analysis = analyse(submissions(*calls))
    uses = uses_of(analysis, t)
    monkeypatch.setattr(isl_operations, "OPERATIONS", 1)
    assert private_footprint(analysis, uses, "ids", ENOUGH) == TOO_HARD
    assert local_footprint(analysis, uses, "ids", (8,)) == TOO_HARD


def test_an_nd_range_has_its_own_groups():
    t = vector()
    nd_range = NdRange(N, 8)

    @fq.kernel
    def copy_nd(item: fq.NdItem, a, out):
        i = item.get_global_id(0)
        out[i] = a[i]

    found = local(t, (8,), (copy_nd, nd_range, vector(), t), (copy_nd, nd_range, t, vector()))
    assert isinstance(found, Footprint) and found.extents == (8,)
