"""Which buffers of a list a plan promotes, and to what memory."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import PromotionConflict
from fusionq.ir.walk import local_memories
from fusionq.language.ranges import NdRange
from tests.unit.lists import Flagged
from tests.unit.planning.plans import (
    BIG,
    N,
    barriers_in,
    copy,
    decision,
    diamond,
    plan_of,
    private,
    shifted,
    vector,
)


# ------------------------------------------------------------------------ promotion
def test_read_before_write_is_not_promoted():
    a, b = vector(), vector()
    scope, reason = decision(plan_of((copy, N, private(a), b)))
    assert scope == "global"
    assert "no kernel of the list writes it" in reason
    c = private(vector())
    scope, reason = decision(plan_of((copy, N, c, b), (copy, N, a, c)))
    assert scope == "global"
    assert "is not certain to be preceded by a write" in reason


def test_write_under_a_condition_on_data_does_not_cover_a_read():
    @fq.kernel
    def positive(item: fq.Item, a, out):
        i = item.get_id(0)
        if a[i] > 0:
            out[i] = a[i]

    a, b, c = vector(), vector(), vector()
    flagged = private(b)
    assert decision(plan_of((positive, N, a, flagged), (copy, N, flagged, c)))[0] == "global"


def test_write_of_a_smaller_range_does_not_cover():
    a, b, c = vector(), vector(), vector()
    flagged = private(b)
    assert decision(plan_of((copy, N - 1, a, flagged), (copy, N, flagged, c)))[0] == "global"
    assert decision(plan_of((copy, N, a, flagged), (copy, N - 1, flagged, c)))[0] == "private"


def test_neighbour_read_is_not_promoted():
    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    flagged = private(b)
    scope, reason = decision(plan_of((copy, BIG, a, flagged), (shifted, BIG - 1, flagged, c)))
    assert scope == "global"
    assert "survive" in reason


def test_two_launches_that_use_a_buffer_keep_it():
    a, b, c, d = (vector(BIG) for _ in range(4))
    flagged = private(b)
    plan = plan_of(
        (copy, BIG, a, flagged),
        (copy, BIG, a, c),
        (shifted, BIG - 1, c, d),
        (copy, BIG, flagged, a),
    )
    assert decision(plan)[0] == "global"
    assert "survive" in decision(plan)[1]


def test_different_views_are_not_promoted():
    a, b, c = vector(), vector(N + 1), vector()
    first, second = private(b[:N]), private(b[:-1][::1])
    assert decision(plan_of((copy, N, a, first), (copy, N, second, c)))[0] == "private"
    longer = private(b)
    scope, reason = decision(plan_of((copy, N, a, first), (copy, N, longer, c)))
    assert scope == "global"
    assert "views that differ" in reason


def test_flag_on_one_access_only_is_not_promoted():
    a, b, c = vector(), vector(), vector()
    scope, reason = decision(plan_of((copy, N, a, Flagged(b, access="private")), (copy, N, b, c)))
    assert scope == "global"
    assert "some are not" in reason


def test_flag_on_every_access_is_promoted():
    a, b, c = vector(), vector(), vector()
    flagged = Flagged(b, access="private")
    assert decision(plan_of((copy, N, a, flagged), (copy, N, flagged, c)))[0] == "private"


def test_contradicting_flags():
    b = vector()
    with pytest.raises(PromotionConflict, match="flagged for private promotion and its access"):
        plan_of((copy, N, vector(), Flagged(b, private=True, access="local")))


def test_local_promotion_of_what_a_group_exchanges():
    @fq.kernel
    def mirror_eight(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i // 8 * 8 + 7 - i % 8] = a[i]

    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    flagged = Flagged(b, local=True)
    plan = plan_of((mirror_eight, BIG, a, flagged), (copy, BIG, flagged, c))
    scope, reason = decision(plan)
    assert scope == "local"
    (array,) = plan.stages[0].kernel.arrays
    assert array.space == "local"
    assert array.shape == plan.stages[0].local_range
    assert "a work-group of" in reason


def test_local_promotion_with_a_halo_inside_the_group():
    @fq.kernel
    def fill_tile(item: fq.NdItem, a, tmp):
        g = item.get_group().get_group_id(0)
        size = item.get_local_range(0)
        tmp[g * (size + 2) + item.get_local_id(0) + 1] = a[item.get_global_id(0)]
        if item.get_local_id(0) == 0:
            tmp[g * (size + 2)] = a[0]
            tmp[g * (size + 2) + size + 1] = a[0]

    @fq.kernel
    def blur(item: fq.NdItem, tmp, out):
        g = item.get_group().get_group_id(0)
        at = g * (item.get_local_range(0) + 2) + item.get_local_id(0)
        out[item.get_global_id(0)] = tmp[at] + tmp[at + 1] + tmp[at + 2]

    a, b, c = vector(96), Flagged(vector(120), local=True), vector(96)
    plan = plan_of((fill_tile, NdRange(96, 8), a, b), (blur, NdRange(96, 8), b, c))
    assert decision(plan)[0] == "local"
    assert plan.stages[0].kernel.arrays[0].shape == (10,)


def test_local_promotion_across_groups_is_refused():
    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    flagged = Flagged(b, local=True)
    scope, reason = decision(plan_of((copy, BIG, a, flagged), (shifted, BIG - 1, flagged, c)))
    assert scope == "global"
    assert "survive" in reason


def test_local_promotion_that_does_not_fit():
    @fq.kernel
    def rows(item: fq.NdItem, a, out):
        i = item.get_global_id(0)
        for k in range(a.shape[1]):
            out[i, k] = a[i, k]

    def matrix():
        return np.zeros((64, 4096), np.float32)

    flagged = Flagged(matrix(), local=True)
    r = NdRange(64, 32)
    scope, reason = decision(plan_of((rows, r, matrix(), flagged), (rows, r, flagged, matrix())))
    assert scope == "global"
    assert "bytes of local memory" in reason


def test_local_arrays_that_are_not_alive_together_share_memory():
    @fq.kernel
    def mirror(item: fq.Item, a, out):
        i = item.get_id(0)
        out[i // 8 * 8 + 7 - i % 8] = a[i]

    a, b, c, d, e = (vector(BIG) for _ in range(5))
    t1, t2, t3 = (Flagged(v, local=True) for v in (b, c, d))
    plan = plan_of(
        (mirror, BIG, a, t1), (mirror, BIG, t1, t2), (mirror, BIG, t2, t3), (copy, BIG, t3, e)
    )
    assert [p.scope for p in plan.promotions] == ["local"] * 3
    kernel = plan.stages[0].kernel
    assert len(kernel.arrays) == 3 and len(local_memories(kernel)) == 2
    assert barriers_in(plan) == 3


def test_one_access_private_and_one_local_becomes_local():
    a, b, c = vector(BIG), vector(BIG), vector(BIG)
    first, second = Flagged(b, access="private"), Flagged(b, access="local")
    assert decision(plan_of((copy, BIG, a, first), (copy, BIG, second, c)))[0] == "local"


def test_internal_needs_the_option():
    a, b, c = vector(), vector(), vector()
    flagged = Flagged(b, internal=True)
    calls = (copy, N, a, flagged), (copy, N, flagged, c)
    assert plan_of(*calls).promotions == ()
    assert decision(plan_of(*calls, promote="internal"))[0] == "private"
    flagged_calls = diamond(N)
    assert {p.scope for p in plan_of(*flagged_calls, promote="none").promotions} == {"global"}


def test_write_only_buffer_disappears():
    a, b, c = vector(), vector(), vector()
    plan = plan_of((copy, N, a, private(b)), (copy, N, a, c))
    assert decision(plan)[0] == "private"
    assert [p.name for p in plan.stages[0].kernel.params] == ["a", "out_1", "range_0"]


def test_several_elements_an_item():
    @fq.kernel
    def tile(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(3):
            out[3 * i + k] = a[3 * i + k]

    @fq.kernel
    def backwards(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(2, -1, -1):
            out[3 * i + k] = a[3 * i + k]

    a, b, c = vector(99), vector(99), vector(99)
    flagged = private(b)
    plan = plan_of((tile, 33, a, flagged), (backwards, 33, flagged, c))
    assert decision(plan)[0] == "private"
    assert plan.stages[0].kernel.arrays[0].shape == (3,)


def test_too_many_elements_an_item():
    @fq.kernel
    def rows(item: fq.Item, a, out):
        i = item.get_id(0)
        for k in range(a.shape[1]):
            out[i, k] = a[i, k]

    def matrix(columns):
        return np.zeros((4, columns), np.float32)

    for columns, expected in ((8, "private"), (4096, "global")):
        flagged = private(matrix(columns))
        plan = plan_of((rows, 4, matrix(columns), flagged), (rows, 4, flagged, matrix(columns)))
        assert decision(plan)[0] == expected


def test_written_then_read_inside_one_kernel():
    @fq.kernel
    def twice(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        tmp[i] = a[i]
        out[i] = tmp[i] + tmp[i]

    @fq.kernel
    def wrong_order(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        out[i] = tmp[i]
        tmp[i] = a[i]

    a, b, c = vector(), private(vector()), vector()
    assert decision(plan_of((twice, N, a, b, c)))[0] == "private"
    assert decision(plan_of((wrong_order, N, a, b, c)))[0] == "global"


def test_loop_order_decides_whether_a_write_comes_first():
    @fq.kernel
    def forwards(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        for k in range(4):
            tmp[4 * i + k] = a[4 * i + k]
            if k > 0:
                out[4 * i + k] = tmp[4 * i + k - 1]

    @fq.kernel
    def backwards(item: fq.Item, a, tmp, out):
        i = item.get_id(0)
        for k in range(3, -1, -1):
            tmp[4 * i + k] = a[4 * i + k]
            if k > 0:
                out[4 * i + k] = tmp[4 * i + k - 1]

    a, b, c = vector(), private(vector()), vector()
    assert decision(plan_of((forwards, N // 4, a, b, c)))[0] == "private"
    assert decision(plan_of((backwards, N // 4, a, b, c)))[0] == "global"
