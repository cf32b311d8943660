"""Which work-item writes an element, how many of them a reader needs, and whether all of a version
is written again: what is said is so for every element."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import footprint, recomputation
from fusionq.analysis.isl_operations import TooManyOperations
from fusionq.analysis.list_analysis import ListAnalysis, analyse
from fusionq.analysis.recomputation import halo_of, reaches, replaces, writer_of
from fusionq.analysis.validity import validity_of
from tests.unit.lists import submissions

N = 12


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i + 2] = a[i]


@fq.kernel
def first_half(item: fq.Item, a, out):
    i = item.get_id(0)
    if i < 6:
        out[i] = a[i]


@fq.kernel
def positive(item: fq.Item, a, out):
    i = item.get_id(0)
    if a[i] > 0:
        out[i] = a[i]


@fq.kernel
def scatter(item: fq.Item, a, out):
    i = item.get_id(0)
    out[int(a[i])] = a[i]


@fq.kernel
def neighbours(item: fq.Item, a, out):
    i = item.get_id(0)
    if i > 0 and i < item.get_range(0) - 1:
        out[i] = a[i - 1] + a[i] + a[i + 1]


@fq.kernel
def reads_only(item: fq.Item, out, other):
    i = item.get_id(0)
    other[i] = out[i]


@fq.kernel
def adds(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] += a[i]


@fq.kernel
def two_elements(item: fq.Item, a, out):
    i = item.get_id(0)
    out[2 * i] = a[i]
    out[2 * i + 1] = a[i]


@fq.kernel
def backwards(item: fq.Item, a, out):
    i = item.get_id(0)
    out[out.shape[0] - 1 - i] = a[i]


@fq.kernel
def from_the_end(item: fq.Item, a, out):
    i = item.get_id(0)
    out[item.get_range(0) - 1 - i] = a[i]


@fq.kernel
def turned(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[j + 1, i] = a[i, j]


@fq.kernel
def by_any(item: fq.Item, out, other):
    i = item.get_id(0)
    other[i] = out[int(other[i])]


def listed(*calls) -> ListAnalysis:
    return analyse(submissions(*calls))


def vectors(count: int, n: int = N) -> list[np.ndarray]:
    return [np.zeros(n, np.float32) for _ in range(count)]


@pytest.mark.parametrize(
    ("first", "items", "second", "again", "whole"),
    [
        (copy, N, copy, N, True),
        (copy, N, copy, N - 1, False),
        (copy, N - 1, copy, N, True),
        (first_half, N, copy, 6, True),
        (first_half, N, copy, 5, False),
        (copy, N, first_half, N, False),
        (copy, 6, first_half, N, True),
        (copy, 3, first_half, 2, False),
        (shifted, N - 2, copy, N, True),
        (copy, N, shifted, N - 2, False),
        (positive, N, copy, N, True),
        (copy, N, positive, N, False),
        (positive, N, positive, N, False),
        (scatter, N, copy, N, False),
        (copy, N, scatter, N, False),
        (adds, N, copy, N, True),
        (neighbours, N, copy, N, True),
        (neighbours, N, neighbours, N, True),
        (backwards, N, copy, N, True),
    ],
)  # fmt: skip
def test_whether_all_is_written_again(first, items, second, again, whole: bool) -> None:
    a, b, out = vectors(3)
    analysis = listed((first, items, a, out), (second, again, b, out))
    assert replaces(analysis, 1, 1) is whole


def test_writes_to_other_memory_replace_nothing() -> None:
    """The memory asked about is that of the arguments, not of others that both write."""

    @fq.kernel
    def both(item: fq.Item, a, one, two):
        i = item.get_id(0)
        one[i] = a[i]
        if i < 4:
            two[i] = a[i]

    a, one, two = vectors(3)
    analysis = listed((both, N, a, one, two), (both, N, a, two, one))
    assert replaces(analysis, 1, 2) is False  # of ``one`` the second writes four elements
    assert replaces(analysis, 2, 1) is True


def test_who_only_reads_replaces_nothing() -> None:
    a, out, other = vectors(3)
    analysis = listed((copy, N, a, out), (reads_only, N, out, other))
    assert replaces(analysis, 1, 0) is False


def test_what_is_too_hard_to_decide_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_hard(*_: object, **__: object) -> bool:
        raise TooManyOperations

    a, b, out = vectors(3)
    analysis = listed((copy, N, a, out), (copy, N, b, out))
    monkeypatch.setattr(recomputation, "_replaces", too_hard)
    assert replaces(analysis, 1, 1) is False


@pytest.mark.parametrize(
    ("producer", "items", "consumer", "range", "halo"),
    [
        (copy, N, copy, N, (1,)),
        (copy, N, neighbours, N, (3,)),
        (backwards, N, neighbours, N, (3,)),
        (copy, N, shifted, N - 2, (1,)),
        (first_half, N, copy, 6, (1,)),
    ],
)
def test_work_items_that_a_reader_needs(producer, items, consumer, range, halo) -> None:
    a, out, other = vectors(3)
    analysis = listed((producer, items, a, out), (consumer, range, out, other))
    assert halo_of(analysis, 1, 0) == halo


@fq.kernel
def inside_a_box(item: fq.Item, a, out, n, m, o):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    if i == 0 or i == n - 1 or j == 0 or j == m - 1 or k == 0 or k == o - 1:
        out[i, j, k] = a[i, j, k]
    else:
        near = a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 2, k] + a[i, j + 1, k]
        out[i, j, k] = near + a[i, j, k - 1] + a[i, j, k + 1]


@fq.kernel
def clamped_to_scalars(item: fq.Item, a, out, n, m):
    i, j = item.get_id(0), item.get_id(1)
    left_right = a[i, max(j - 1, 0)] + a[i, min(j + 1, m - 1)]
    out[i, j] = left_right + a[max(i - 2, 0), j] + a[min(i + 1, n - 1), j]


@pytest.mark.parametrize("pieces", [2, 8])
def test_scalars_that_are_sizes_today(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices that are clamped to a scalar are near where that is the size, or nearly so: the
    answer holds for other sizes of which that is true, and not for others."""
    monkeypatch.setattr(footprint, "MOST_PIECES", pieces)
    shape = 20, 30
    a, out, other = (np.zeros(shape, np.float32) for _ in range(3))
    calls = (clamped_to_scalars, shape, a, out, *shape), (clamped_to_scalars, shape, out, other,
             *shape)  # fmt: skip
    analysis = listed(*calls)
    assert halo_of(analysis, 1, 0) == (4, 3)
    validity = validity_of(analysis)

    def serves(range_: tuple[int, int], scalars: tuple[int, int]) -> bool:
        a, out, other = (np.zeros(range_, np.float32) for _ in range(3))
        first = clamped_to_scalars, range_, a, out, *scalars
        return validity.holds(submissions(first, (*first[:2], out, other, *scalars)))

    assert serves(shape, shape)
    assert serves((40, 50), (40, 50))
    assert not serves((40, 50), (37, 50))
    assert not serves((40, 50), (20, 30))


def test_a_scalar_that_is_no_size_is_todays_or_none() -> None:
    shape = 20, 30
    a, out, other = (np.zeros(shape, np.float32) for _ in range(3))
    first = clamped_to_scalars, shape, a, out, 11, 9
    found = halo_of(listed(first, (*first[:2], out, other, 11, 9)), 1, 0)
    assert isinstance(found, str) and "no bounded distance" in found


def test_a_box_whose_sides_are_left_out_by_or() -> None:
    """Conditions with ``or`` over three dimensions are a union of more basic sets than isl has
    time for: what holds them all has the same distances."""
    boxes = [np.zeros((6, 7, 8), np.float32) for _ in range(3)]
    a, out, other = boxes
    call = (6, 7, 8), a, out, 6, 7, 8
    analysis = listed((inside_a_box, *call), (inside_a_box, (6, 7, 8), out, other, 6, 7, 8))
    assert halo_of(analysis, 1, 0) == (3, 4, 3)
    writer = writer_of(listed((inside_a_box, *call)), 1)
    assert not isinstance(writer, str)
    assert [f"{item.get_coefficient_val(isl.dim_type.in_, d)}" for d, item in
            enumerate(writer.items)] == ["1", "1", "1"]  # fmt: skip
    assert [str(item.get_constant_val()) for item in writer.items] == ["0", "0", "0"]


@pytest.mark.parametrize(
    ("producer", "items", "consumer", "range", "reason", "partly"),
    [
        (first_half, N, copy, N, "what is left out keeps what was there before", (1,)),
        (copy, N - 1, neighbours, N, "what is left out keeps what was there before", (3,)),
        (positive, N, copy, N, "no element is certain to be written", (1,)),
        (scatter, N, copy, N, "is not affine, so its element is unknown", None),
        (copy, N, by_any, N, "is not affine, so its element is unknown", None),
    ],
)
def test_why_a_reader_cannot_compute_it_anew(
    producer, items, consumer, range, reason: str, partly: tuple[int, ...] | None
) -> None:
    a, out, other = vectors(3)
    analysis = listed((producer, items, a, out), (consumer, range, out, other))
    found = halo_of(analysis, 1, 0)
    assert isinstance(found, str) and reason in found
    found = halo_of(analysis, 1, 0, partly=True)
    assert found == partly or (partly is None and reason in found)


def test_a_consumer_that_changes_it() -> None:
    a, b, out = vectors(3)
    analysis = listed((copy, N, a, out), (adds, N, b, out))
    found = halo_of(analysis, 1, 1)
    assert isinstance(found, str) and "changes it" in found


def test_all_of_an_array_is_no_bounded_distance() -> None:
    @fq.kernel
    def total(item: fq.Item, out, other):
        i = item.get_id(0)
        for k in range(out.shape[0]):
            other[i] += out[k]

    a, out, other = vectors(3)
    analysis = listed((copy, N, a, out), (total, N, out, other))
    found = halo_of(analysis, 1, 0)
    assert isinstance(found, str) and "no bounded distance" in found


@pytest.mark.parametrize(
    ("producer", "items", "consumer", "range", "all_of_them"),
    [
        (copy, N, neighbours, N, True),
        (copy, N - 1, neighbours, N, False),
        (copy, N - 1, neighbours, N - 1, True),
        (shifted, N - 2, reads_only, N, False),
        (first_half, N, neighbours, N, True),  # left out under a condition
        (positive, N, reads_only, N, True),
        (scatter, N, reads_only, N, False),
        (two_elements, N // 2, reads_only, N, True),
        (backwards, N, neighbours, N, True),
        (backwards, N - 1, neighbours, N, False),
    ],
)
def test_whether_all_that_is_read_has_a_work_item(
    producer, items, consumer, range, all_of_them: bool
) -> None:
    a, out, other = vectors(3)
    found = listed((producer, items, a, out), (consumer, range, out, other))
    assert reaches(found, written=1, read=0) is all_of_them


def test_what_is_too_hard_to_decide_has_no_work_item(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_hard(*_, **__):
        raise TooManyOperations

    a, out, other = vectors(3)
    found = listed((copy, N, a, out), (reads_only, N, out, other))
    monkeypatch.setattr(recomputation, "answered", too_hard)
    assert reaches(found, written=1, read=0) is False


def test_who_writes_an_element() -> None:
    """As affine functions of the element, in sizes that an array has and scalars."""

    @fq.kernel
    def moved(item: fq.Item, a, out, by):
        i = item.get_id(0)
        out[out.shape[0] - 1 - i + by] = a[i]

    plane, out = np.zeros((4, 5), np.float32), np.zeros((6, 4), np.float32)
    found = writer_of(listed((turned, (4, 5), plane, out)), 1)
    assert not isinstance(found, str)
    assert [str(aff).split("->")[-1] for aff in found.items] == [" [(i1)] }", " [(-1 + i0)] }"]
    assert found.sizes == {"n0": (0, 0), "n1": (0, 1), "n2": (1, 0)}
    a, out = vectors(2)
    found = writer_of(listed((moved, N, a, out, 2)), 1)
    assert not isinstance(found, str)
    assert len(found.items) == 1 and len(found.scalars) == 1
    (symbol, position), size = *found.scalars.items(), next(iter(found.sizes))
    assert position == 2
    assert {symbol, size} <= set(str(found.items[0]).split("[", 1)[1].split("]")[0].split(", "))


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (two_elements, "a work-item writes several elements of it"),
        (scatter, "is not affine, so its element is unknown"),
        (from_the_end, "which work-item writes an element depends on a size that no array has"),
    ],
)
def test_a_writer_that_is_not_known(kernel, reason: str) -> None:
    a, out = np.zeros(N + 1, np.float32), np.zeros(2 * N, np.float32)
    found = writer_of(listed((kernel, N, a, out)), 1)
    assert isinstance(found, str) and reason in found


def test_what_is_too_hard_to_decide_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_hard(*_: object) -> None:
        raise TooManyOperations("too many operations")

    a, out, other = vectors(3)
    monkeypatch.setattr(recomputation, "_items", too_hard)
    monkeypatch.setattr(recomputation, "_halo", too_hard)
    assert writer_of(listed((copy, N, a, out)), 1) == "too many operations"
    analysis = listed((copy, N, a, out), (copy, N, out, other))
    assert halo_of(analysis, 1, 0) == "too many operations"
