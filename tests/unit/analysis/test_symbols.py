"""The unknowns of an analysis, and the sets that say their values."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusionq.analysis.symbols import Symbols

VALUES = st.lists(st.integers(-(2**70), 2**70), max_size=8, unique=True)


def as_text(symbols: Symbols) -> isl.Set:
    equal = [f"{n} = {v}" for n, v in symbols.values.items() if n not in symbols.free]
    return isl.Set(f"[{', '.join(symbols.names)}] -> {{ : {' and '.join(equal) or '1 = 1'} }}")


@given(st.lists(st.integers(0, 2**62), max_size=8, unique=True), VALUES)
def test_the_point_has_todays_values_and_no_others(sizes: list[int], scalars: list[int]) -> None:
    symbols = Symbols()
    for size in sizes:
        symbols.size(size)
    for value in scalars:
        symbols.scalar(value)
    assert symbols.point.is_equal(as_text(symbols))
    assert symbols.point.get_space().is_equal(as_text(symbols).get_space())


@pytest.mark.parametrize("for_all", [False, True])
def test_scalars_that_are_free_have_any_value(for_all: bool) -> None:
    symbols = Symbols(frozenset([5]), for_all)
    for value in (5, 7):
        symbols.scalar(value)
    symbols.size(100)
    assert symbols.point.is_equal(as_text(symbols))
    assert symbols.point.is_equal(isl.Set("[s0, s1, n0] -> { : s1 = 7 and n0 = 100 }")) == for_all
