"""Which elements a later submission writes anew: what is said to be, all of it is."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from fusionq.analysis import isl_operations
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.overwritten import is_overwritten, writes_within
from fusionq.analysis.questions import Questions
from tests.unit.lists import completed, submissions

N = 12


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def inner(item: fq.Item, a, out):
    i = item.get_id(0)
    if i > 0 and i < item.get_range(0) - 1:
        out[i] = a[i - 1] + a[i + 1]


@fq.kernel
def both(item: fq.Item, a, first, second):
    i = item.get_id(0)
    first[i] = a[i]
    if i < 3:
        second[i] = a[i]


@fq.kernel
def gather(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


@fq.kernel
def scatter(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[index[i]] = a[i]


@fq.kernel
def some_scatter(item: fq.Item, index, a, out):
    i = item.get_id(0)
    if i < item.get_range(0) - 12:
        out[index[i]] = a[i]


def vectors(count, n=N):
    return [np.zeros(n, np.float32) for _ in range(count)]


INDEX = np.zeros(N, np.int64)


def overwritten(first, second):
    """The accesses of the first submission that are, as (argument, kind)."""
    analysis = analyse(submissions(first, second))
    accesses = analysis.accesses[0].accesses
    return {
        (analysis.argument_index(0, access.array), access.kind)
        for position, access in enumerate(accesses)
        if is_overwritten(analysis, position)
    }


def within(first, second):
    return set(writes_within(analyse(submissions(first, second))))


# ------------------------------------------------------------------------ single accesses
def test_what_is_written_whole_is_overwritten():
    a, b, c, d = vectors(4)
    assert overwritten((copy, N, a, b), (copy, N, c, b)) == {(1, "write")}
    assert overwritten((copy, N, a, b), (copy, N, c, a)) == {(0, "read")}
    assert overwritten((copy, N, a, b), (copy, N, b, c)) == set()
    assert overwritten((copy, N, a, b), (copy, N, c, d)) == set()


def test_what_is_written_in_part_is_not():
    a, b, c, _ = vectors(4)
    assert overwritten((copy, N, a, b), (inner, N, c, b)) == set()
    assert overwritten((inner, N, a, b), (copy, N, c, b)) == {(1, "write")}
    assert overwritten((inner, N, a, b), (inner, N, c, b)) == {(1, "write")}
    assert overwritten((copy, N, a, b), (copy, N - 1, c, b)) == set()


def test_other_memory_of_the_second_does_not_count():
    a, b, c, d = vectors(4)
    assert overwritten((copy, N, a, b), (both, N, c, d, b)) == set()
    assert overwritten((copy, N, a, b), (both, N, c, b, d)) == {(1, "write")}


def test_an_index_that_is_not_known_may_be_any():
    a, b, c, _ = vectors(4)
    assert overwritten((gather, N, INDEX, a, b), (copy, N, c, a)) == {(1, "read")}
    assert overwritten((gather, N, INDEX, a, b), (inner, N, c, a)) == set()
    assert overwritten((scatter, N, INDEX, a, b), (copy, N, c, b)) == {(2, "write")}
    # All work-items of a scatter are ordered with all others, if there is one for certain.
    assert (2, "write") in overwritten((scatter, N, INDEX, a, b), (scatter, N, INDEX, c, b))
    assert overwritten((copy, N, a, b), (some_scatter, N, INDEX, c, b)) == set()


def test_views_are_compared_by_address():
    a, c = vectors(2)
    base = np.zeros(N + 8, np.float32)
    view, shifted, turned = base[2 : 2 + N], base[6 : 6 + N], base[2 : 2 + N][::-1]
    assert overwritten((copy, N, a, view), (both, N, c, view, shifted)) == {(1, "write")}
    assert overwritten((copy, N, a, view), (both, N, c, shifted, view)) == set()
    assert overwritten((copy, N, a, turned), (both, N, c, turned, shifted)) == {(1, "write")}
    assert overwritten((both, N, a, view, shifted), (copy, N, c, shifted)) == {(2, "write")}
    # Three elements of one view and all of the other are what is between them, too.
    assert overwritten((copy, N, a, view), (both, N, c, base[5 : 5 + N], view)) == {(1, "write")}


def test_an_index_that_is_not_known_stays_in_its_view():
    a, b = vectors(2)
    base = np.zeros(N + 8, np.float32)
    view, shifted = base[2 : 2 + N], base[6 : 6 + N]
    assert overwritten((gather, N, INDEX, view, b), (both, N, a, view, shifted)) == {(1, "read")}
    assert overwritten((gather, N, INDEX, view, b), (both, N, a, shifted, view)) == set()
    assert overwritten((scatter, N, INDEX, view, shifted), (copy, N, a, shifted)) == {(2, "write")}
    assert overwritten((scatter, N, INDEX, view, shifted), (copy, N, a, view)) == {(1, "read")}


def test_what_takes_too_long_to_decide_is_not_overwritten(monkeypatch):
    monkeypatch.setattr(isl_operations, "OPERATIONS", 1)
    a, b, c = vectors(3)
    assert overwritten((copy, N, a, b), (copy, N, c, b)) == set()


# ------------------------------------------------------------------------- whole arguments
def test_memory_that_is_written_wherever_it_was():
    a, b, c, d = vectors(4)
    assert within((copy, N, a, b), (copy, N, c, b)) == {1}
    assert within((inner, N, a, b), (copy, N, c, b)) == {1}
    assert within((copy, N, a, b), (inner, N, c, b)) == set()
    assert within((copy, N, a, b), (copy, N, c, d)) == set()


def test_memory_that_was_only_read_is_none_of_it():
    a, b, c, _ = vectors(4)
    assert within((copy, N, a, b), (copy, N, c, a)) == set()
    assert within((copy, N, b, b), (copy, N, c, b)) == {0, 1}


def test_each_memory_by_itself():
    a, b, c, d = vectors(4)
    assert within((both, N, a, b, c), (copy, N, d, b)) == {1}
    assert within((both, N, a, b, c), (copy, N, d, c)) == {2}
    assert within((both, N, a, b, c), (both, N, d, b, c)) == {1, 2}
    assert within((both, N, a, b, c), (both, N, d, c, b)) == {2}


def test_what_is_written_in_part_still_matters_beside_what_is_written_whole():
    """The second writes all that the first has written of one memory, and three elements of the
    other: who reads that depends on both."""

    @fq.kernel
    def two(item: fq.Item, a, first, second):
        i = item.get_id(0)
        first[i] = a[i]
        second[i] = a[i]

    a, b, c, d = vectors(4)
    e, f = vectors(2)
    listed = submissions((two, N, a, b, c), (both, N, d, b, c), (copy, N, c, e), (copy, N, b, f))
    found = completed(direct_dependences(Questions(listed)))
    assert [{p.producer for p in of_one} for of_one in found] == [set(), {0}, {0, 1}, {1}]
