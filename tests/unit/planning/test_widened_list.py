"""Indices of 64 bits in place of narrower ones that are made of ids, and of each condition a list
that breaks just that one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import Cast, Load, Param, Var
from fusionq.ir.types import INT32
from fusionq.ir.verifier import verify
from fusionq.ir.walk import expressions, subexpressions
from fusionq.passes.wide_ids import _Widening
from fusionq.planning.planner import holds_for, make_plan
from fusionq.planning.widened_list import LEAST_BOUND, widened_list
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

N = 300
a, b = np.zeros(N, np.float32), np.zeros(N, np.float32)
ints = np.zeros(N, np.int32)


def widened(kernel, items, *arguments, target=TWO_CORES):
    """The kernel of the list; None where it is the user's."""
    listed = submissions((kernel, items, *arguments))
    made = widened_list(listed, target).submissions
    if made[0].ir is listed[0].ir:
        return None
    verify(made[0].ir)
    return made[0].ir


def is_narrow(kernel):
    """Whether something of it has 32 bits."""
    return any(e.type == INT32 for e in expressions(kernel.body))


@fq.kernel
def neighbours(item: fq.Item, x, out, n):
    i = np.int32(item.get_id(0))
    if i + 1 < n and i > 0:
        out[i] = x[i - 1] + x[i + 1]


@fq.kernel
def in_rows(item: fq.Item, x, out, width):
    y = np.int32(item.get_id(0))
    for k in range(width):
        at = y * width + np.int32(k)
        out[at] = x[at]


@fq.kernel
def chosen(item: fq.Item, x, out, n):
    i = np.int32(item.get_id(0))
    right = i + 1
    if right >= n:
        right = np.int32(0)
    out[i] = x[right] + x[min(i, n - 1)] + x[i if i > 5 else right]


@fq.kernel
def in_group(item: fq.NdItem, x, out):
    group = item.get_group()
    i = np.uint32(group.get_group_id(0) * item.get_local_range(0) + item.get_local_id(0))
    out[i] = x[i]


@fq.kernel
def deep(item: fq.Item, x, out):
    i = np.int32(item.get_id(0))
    j = i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i + i
    of_memory = np.int32(x[0]) + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8
    if of_memory + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 > i:
        out[j - 22 * i] = x[i + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 - 1 - 2 - 3 - 4 - 5 - 6 - 7 - 8]


def test_each_operand_is_asked_about_once(monkeypatch):
    """Twice for each would be millions for a sum of twenty."""
    asked, of_ids = [], _Widening._of_ids

    def counted(self, e):
        asked.append(e)
        return of_ids(self, e)

    monkeypatch.setattr(_Widening, "_of_ids", counted)
    made = widened(deep, N, a, b)
    indices = [e for load in expressions(made.body) if isinstance(load, Load) for e in load.indices]
    assert not any(isinstance(e, Cast) for index in indices for e in subexpressions(index))
    assert 0 < len(asked) < 5_000


def test_indices_and_conditions_have_64_bits():
    assert not is_narrow(widened(neighbours, N, a, b, N))
    assert not is_narrow(widened(chosen, N, a, b, N))
    for width, dtype in ((3, int), (3, np.int32)):
        kernel = widened(in_rows, 100, a, b, dtype(width))
        assert {type for _, type in kernel.variables}.isdisjoint({INT32})
    kernel = widened(in_group, fq.NdRange(N, 30), a, b)
    assert not any(e.type.name == "uint32" for e in expressions(kernel.body))


@fq.kernel
def unsigned_before(item: fq.Item, x, out):
    i = np.uint32(item.get_id(0))
    out[i] = x[min(i - np.uint32(1), np.uint32(5))]


@fq.kernel
def moved(item: fq.Item, x, out, by):
    i = np.int32(item.get_id(0))
    out[(i * by) & 255] = x[i]


@fq.kernel
def of_bytes(item: fq.Item, x, out):
    i = np.int8(item.get_id(0))
    out[i & 63] = x[(i + np.int8(3)) & 63]


@fq.kernel
def counted(item: fq.Item, x, out):
    i = np.int32(item.get_id(0))
    while i < 250:
        i += 50
    out[item.get_id(0)] = x[i - 250]


@fq.kernel
def read(item: fq.Item, x, places, out):
    i = item.get_id(0)
    k = places[i] + np.int32(1)
    out[i] = x[k & 255]


@fq.kernel
def valued(item: fq.Item, x, out):
    i = np.int32(item.get_id(0))
    out[item.get_id(0)] = x[item.get_id(0)] + np.float32(i * 3)


@fq.kernel
def unsigned_neighbours(item: fq.Item, x, out, n):
    i = np.uint32(item.get_id(0))
    if i > np.uint32(0) and i + np.uint32(1) < n:
        out[i] = x[i - np.uint32(1)] + x[(i * n - np.uint32(1)) - n * i] + x[i + np.uint32(1)]


@fq.kernel
def unsigned_variables(item: fq.Item, x, out, n):
    i = np.uint32(item.get_id(0))
    left = i - np.uint32(1)
    before = left - np.uint32(1)
    out[i] = x[left] + x[before + np.uint32(1)]
    changing = i - np.uint32(1)
    for k in range(3):
        out[i] += x[changing]
        changing = np.uint32(k) - i
    of_memory = np.uint32(out[i]) - i
    out[i] += x[of_memory]


@fq.kernel
def unsigned_and_used(item: fq.Item, x, out):
    i = np.uint32(item.get_id(0))
    before = i - np.uint32(1)
    out[i] = x[before & np.uint32(255)] + x[before // np.uint32(1 << 24)]


@fq.kernel
def from_behind(item: fq.Item, x, out):
    i = np.uint32(item.get_id(0))
    out[item.get_id(0)] = x[i + np.uint32(2**32 - 1)]


def test_indices_that_are_outside_either_way_may_wrap_around():
    kernel = widened(unsigned_neighbours, N, a, b, np.uint32(N))
    indices = [i for e in expressions(kernel.body) if isinstance(e, Load) for i in e.indices]
    assert len(indices) == 3
    assert not any(e.type.name == "uint32" for i in indices for e in subexpressions(i)
                   if not isinstance(e, Param))  # fmt: skip
    for shape in ((1 << 31,), (0,)):  # not small, and not known to be
        whole = np.lib.stride_tricks.as_strided(a, shape, (0,))
        kernel = widened(unsigned_neighbours, N, whole, b, np.uint32(N))
        loads = [e for e in expressions(kernel.body) if isinstance(e, Load)]
        assert isinstance(loads[0].indices[0], Cast)
    kernel = widened(unsigned_and_used, N, a, b)
    assert dict(kernel.variables)["before"].name == "uint32"
    kernel = widened(from_behind, N, a, b)  # 2**32 and more are inside in 32 bits
    (load,) = (e for e in expressions(kernel.body) if isinstance(e, Load))
    assert isinstance(load.indices[0], Cast)


def test_variables_that_are_set_once_may_wrap_around():
    kernel = widened(unsigned_variables, N, a, b, np.uint32(N))
    indices = [e.indices[0] for e in expressions(kernel.body) if isinstance(e, Load)]
    of_x = [i for i in indices if isinstance(i, Cast)]
    names = {v.name for i in of_x for v in subexpressions(i) if isinstance(v, Var)}
    assert names == {"changing", "of_memory"} and len(of_x) == 2


@fq.kernel
def in_quotients(item: fq.Item, x, out, w):
    i = np.int32(item.get_id(0))
    y, z = i // w, (i - 5) % w
    if z > 0:
        out[i] = x[y] + x[z]


def test_quotients_have_64_bits():
    for w in (7, 100, 1 << 20, -3, 0):
        assert not is_narrow_but_for(widened(in_quotients, N, a, b, np.int32(w)), "w")


def is_narrow_but_for(kernel, name):
    """Whether something of it but a parameter has 32 bits."""
    return any(e.type == INT32 and e != Param(INT32, name) for e in expressions(kernel.body))


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (of_bytes, (a, b)),  # 300 is no int8
        (counted, (a, b)),  # what a loop adds to has no bound
        (read, (a, ints, b)),  # memory may hold anything
        (valued, (a, b)),  # no index, no condition
    ],
)
def test_what_stays_narrow(kernel, arguments):
    assert widened(kernel, N, *arguments) is None


def test_sums_that_may_wrap_around_stay_narrow():
    kernel = widened(unsigned_before, N, a, b)  # out[i] is an index of 64 bits, i - 1 is none
    assert any(e.type.name == "uint32" for e in expressions(kernel.body))
    for by in (7, 1 << 20, 1 << 30):
        # ``&`` keeps it narrow; its operand of ids is computed as before
        kernel = widened(moved, N, a, b, np.int32(by))
        assert is_narrow(kernel)
    assert is_narrow(widened(in_rows, 100, a, b, np.int32(1 << 24)))


def test_devices_that_are_faster_with_32_bits():
    device = replace(TWO_CORES.device, narrow_indices=True)
    assert widened(neighbours, N, a, b, N, target=replace(TWO_CORES, device=device)) is None


@fq.kernel
def backwards(item: fq.Item, x, out, n):
    i = np.int32(item.get_id(0))
    out[i] = x[n - i]


def test_a_plan_serves_sizes_and_scalars_of_its_class():
    def listed(items, n):
        x, out = np.zeros(1 << 12, np.float32), np.zeros(1 << 12, np.float32)
        return submissions((backwards, items, x, out, n))

    def serves(plan, items, n):
        return holds_for(plan, listed(items, n))

    plan = make_plan(listed(100, np.int32(8)), FusionOptions(), TWO_CORES)
    assert serves(plan, 200, np.int32(9)) and serves(plan, LEAST_BOUND - 1, np.int32(-3))
    assert not serves(plan, LEAST_BOUND, np.int32(8))
    assert not serves(plan, 100, np.int32(1 << 24))
    large = make_plan(listed(100, np.int32(1 << 24)), FusionOptions(), TWO_CORES)
    assert serves(large, 100, np.int32(8)) and not serves(large, 100, np.int32(-(1 << 24)))


@fq.kernel
def seeded(item: fq.Item, x, out, seed, n):
    i = np.uint32(item.get_id(0))
    if i < n:
        out[i] = x[i + np.uint32(1)] + np.float32((i * np.uint32(2654435761)) ^ seed)


def test_other_scalars_may_be_any():
    def listed(seed):
        return submissions((seeded, 100, a, b, np.uint32(seed), np.uint32(9)))

    plan = make_plan(listed(1), FusionOptions(), TWO_CORES)
    assert holds_for(plan, listed(0)) and holds_for(plan, listed(2**32 - 1))
