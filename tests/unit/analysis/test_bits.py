"""Bits of ids as quasi-affine values: exact, of negative numbers too, or unknown."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.bits import and_constant, floor_of_power
from fusionq.analysis.list_analysis import analyse
from fusionq.base.errors import ArgumentError
from fusionq.planning.submission_check import check_submission
from tests.unit.analysis.pairs import dependences
from tests.unit.lists import submissions

N = 64
MASKS = (0, 1, 2, 5, 7, 12, 63, -1, -2, -4, -6, ~12, 0b1011001, 1 << 62, (1 << 63) - 1, -(1 << 63))
VALUES = (0, 1, -1, 6, 7, 8, -8, -9, 1000, -1001, (1 << 62) + 5, (1 << 63) - 1, -(1 << 63))


def scope(kernel, *arguments):
    """How the elements that ``kernel`` reads depend on those of ``copy`` before it."""
    a, b, c = (np.zeros(N, np.float32) for _ in range(3))
    found = dependences(analyse(submissions((copy, N, a, b), (kernel, N, b, c, *arguments))))
    return {f.scope for f in found}


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


def at(value: isl.PwAff, point: int) -> int:
    where = isl.Set(f"{{ [{point}] }}").sample_point()
    return int(value.eval(where).to_python())


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_keeps_what_python_keeps(mask):
    value = isl.PwAff("{ [i] -> [i] }")
    kept = and_constant(value, mask)
    assert [at(kept, v) for v in VALUES] == [v & mask for v in VALUES]


@pytest.mark.parametrize("places", [0, 1, 5, 62])
def test_a_shift_rounds_down(places):
    shifted = floor_of_power(isl.PwAff("{ [i] -> [i] }"), places)
    assert [at(shifted, v) for v in VALUES] == [v >> places for v in VALUES]


def test_bits_put_together_again_are_the_id():
    @fq.kernel
    def rejoined(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[((i >> 3) << 3) + (i & 7)] + a[(i ^ 5) ^ 5] + a[(i & ~4) + (i & 4)]

    assert scope(rejoined) == {"ITEM"}


def test_one_bit_changed_is_the_neighbour():
    @fq.kernel
    def flipped(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[i ^ 1]

    @fq.kernel
    def of_pairs(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[i | 1] + a[i & -2]

    assert scope(flipped) == {"GLOBAL"}
    assert scope(of_pairs) == {"GLOBAL"}


def test_elements_that_are_not_read_do_not_matter():
    @fq.kernel
    def beyond(item: fq.Item, a, out):
        i = item.get_id(0)
        if i >> 3 == 100:
            out[i] = a[i - 1]
        out[i] = 0

    assert scope(beyond) == {"NONE"}


def test_what_may_wrap_is_unknown():
    @fq.kernel
    def lost(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[(i << 62) >> 62]

    assert scope(lost) == {"UNKNOWN"}


@fq.kernel
def partner(item: fq.Item, a, out, bit):
    i = item.get_id(0)
    out[i] = a[i ^ bit] + a[i >> bit] + a[i & bit]


def test_bits_that_scalars_name_are_those_of_today() -> None:
    """As products with scalars are: what is proved holds for their values."""
    assert scope(partner, 4) == {"GLOBAL"}
    a, out = np.zeros(64), np.zeros(64)
    (validity,) = (check_submission(s) for s in submissions((partner, 64, a, out, 4)))
    assert validity.holds(submissions((partner, 64, a, out, 4)))
    assert not validity.holds(submissions((partner, 64, a, out, 5)))


@fq.kernel
def masked(item: fq.Item, a, out, bits):
    i = item.get_id(0)
    out[i] = a[i ^ bits]


@pytest.mark.parametrize("bits", [0, 1, 8, 12, 63, -1, -64])
def test_values_of_scalars_are_read_right(bits: int) -> None:
    """Those that leave the array are refused, the others none."""
    inside = all(0 <= i ^ bits < 64 for i in range(64))
    (submission,) = submissions((masked, 64, np.zeros(64), np.zeros(64), bits))
    if inside:
        check_submission(submission)
    else:
        with pytest.raises(ArgumentError):
            check_submission(submission)


def test_narrow_bits_are_unknown():
    @fq.kernel
    def narrow(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[np.uint8(i) & np.uint8(63)]

    assert scope(narrow) == {"UNKNOWN"}


def test_one_of_two_conditions():
    @fq.kernel
    def exclusive(item: fq.Item, a, out):
        i = item.get_id(0)
        if (i < 100) ^ (i >= 0):
            out[i] = a[63 - i]
        out[i] = 0

    assert scope(exclusive) == {"NONE"}
