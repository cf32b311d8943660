"""The greatest value of an integer function, however isl writes it."""

from __future__ import annotations

import islpy as isl
import pytest

from fusionq.analysis.greatest import greatest


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("{ [o] -> [o] : o < 7 }", 6),
        ("[n] -> { [o] -> [o + n] : o < n <= 3 }", 5),
        ("{ [o] -> [(o - 1)/2] : o mod 2 = 1 and 0 <= o < 20 }", 9),
        ("[n] -> { [o] -> [(o - n)/2] : (o - n) mod 2 = 0 and n <= o < n + 20 }", 9),
    ],
)
def test_bounded(function, value):
    assert greatest(isl.PwAff(function)).eq(isl.Val(value))


def test_without_a_bound_or_a_value():
    assert greatest(isl.PwAff("[n] -> { [o] -> [o] : o < n }")).is_infty()
    assert greatest(isl.PwAff("{ [o] -> [o] : 1 = 0 }")).is_nan()
