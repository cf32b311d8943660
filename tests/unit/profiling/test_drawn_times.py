"""The time axis of a profile's picture."""

from __future__ import annotations

import numpy as np

from fusionq.profiling.drawn_times import DrawnTimes
from fusionq.profiling.timeline import Launch


def launch(start: int, end: int) -> Launch:
    return Launch("k", ("0: k",), 0, 0, "", start, start, end, 1)


def test_long_times_without_launches_are_short() -> None:
    drawn = DrawnTimes([launch(5_000, 5_100), launch(1_000, 1_100), launch(1_120, 1_170)])
    assert drawn.gaps == [(170, 177, 3_830)], "those that are short stay as they are"
    places = drawn.place(np.array([1_000, 1_050, 1_110, 1_170, 5_000, 5_100]))
    assert places.tolist() == [0, 50, 110, 170, 177, 277]
    assert drawn.length == 277


def test_launches_that_overlap_have_no_gap_between_them() -> None:
    drawn = DrawnTimes([launch(0, 100), launch(10, 20), launch(90, 200)])
    assert (drawn.gaps, drawn.length) == ([], 200)


def test_times_are_exact_however_late_the_clock() -> None:
    late = 10**18
    drawn = DrawnTimes([launch(late, late + 3), launch(late + 4, late + 7)])
    assert drawn.place(np.array([late + 1, late + 4, late + 7])).tolist() == [1, 4, 7]
