"""Which stores become non-temporal, and of each condition a kernel that breaks just that one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.item_space import common_space
from fusionq.analysis.list_analysis import analyse
from fusionq.ir.printer import print_kernel
from fusionq.ir.range_guard import range_guard
from fusionq.ir.verifier import verify
from fusionq.passes.nontemporal_stores import streamed_row, with_nontemporal_stores
from fusionq.passes.pipeline import fused_kernel
from tests.unit.lists import submissions
from tests.unit.targets import REFERENCE

N = 320


def vector(n=N, dtype=np.float32):
    return np.zeros(n, dtype)


def plane():
    return np.zeros((20, 16), np.float32)


def fused(*calls):
    listed = submissions(*calls)
    analysis, space = analyse(listed), common_space(listed)
    return fused_kernel(analysis, range(len(listed)), space, {}, {}, {}, REFERENCE.device).kernel


def lines(kernel):
    return [line.strip() for line in print_kernel(kernel).splitlines()]


@fq.kernel
def mul(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def both(item: fq.Item, a, out, more):
    i = item.get_id(0)
    s = a[i]
    for _ in range(3):
        s *= a[i]
    out[i] = s
    if s > 0:
        more[i] = s


@fq.kernel
def of_rows(item: fq.Item, a, row, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] * row[j]


@fq.kernel
def flipped(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[19 - i, j] = a[i, j]


@fq.kernel
def transposed(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[j, i] = a[i, j]


@fq.kernel
def to_next(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i + 1] = a[i]


@fq.kernel
def every_other(item: fq.Item, a, out):
    i = item.get_id(0)
    out[2 * i] = a[i]


@fq.kernel
def inside(item: fq.Item, a, out):
    i = item.get_id(0)
    if 0 < i < 300:
        out[i] = a[i]


@fq.kernel
def in_a_loop(item: fq.Item, a, out):
    i = item.get_id(0)
    for k in range(2):
        out[i] = a[i] * k


@fq.kernel
def twice(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]
    if a[i] > 1:
        out[i] = 1


@fq.kernel
def counted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]
    fq.AtomicRef(out, 0).fetch_add(1)


@fq.kernel
def read_elsewhere(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] + out[(i + 160) % 320]


@fq.kernel
def in_groups(item: fq.NdItem, a, out):
    i = item.get_global_id(0)
    s = a[i]
    fq.group_barrier(item.get_group())
    out[i] = s


def test_a_store_to_the_own_element():
    kernel = fused((mul, N, vector(), vector(), vector()))
    made = with_nontemporal_stores(kernel)
    verify(made.kernel)
    before, after = lines(kernel), lines(made.kernel)
    store = "out[item.get_id(0)] = a[item.get_id(0)] * b[item.get_id(0)]"
    assert [line for line in after if line not in before] == [f"{store}  # non-temporal"]
    assert [line for line in before if line not in after] == [store]
    assert made.bytes_per_item == 12


def test_bytes_are_those_of_all_types_that_a_work_item_has_for_itself():
    a, b, out = vector(dtype=np.int8), vector(), vector(dtype=np.float64)
    assert with_nontemporal_stores(fused((mul, N, a, b, out))).bytes_per_item == 1 + 4 + 8
    in_rows = fused((of_rows, (20, 16), plane(), vector(16), plane()))
    assert with_nontemporal_stores(in_rows).bytes_per_item == 12


def test_only_what_every_work_item_stores():
    made = with_nontemporal_stores(fused((both, N, vector(), vector(), vector())))
    marked = [line for line in lines(made.kernel) if "# non-temporal" in line]
    assert marked == ["out[item.get_id(0)] = s  # non-temporal"]


def test_rows_wherever_they_lie():
    for out in (plane(), np.zeros((20, 99), np.float32)[:, 3:19]):
        for call in (
            (of_rows, (20, 16), plane(), vector(16), out),
            (flipped, (20, 16), plane(), out),
        ):
            assert with_nontemporal_stores(fused(call)) is not None


def test_what_a_work_item_loads_again_stays_in_a_variable():
    a, b, c, d, e = (vector() for _ in range(5))
    kernel = fused((mul, N, a, b, c), (mul, N, c, b, d), (mul, N, d, c, e))
    made = with_nontemporal_stores(kernel)
    verify(made.kernel)
    assert made.bytes_per_item == 20
    own = "[item.get_id(0)]"
    assert [line for line in lines(made.kernel) if "=" in line and "range" not in line] == [
        f"out_stored = a{own} * b{own}",
        f"out{own} = out_stored  # non-temporal",
        f"out_1_stored = out_stored * b{own}",
        f"out_1{own} = out_1_stored  # non-temporal",
        f"out_2{own} = out_1_stored * out_stored  # non-temporal",
    ]


@fq.kernel
def read_before(item: fq.Item, a, out):
    i = item.get_id(0)
    old = out[i]
    out[i] = a[i]
    a[i] = old


@fq.kernel
def from_next(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]
    a[i] = out[(i + 1) % 320]


def _shared():
    memory = vector(2 * N)
    return (mul, N, memory[1 : N + 1], vector(), memory[:N])


@pytest.mark.parametrize(
    "call",
    [
        (to_next, N - 1, vector(), vector()),
        (every_other, N // 2, vector(), vector()),
        (inside, N, vector(), vector()),
        (in_a_loop, N, vector(), vector()),
        (twice, N, vector(), vector()),
        (counted, N, vector(dtype=np.int32), vector(dtype=np.int32)),
        (read_elsewhere, N, vector(), vector()),
        (read_before, N, vector(), vector()),
        (from_next, N, vector(), vector()),
        (transposed, (16, 16), plane()[:16], plane()[:16]),
        (in_groups, fq.NdRange(N, 16), vector(), vector()),
        (mul, N, vector(), vector(), vector(2 * N)[::2]),
        (of_rows, (20, 16), plane(), vector(16), np.zeros((16, 20), np.float32).T),
        _shared(),
    ],
    ids=lambda call: call[0].name,
)
def test_what_is_left_alone(call):
    assert with_nontemporal_stores(fused(call)) is None


def test_launches_of_several_ranges_store_under_masks():
    listed = (mul, N, vector(), vector(), vector()), (mul, N - 1, vector(), vector(), vector())
    assert with_nontemporal_stores(fused(*listed)) is None


# ------------------------------------------------------------------------------- rows of tiles
@fq.kernel
def row_of_both(item: fq.Item, a, out, more):
    i, j = item.get_id(0) + 1, item.get_id(1) + 3
    out[i, j] = a[i, j]
    more[i, j - 1] = a[i, j]


@fq.kernel
def strange(item: fq.Item, a, turned, twice, maybe, one):
    i, j = item.get_id(0), item.get_id(1)
    turned[j, i] = a[i, j]
    twice[i, j] = a[i, j]
    twice[i, j + 1] = a[i, j]
    if a[i, j] > 0:
        maybe[i, j] = 1
    one[i, 0] = 1


def unguarded(*call):
    kernel = fused(call)
    guard = range_guard(kernel.body)
    return kernel if guard is None else replace(kernel, body=guard.guard.then)


def row_of(*call, free):
    kernel = unguarded(*call)
    return streamed_row(kernel, kernel.body, free)


def test_rows_of_one_shift_are_streamed():
    planes = [plane() for _ in range(3)]
    found = row_of(row_of_both, (16, 8), *planes, free={"out", "more", "a"})
    assert (found.arrays, found.shift) == ({"out"}, 3)
    kernel = unguarded(row_of_both, (16, 8), *planes)
    made = [line for line in lines(replace(kernel, body=found.body)) if "non-temporal" in line]
    assert made == ["out[i, j] = a[i, j]  # non-temporal"]
    found = row_of(row_of_both, (16, 8), *planes, free={"more"})
    assert (found.arrays, found.shift) == ({"more"}, 2)
    assert row_of(row_of_both, (16, 8), *planes, free={"a"}) is None


def test_what_no_row_of_vectors_stores_is_left():
    planes = [np.zeros((20, 20), np.float32) for _ in range(5)]
    names = {"turned", "twice", "maybe", "one"}
    assert row_of(strange, (16, 16), *planes, free=names) is None
    assert row_of(of_rows, (20, 16), plane(), vector(16), plane(), free={"out"}) is not None
    columns = np.zeros((20, 40), np.float32)[:, ::2]
    assert row_of(of_rows, (20, 16), plane(), vector(16), columns, free={"out"}) is None
