"""Dependence scopes: each rule, and attempts to break it."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.list_analysis import analyse
from fusionq.language.ranges import NdRange
from tests.unit.analysis.pairs import dependences
from tests.unit.lists import submissions

N = 64


def scopes(*calls):
    """``{kind: scope}`` between the two submissions; kinds that share no memory are absent."""
    found = dependences(analyse(submissions(*calls)))
    return {f.kind: f.scope for f in found}


def vector(n=N, dtype=np.float32):
    return np.zeros(n, dtype)


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i + 1]


@fq.kernel
def reverse(item: fq.Item, a, out):
    i = item.get_id(0)
    out[item.get_range(0) - 1 - i] = a[i]


@fq.kernel
def gather(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[i] = a[index[i]]


def test_same_element_same_item_is_item_scope():
    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (copy, N, b, c)) == {"RAW": "ITEM"}
    assert scopes((copy, N, a, b), (copy, N, c, a)) == {"WAR": "ITEM"}
    assert scopes((copy, N, a, b), (copy, N, c, b)) == {"WAW": "ITEM"}


def test_reading_only_is_no_dependence():
    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (copy, N, a, c)) == {}


def test_separate_memory_is_no_dependence():
    assert scopes((copy, N, vector(), vector()), (copy, N, vector(), vector())) == {}


def test_neighbour_is_global():
    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (shifted, N - 1, b, c)) == {"RAW": "GLOBAL"}
    assert scopes((shifted, N - 1, a, b), (copy, N, c, a)) == {"WAR": "GLOBAL"}


def test_reversed_write_is_global():
    a, b, c = vector(), vector(), vector()
    assert scopes((reverse, N, a, b), (copy, N, b, c)) == {"RAW": "GLOBAL"}


def test_reversed_twice_is_item():
    a, b, c = vector(), vector(), vector()
    assert scopes((reverse, N, a, b), (reverse, N, c, b)) == {"WAW": "ITEM"}


def test_one_item_reversed_is_item():
    a, b, c = vector(1), vector(1), vector(1)
    assert scopes((reverse, 1, a, b), (copy, 1, b, c)) == {"RAW": "ITEM"}


def test_indirect_index_is_unknown():
    index, a, b, c = vector(dtype=np.int64), vector(), vector(), vector()
    assert scopes((copy, N, a, b), (gather, N, index, b, c)) == {"RAW": "UNKNOWN"}


def test_index_that_a_kernel_writes_is_unknown():
    index, a, b, c = vector(dtype=np.int64), vector(), vector(), vector()
    source = vector(dtype=np.int64)
    found = scopes((copy, N, source, index), (gather, N, index, b, c))
    assert found == {"RAW": "ITEM"}, "the index array itself is read element by element"
    assert scopes((gather, N, index, a, b), (copy, N, c, a)) == {"WAR": "UNKNOWN"}


@fq.kernel
def scatter(item: fq.Item, index, a, out):
    i = item.get_id(0)
    out[index[i]] = a[i]


@fq.kernel
def gather_by_groups(item: fq.NdItem, index, a, out):
    i = item.get_global_id(0)
    out[i] = a[index[i]]


@fq.kernel
def scatter_by_groups(item: fq.NdItem, index, a, out):
    out[index[item.get_global_id(0)]] = a[0]


@fq.kernel
def scatter_first(item: fq.NdItem, index, a, out):
    i = item.get_global_id(0)
    if i < 3:
        out[index[i]] = a[index[i]]


def test_unknown_index_of_one_work_item_is_item():
    index, a, b, c = vector(dtype=np.int64), vector(), vector(), vector()
    assert scopes((scatter, 1, index, a, b), (gather, 1, index, b, c)) == {"RAW": "ITEM"}
    assert scopes((copy, N, a, b), (gather, 1, index, b, c)) == {"RAW": "UNKNOWN"}
    assert scopes((gather, 1, index, b, a), (copy, N, c, b)) == {"WAR": "UNKNOWN"}
    assert scopes((gather, 2, index, b, a), (scatter, 1, index, c, b)) == {"WAR": "UNKNOWN"}


def test_unknown_index_in_the_one_work_group_is_group():
    index, a, b, c = vector(dtype=np.int64), vector(), vector(), vector()
    one, two = NdRange(N, N), NdRange(N, N // 2)
    scatter, gather = scatter_by_groups, gather_by_groups
    assert scopes((scatter, one, index, a, b), (gather, one, index, b, c)) == {"RAW": "GROUP"}
    assert scopes((scatter, two, index, a, b), (gather, two, index, b, c)) == {"RAW": "UNKNOWN"}
    assert scopes((scatter, two, index, a, b), (scatter, one, index, c, b)) == {"WAW": "UNKNOWN"}
    first = scatter_first, two, index
    assert scopes((scatter, two, index, a, b), (*first, b, c)) == {"RAW": "UNKNOWN"}
    # All that is not known is done by the first three work-items.
    assert scopes((*first, a, b), (*first, b, c)) == {"RAW": "GROUP"}


def test_unknown_index_holds_for_the_sizes_that_were_asked_about():
    index, a, b, c = vector(dtype=np.int64), vector(), vector(), vector()
    analysis = analyse(submissions((scatter, 1, index, a, b), (gather, 1, index, b, c)))
    assert [f.scope for f in dependences(analysis)] == ["ITEM"]
    assert any(1 in values.values() for values in [dict(analysis.symbols.values)])
    assert analysis.proofs.conditions, "of other ranges it is not said"


# ---------------------------------------------------------------------------- views
def test_overlapping_views_are_compared_by_address():
    base, a, c = vector(N + 1), vector(), vector()
    assert scopes((copy, N, a, base[:N]), (copy, N, base[1:], c)) == {"RAW": "GLOBAL"}


def test_shifted_view_and_shifted_index_cancel():
    base, a, c = vector(N + 1), vector(), vector()

    assert scopes((copy, N - 1, a, base[1:]), (shifted, N - 1, base[:N], c)) == {"RAW": "ITEM"}


def test_disjoint_halves_are_independent():
    base, a, c = vector(2 * N), vector(), vector()
    assert scopes((copy, N, a, base[:N]), (copy, N, base[N:], c)) == {}


def test_interleaved_views_share_no_element():
    base, a, c = vector(2 * N), vector(), vector()
    assert scopes((copy, N, a, base[::2]), (copy, N, base[1::2], c)) == {}


def test_negative_step_against_positive_is_global():
    base, a, c = vector(), vector(), vector()
    assert scopes((copy, N, a, base), (copy, N, base[::-1], c)) == {"RAW": "GLOBAL"}


def test_same_negative_step_is_item():
    base, a, c = vector(), vector(), vector()
    assert scopes((copy, N, a, base[::-1]), (copy, N, base[::-1], c)) == {"RAW": "ITEM"}


def test_odd_middle_element_of_a_reversed_view_is_the_same_item():
    base, a, c = vector(1), vector(1), vector(1)
    assert scopes((copy, 1, a, base[::-1]), (copy, 1, base, c)) == {"RAW": "ITEM"}


def test_views_of_another_dtype_are_compared_by_byte():
    base = vector(N, np.int32)
    halves = base.view(np.int16)
    a, c = vector(2 * N, np.int16), vector(N, np.int32)
    assert scopes((copy, 2 * N, a, halves), (copy, N, base, c)) == {"RAW": "GLOBAL"}
    words = base.view(np.float32)
    assert scopes((copy, N, c, base), (copy, N, words, vector())) == {"RAW": "ITEM"}


def test_broadcast_view_is_one_element_for_all():
    base, a, c = vector(1), vector(1), vector()
    everywhere = np.lib.stride_tricks.as_strided(base, (N,), (0,))
    assert scopes((copy, 1, a, base), (copy, N, everywhere, c)) == {"RAW": "GLOBAL"}


def test_argument_used_twice_in_one_kernel():
    @fq.kernel
    def add(item: fq.Item, a, b, out):
        i = item.get_id(0)
        out[i] = a[i] + b[i]

    a, c = vector(), vector()
    assert scopes((copy, N, c, a), (add, N, a, a, a)) == {"RAW": "ITEM", "WAW": "ITEM"}


# ------------------------------------------------------------------- ranges and guards
def test_smaller_range_touches_a_prefix():
    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (copy, N // 2, b, c)) == {"RAW": "ITEM"}


def test_zero_range_touches_nothing():
    a, b, c = vector(), vector(), vector()
    assert set(scopes((copy, 0, a, b), (shifted, N - 1, b, c)).values()) == {"NONE"}


def test_guards_count():
    @fq.kernel
    def first_half(item: fq.Item, a, out):
        i = item.get_id(0)
        if 2 * i < item.get_range(0):
            out[i] = a[i]

    @fq.kernel
    def from_second_half(item: fq.Item, a, out):
        i = item.get_id(0)
        if 2 * i >= item.get_range(0):
            out[i] = a[i]

    a, b, c = vector(), vector(), vector()
    assert scopes((first_half, N, a, b), (from_second_half, N, b, c)) == {"RAW": "NONE"}


def test_early_return_counts():
    @fq.kernel
    def all_but_last(item: fq.Item, a, out):
        i = item.get_id(0)
        if i + 1 >= item.get_range(0):
            return
        out[i] = a[i]

    @fq.kernel
    def only_last(item: fq.Item, a, out):
        i = item.get_id(0)
        if i + 1 < item.get_range(0):
            return
        out[i] = a[i]

    a, b, c = vector(), vector(), vector()
    assert scopes((all_but_last, N, a, b), (only_last, N, b, c)) == {"RAW": "NONE"}


def test_condition_on_data_may_happen():
    @fq.kernel
    def positive_neighbour(item: fq.Item, a, out):
        i = item.get_id(0)
        if a[i] > 0:
            out[i] = a[i]
        elif i > 0:
            out[i - 1] = a[i]

    a, b, c = vector(), vector(), vector()
    assert scopes((positive_neighbour, N, a, b), (copy, N, b, c)) == {"RAW": "GLOBAL"}


def test_scalar_offset_decides():
    @fq.kernel
    def offset(item: fq.Item, a, out, k):
        i = item.get_id(0)
        if i + k < item.get_range(0):
            out[i] = a[i + k]

    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (offset, N, b, c, 0)) == {"RAW": "ITEM"}
    assert scopes((copy, N, a, b), (offset, N, b, c, 1)) == {"RAW": "GLOBAL"}
    assert scopes((copy, N, a, b), (offset, N, b, c, N)) == {"RAW": "NONE"}


# ----------------------------------------------------------------------------- loops
def test_each_item_owns_a_tile():
    @fq.kernel
    def tile(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(4 * i, 4 * i + 4):
            out[k] = a[k]

    @fq.kernel
    def backwards(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(4 * i + 3, 4 * i - 1, -1):
            out[k] = a[k]

    a, b, c = vector(), vector(), vector()
    assert scopes((tile, N // 4, a, b), (backwards, N // 4, b, c)) == {"RAW": "ITEM"}


def test_tiles_that_reach_over_are_global():
    @fq.kernel
    def tile(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(4):
            out[4 * i + k] = a[4 * i + k]

    @fq.kernel
    def five(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(5):
            if 4 * i + k < a.shape[0]:
                out[i] = a[4 * i + k]

    a, b, c = vector(), vector(), vector(N // 4)
    assert scopes((tile, N // 4, a, b), (five, N // 4, b, c)) == {"RAW": "GLOBAL"}


def test_strided_loop_skips_elements():
    @fq.kernel
    def even(item: fq.Item, a, out):
        for k in range(0, a.shape[0], 2):
            out[k] = a[k]

    @fq.kernel
    def odd(item: fq.Item, a, out):
        for k in range(1, a.shape[0], 2):
            out[k] = a[k]

    a, b, c = vector(), vector(), vector()
    assert scopes((even, 1, a, b), (odd, 1, b, c)) == {"RAW": "NONE"}


def test_continue_skips_elements():
    @fq.kernel
    def all_but_third(item: fq.Item, a, out):
        for k in range(a.shape[0]):
            if k == 3:
                continue
            out[k] = a[k]

    @fq.kernel
    def third(item: fq.Item, a, out):
        out[3] = a[3]

    a, b, c = vector(), vector(), vector()
    assert scopes((all_but_third, 1, a, b), (third, 1, b, c)) == {"RAW": "NONE"}


def test_while_loop_index_is_unknown():
    @fq.kernel
    def walk(item: fq.Item, a, out):
        i = item.get_id(0)
        j = i
        while a[j] > 0:
            j = j // 2
        out[i] = a[j]

    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (walk, N, b, c)) == {"RAW": "UNKNOWN"}


def test_variable_changed_in_a_loop_is_unknown():
    @fq.kernel
    def drift(item: fq.Item, a, out):
        i = item.get_id(0)
        j = i
        for _ in range(2):
            out[i] = a[j]
            j = (j + 1) % a.shape[0]

    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (drift, N, b, c)) == {"RAW": "UNKNOWN"}


# ----------------------------------------------------------------- index arithmetic
def test_variable_with_two_values_is_followed():
    @fq.kernel
    def choose(item: fq.Item, a, out):
        i = item.get_id(0)
        j = i
        if i > 0:
            j = i - 1
        out[i] = a[j]

    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (choose, N, b, c)) == {"RAW": "GLOBAL"}
    assert scopes((copy, 1, a, b), (choose, 1, b, c)) == {"RAW": "ITEM"}


def test_division_and_remainder():
    @fq.kernel
    def rejoin(item: fq.Item, a, out):
        i = item.get_id(0)
        out[(i // 8) * 8 + i % 8] = a[i]

    a, b, c = vector(), vector(), vector()
    assert scopes((rejoin, N, a, b), (copy, N, b, c)) == {"RAW": "ITEM"}


def test_minimum_clamps():
    @fq.kernel
    def clamped(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[min(i, a.shape[0] - 1)]

    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (clamped, N, b, c)) == {"RAW": "ITEM"}


def test_narrow_arithmetic_may_wrap_and_is_unknown():
    @fq.kernel
    def narrow(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i] = a[np.int32(i) * np.int32(1)]

    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (narrow, N, b, c)) == {"RAW": "UNKNOWN"}


def test_index_that_could_overflow_is_unknown():
    @fq.kernel
    def huge(item: fq.Item, a, out):
        i = item.get_id(0)
        j = i * 4611686018427387904
        out[i] = a[j * 4]

    a, b, c = vector(), vector(), vector()
    assert scopes((copy, N, a, b), (huge, N, b, c)) == {"RAW": "UNKNOWN"}


def test_product_with_a_scalar_is_pinned():
    @fq.kernel
    def flat(item: fq.Item, a, out, columns):
        i = item.get_id(0)
        j = item.get_id(1)
        out[i * columns + j] = a[i * columns + j]

    a, b, c = vector(), vector(), vector()
    calls = submissions((flat, (8, 8), a, b, 8), (flat, (8, 8), b, c, 8))
    analysis = analyse(calls)
    assert [f.scope for f in dependences(analysis)] == ["ITEM"]
    assert any(analysis.symbols.values[name] == 8 for name in analysis.pinned)


# -------------------------------------------------------------------- 2-D and 3-D
@fq.kernel
def copy2(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = a[i, j]


@fq.kernel
def transpose(item: fq.Item, a, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[j, i] = a[i, j]


@fq.kernel
def row_sum(item: fq.Item, a, out):
    i = item.get_id(0)
    total = a[i, 0]
    for j in range(1, a.shape[1]):
        total = total + a[i, j]
    out[i] = total


def matrix(rows=8, columns=8):
    return np.zeros((rows, columns), np.float32)


def test_two_dimensions():
    a, b, c = matrix(), matrix(), matrix()
    assert scopes((copy2, (8, 8), a, b), (copy2, (8, 8), b, c)) == {"RAW": "ITEM"}
    assert scopes((transpose, (8, 8), a, b), (copy2, (8, 8), b, c)) == {"RAW": "GLOBAL"}
    assert scopes((copy2, (8, 8), a, b.T), (transpose, (8, 8), b, c)) == {"RAW": "GLOBAL"}
    assert scopes((transpose, (8, 8), a, b), (copy2, (8, 8), b.T, c)) == {"RAW": "ITEM"}


def test_item_for_a_row_after_item_for_an_element():
    a, b, c = matrix(), matrix(), vector(8)
    assert scopes((copy2, (8, 8), a, b), (row_sum, 8, b, c)) == {"RAW": "GLOBAL"}


def test_ranges_of_different_shape_meet_by_linear_id():
    a, b, c = vector(), vector(), matrix()
    calls = (copy, N, a, b), (copy2, (8, 8), b.reshape(8, 8), c)
    assert scopes(*calls) == {"RAW": "ITEM"}


def test_row_views():
    base = matrix()
    a, c = vector(8), vector(8)
    assert scopes((copy, 8, a, base[2]), (copy, 8, base[3], c)) == {}
    assert scopes((copy, 8, a, base[3]), (copy, 8, base[:, 2], c)) == {"RAW": "GLOBAL"}
    assert scopes((copy, 8, a, base[2]), (copy, 8, base[:, 2], c)) == {"RAW": "ITEM"}
    assert scopes((copy, 8, a, base[:, 1]), (copy, 8, base[:, 2], c)) == {}


# ---------------------------------------------------------------------- work-groups
@fq.kernel
def mirror_group(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    size = item.get_local_range(0)
    base = i - item.get_local_id(0)
    out[base + size - 1 - item.get_local_id(0)] = a[i]


@fq.kernel
def nd_copy(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    out[i] = a[i]


def test_reversal_inside_a_group_is_group_scope():
    a, b, c = vector(), vector(), vector()
    r = NdRange(N, 8)
    assert scopes((mirror_group, r, a, b), (nd_copy, r, b, c)) == {"RAW": "GROUP"}


def test_groups_of_different_size_do_not_help():
    a, b, c = vector(), vector(), vector()
    first, second = NdRange(N, 8), NdRange(N, 16)
    assert scopes((mirror_group, first, a, b), (nd_copy, second, b, c)) == {"RAW": "GLOBAL"}


def test_groups_of_one_item_are_items():
    a, b, c = vector(), vector(), vector()
    r = NdRange(N, 1)
    assert scopes((mirror_group, r, a, b), (nd_copy, r, b, c)) == {"RAW": "ITEM"}


def test_reason_and_spans_name_the_accesses():
    a, b, c = vector(), vector(), vector()
    (found,) = dependences(analyse(submissions((copy, N, a, b), (shifted, N - 1, b, c))))
    assert found.producer_span.text == "out[i] = a[i]"
    assert found.consumer_span.text == "out[i] = a[i + 1]"
    assert "different work-items" in found.reason


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_odd_sizes(n):
    a, b, c = vector(n), vector(n), vector(n)
    expected = "ITEM" if n == 1 else "GLOBAL"
    assert scopes((reverse, n, a, b), (copy, n, b, c)) == {"RAW": expected}
