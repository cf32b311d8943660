"""For which sizes and integer scalars a plan holds."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis import condition
from fusionq.analysis.isl_operations import TooManyOperations
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.symbols import LEAST_BOUND
from fusionq.analysis.validity import (
    Condition,
    Source,
    Validity,
    for_this_order,
    largest_extent,
    size_order,
    validity_of,
)
from tests.unit.lists import submissions


@fq.kernel
def shifted(item: fq.Item, a, by, out):
    i = item.get_id(0)
    if i + by < a.shape[0]:
        out[i] = a[i + by]


@fq.kernel
def scaled(item: fq.Item, a, by, out):
    i = item.get_id(0)
    out[i] = a[i] * by


def listed(kernel=shifted, n=10, by=3, length=None):
    array = np.zeros(length or n)
    return submissions((kernel, n, array, by, np.zeros(n)))


def analysed(made):
    """The analysis of submissions whose kernels have been read."""
    analysis = analyse(made)
    assert analysis.accesses
    return analysis


RANGE, LENGTH, BY = Source(0, None, 0), Source(0, 0, 0), Source(0, 1, None)
HOLDS = Validity(
    sources=(("n0", (RANGE, LENGTH)), ("s0", (BY,))), pinned=(), limits=(), conditions=()
)


def test_where_values_are_found():
    made = listed(n=10, by=3, length=12)
    assert [source.value(made) for source in (RANGE, LENGTH, BY)] == [10, 12, 3]
    assert HOLDS.scalars == {1}
    assert HOLDS.depends_on_scalars
    only_sizes = replace(HOLDS, sources=HOLDS.sources[:1])
    assert not only_sizes.depends_on_scalars and only_sizes.scalars == frozenset()
    assert replace(only_sizes, constants=((BY, 3),)).depends_on_scalars


def test_sources_of_one_symbol_are_equal():
    assert HOLDS.holds(listed())
    assert not HOLDS.holds(listed(length=11))
    third = replace(HOLDS, sources=(("n0", (LENGTH, LENGTH, RANGE)),))
    assert third.holds(listed()) and not third.holds(listed(length=11))


def test_pinned_symbols_keep_their_value():
    pinned = replace(HOLDS, pinned=(("n0", 10), ("s0", 3)))
    assert pinned.holds(listed())
    assert not pinned.holds(listed(by=4))
    assert not pinned.holds(listed(n=11))


def test_constants_keep_their_value():
    built_in = replace(HOLDS, constants=((BY, 3),))
    assert built_in.holds(listed())
    assert not built_in.holds(listed(by=4))


@pytest.mark.parametrize(("by", "wanted"), [(99, True), (100, True), (101, False)])
def test_limits_are_of_magnitudes(by, wanted):
    limited = replace(HOLDS, limits=(("n0", 50), ("s0", 100)))
    for value in (by, -by):
        assert limited.holds(listed(by=value)) is wanted


def test_conditions_are_about_the_symbols():
    """``//`` rounds down, of negative numbers too."""
    half = Condition("k // 2 == -2", ("k",), (("s0",),))
    sizes = Condition("n0 + 3 == 13", ("n0",), (("n0",),))
    halves = replace(HOLDS, conditions=(half, sizes))
    assert [by for by in range(-6, 3) if halves.holds(listed(by=by))] == [-4, -3]
    both = replace(HOLDS, conditions=(Condition("k < 5", ("k",), (("s0",), ("n0",))),))
    assert both.holds(listed(n=4))
    assert not both.holds(listed(n=5)) and not both.holds(listed(n=4, by=7))


# --------------------------------------------------- scalars for which proofs do not hold
PLACE = (0, 1)


def test_a_scalar_for_which_a_proof_does_not_hold():
    pinned = replace(HOLDS, pinned=(("n0", 10), ("s0", 3)))
    assert pinned.missed_by(listed(by=4)) == {PLACE}
    assert pinned.missed_by(listed()) == frozenset()
    half = replace(HOLDS, conditions=(Condition("k < 5", ("k",), (("s0",),)),))
    assert half.missed_by(listed(by=5)) == {PLACE}
    assert half.missed_by(listed(by=4)) == frozenset()
    of_both = replace(HOLDS, conditions=(Condition("k < n", ("k", "n"), (("s0", "n0"),)),))
    assert of_both.missed_by(listed(by=12)) == {PLACE}


def test_no_scalar_is_missed_where_a_size_is_a_reason_too():
    pinned = replace(HOLDS, pinned=(("n0", 10), ("s0", 3)))
    assert pinned.missed_by(listed(n=11)) == frozenset()
    assert pinned.missed_by(listed(n=11, by=4)) == frozenset()
    assert HOLDS.missed_by(listed(length=11)) == frozenset()


@pytest.mark.parametrize("by", [101, -101])
def test_no_scalar_is_missed_beyond_the_magnitudes(by):
    limited = replace(HOLDS, pinned=(("s0", 3),), limits=(("s0", 100),))
    assert limited.missed_by(listed(by=by)) == frozenset()
    assert limited.missed_by(listed(by=100)) == {PLACE}


def test_scalars_that_were_equal_and_are_no_longer():
    def both(first, second):
        array = np.zeros(10)
        return submissions((shifted, 10, array, first, array), (shifted, 10, array, second, array))

    two = Validity((("s0", (BY, Source(1, 1, None))),), pinned=(), limits=())
    assert two.missed_by(both(3, 3)) == frozenset()
    assert two.missed_by(both(3, 4)) == {PLACE, (1, 1)}
    pinned = replace(two, pinned=(("s0", 3),))
    assert pinned.missed_by(both(4, 4)) == {PLACE, (1, 1)}


# --------------------------------------------------------------------------- of analyses
def test_without_questions_all_sizes_of_the_structure_are_served():
    validity = validity_of(analysed(listed()))
    assert validity.conditions == validity.constants == ()
    assert validity.holds(listed(n=1000, by=-7))
    assert not validity.holds(listed(by=LEAST_BOUND + 1))


def demand_between(analysis, symbol, low, beyond):
    names = ", ".join(analysis.symbols.names)
    values = isl.Set(f"[{names}] -> {{ : {low} <= {symbol} < {beyond} }}")
    analysis.proofs.add([(values, True)])


def test_what_holds_for_todays_values_pins_them():
    analysis = analysed(listed(scaled))
    analysis.proofs.demand_today({analysis.symbols.scalar(3)})
    validity = validity_of(analysis)
    assert validity.scalars == {1} and not validity.conditions
    assert validity.holds(listed(scaled, 20, 3)) and not validity.holds(listed(scaled, 10, 4))


def test_what_was_asked_is_the_condition():
    analysis = analysed(listed(scaled))
    (n,) = (analysis.symbols.size(10),)
    demand_between(analysis, n, 5, 20)
    analysis.pinned = {analysis.symbols.scalar(3)}
    validity = validity_of(analysis, ((BY, 3),))
    assert validity.constants == ((BY, 3),)
    assert [size for size in (4, 5, 19, 20) if validity.holds(listed(scaled, size))] == [5, 19]
    assert not validity.holds(listed(scaled, 10, 4))
    # Scalars that nothing rests on are no part of it.
    assert not validity_of(analysed(listed(scaled))).scalars


def test_a_condition_that_is_too_hard_to_be_a_text_pins_what_it_is_about(monkeypatch):
    def too_hard(values):
        raise TooManyOperations

    monkeypatch.setattr(condition, "python_condition", too_hard)
    analysis = analysed(listed(scaled))
    n = analysis.symbols.size(10)
    demand_between(analysis, n, 5, 20)
    validity = validity_of(analysis)
    assert validity.pinned == ((n, 10),) and not validity.conditions


@pytest.mark.parametrize("value", [(1 << 40) + 5, -(1 << 40) - 5])
def test_a_check_holds_for_scalars_that_are_as_large(value):
    """Smaller integers leave less open: what could not be proved is to be asked again."""
    checked = validity_of(analysed(listed(scaled, by=value)), check=True)
    assert checked.scalars == {1}
    for large in (value, 1 << 40, -(1 << 40), 3 << 40):
        assert checked.holds(listed(scaled, by=large))
    for small in (0, (1 << 40) - 1, 1 - (1 << 40), 1 << 39):
        assert not checked.holds(listed(scaled, by=small))
    plain = validity_of(analysed(listed(scaled, by=value)))
    assert plain.holds(listed(scaled, by=1)) and not plain.scalars


# -------------------------------------------------------------------------------- orders
@pytest.mark.parametrize("n", [1, 2, 7, 8, 63, 64, 4095, 4096, 10**6])
def test_size_order(n):
    low, beyond = size_order(n)
    assert low <= n < beyond == 8 * low
    low, beyond = size_order(n, 1)
    assert low <= n < beyond == 2 * low


def test_no_size_is_an_order_of_its_own():
    assert size_order(0) == (0, 1)


def test_a_plan_for_sizes_of_one_order():
    flat, plane = np.zeros(300), np.zeros((20, 300))

    @fq.kernel
    def copy_2d(item: fq.Item, a, out):
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = a[i, j]

    def made(n, m):
        return submissions(
            (scaled, 7, flat[:7], 2, np.zeros(7)), (copy_2d, (n, m), plane[:n, :m], np.ones((n, m)))
        )

    assert largest_extent(made(20, 300)) == 300
    assert largest_extent(made(20, 10)) == 20
    validity = validity_of(analysed(made(20, 300)))
    assert validity.holds(made(20, 30))
    ordered = for_this_order(validity, made(20, 300))
    assert [m for m in (30, 63, 64, 299) if ordered.holds(made(20, m))] == [64, 299]
    never = Condition("False", (), ((),))
    kept = for_this_order(replace(validity, conditions=(never,)), made(20, 300))
    assert not kept.holds(made(20, 300))
