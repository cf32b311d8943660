"""Submissions that share memory alike have one number."""

from __future__ import annotations

from fusionq.analysis.aliasing import ViewPlace
from fusionq.analysis.shared_memory import SharedMemory


def asked(shared, *memory):
    return shared.of(tuple([shared.own(m) for m in memory]), memory)


def test_groups_and_views_have_the_order_of_their_appearance():
    shared = SharedMemory()
    one = asked(shared, ((0, 4, 0, None), (1, 9, 0, None)), ((0, 9, 0, None),))
    assert asked(shared, ((0, 2, 1, None), (1, 0, 0, None)), ((0, 0, 0, None),)) == one
    assert asked(shared, ((0, 4, 0, None), (1, 9, 0, None)), ((0, 4, 0, None),)) != one
    assert asked(shared, ((0, 4, 0, None), (1, 9, 0, None)), ((0, 9, 1, None),)) != one
    assert shared[one] == (((0, 0, 0, None), (1, 1, 1, None)), ((0, 1, 1, None),))


def test_addresses_are_from_the_first_that_appears():
    shared = SharedMemory()
    at = [((0, 3, view, ViewPlace(offset, (8,), 8)),) for view, offset in ((0, 40), (1, 48))]
    moved = [((0, 5, view, ViewPlace(offset, (8,), 8)),) for view, offset in ((0, 90), (1, 98))]
    farther = ((0, 5, 1, ViewPlace(106, (8,), 8)),)
    assert asked(shared, *at) == asked(shared, *moved)
    assert asked(shared, *at) != asked(shared, moved[0], farther)
    assert asked(shared, *at) != asked(shared, at[1], at[0])


def test_other_arguments_do_not_count():
    shared = SharedMemory()
    both = ((0, 1, 0, None), (1, 2, 0, None))
    other = ((0, 3, 0, None), (1, 2, 0, None))
    assert asked(shared, both, both) != asked(shared, both, other)
    assert shared.of_arguments([both, both], [[1], [1]]) == shared.of_arguments(
        [both, other], [[1], [1]]
    )
    alone = shared.of_arguments([both], [[0, 1]])
    assert alone == asked(shared, both)
