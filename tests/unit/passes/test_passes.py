"""Each pass on small kernels, as printed Python before and after."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.item_space import common_space
from fusionq.analysis.list_analysis import analyse
from fusionq.ir.nodes import ArrayParam
from fusionq.ir.printer import print_kernel
from fusionq.passes.dead_stores import eliminate_dead_stores
from fusionq.passes.fuse import fuse
from fusionq.passes.pipeline import fused_kernel
from fusionq.passes.propagate_ids import propagate_ids
from tests.e2e.kernels_from_text import from_text
from tests.unit.lists import submissions
from tests.unit.targets import REFERENCE

N = 32


def vector(n=N, dtype=np.float32):
    return np.zeros(n, dtype)


def fused(*calls):
    """The fused kernel of some submissions before the other passes."""
    listed = submissions(*calls)
    space = common_space(listed)
    return fuse(analyse(listed), range(len(listed)), space, {}, {})


def finished(*calls):
    listed = submissions(*calls)
    analysis, space = analyse(listed), common_space(listed)
    return fused_kernel(analysis, range(len(listed)), space, {}, {}, {}, REFERENCE.device)


def lines(kernel):
    return [line.strip() for line in print_kernel(kernel).splitlines()]


@fq.kernel
def copy(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


@fq.kernel
def fill(item: fq.Item, out, value):
    i = item.get_id(0)
    out[i] = value


# ------------------------------------------------------------------------------- fuse
def test_one_view_is_one_parameter():
    a, b, c = vector(), vector(), vector()
    result = fused((copy, N, a, b), (copy, N, b, c))
    arrays = [p.name for p in result.kernel.params if isinstance(p, ArrayParam)]
    assert arrays == ["a", "out", "out_1"]
    assert all(p.restrict for p in result.kernel.params if isinstance(p, ArrayParam))


def test_overlapping_views_are_parameters_that_may_alias():
    base, c = vector(N + 1), vector()
    result = fused((copy, N, base[:N], c), (copy, N, base[1:], c))
    restrict = {p.name: p.restrict for p in result.kernel.params if isinstance(p, ArrayParam)}
    assert restrict == {"a": False, "out": True, "a_1": False}


def test_strided_views_are_not_contiguous():
    base, c = vector(2 * N), vector()
    (param, *_) = fused((copy, N, base[::2], c)).kernel.params
    assert not param.contiguous


def test_equal_ranges_share_a_guard_and_others_do_not():
    a, b, c = vector(), vector(), vector()
    text = lines(fused((copy, N, a, b), (copy, N, a, c), (copy, N - 1, a, b)).kernel)
    assert text.count("if item.get_id(0) < range_0:") == 1
    assert text.count("if item.get_id(0) < range_1:") == 1


def test_scalars_and_variables_of_different_submissions_do_not_mix():
    a, b = vector(), vector()
    text = "\n".join(lines(fused((fill, N, a, 1.0), (fill, N, b, 2.0)).kernel))
    assert "value" in text
    assert "value_1" in text
    assert "i_1 = item.get_id(0)" in text


def test_linear_ids_are_taken_apart():
    @fq.kernel
    def copy2(item: fq.Item, a, out):
        i = item.get_id(0)
        j = item.get_id(1)
        out[i, j] = a[i, j]

    a, b, c = vector(), vector(), np.zeros((4, 8), np.float32)
    text = lines(fused((copy, N, a, b), (copy2, (4, 8), b.reshape(4, 8), c)).kernel)
    assert "id_1 = item.get_id(0) % range_1" in text
    assert "id_0 = item.get_id(0) // range_1" in text
    assert "if item.get_id(0) < range_2 * range_1:" in text


# ---------------------------------------------------------------- ids and dead stores
def test_ids_are_propagated():
    a, b = vector(), vector()
    kernel = propagate_ids(fused((copy, N, a, b)).kernel)
    assert kernel.variables == ()
    assert "out[item.get_id(0)] = a[item.get_id(0)]" in lines(kernel)


def test_variable_that_is_assigned_twice_is_not_propagated():
    @fq.kernel
    def moved(item: fq.Item, a, out):
        i = item.get_id(0)
        if a[i] > 0:
            i = item.get_range(0) - 1
        out[i] = a[i]

    kernel = propagate_ids(fused((moved, N, vector(), vector())).kernel)
    assert [name for name, _ in kernel.variables] == ["i"]


@pytest.mark.parametrize("size", ["item.get_local_range(0)", "4"])
def test_the_id_of_a_group_times_its_size_and_the_local_id_are_the_global_id(size):
    kernel = from_text(f"""def random_body(item: fq.NdItem, a, out):
    group = item.get_group().get_group_id(0)
    local = item.get_local_id(0)
    i = group * {size} + local
    j = local + {size} * group
    out[i] = a[j]
""")
    made = fused((kernel, fq.NdRange(8, 4), vector(8), vector(8))).kernel
    text = lines(propagate_ids(made, local_range=(4,)))
    assert "out[item.get_id(0)] = a[item.get_id(0)]" in text
    without = lines(propagate_ids(made))
    assert "out[i] = a[j]" in without


def test_the_id_of_a_group_times_another_number_stays():
    @fq.kernel
    def placed(item: fq.NdItem, a, out):
        i = item.get_group().get_group_id(0) * 2 + item.get_local_id(0)
        out[i] = a[item.get_group().get_group_id(0) * item.get_local_range(0)]

    made = fused((placed, fq.NdRange(8, 4), vector(8), vector(8))).kernel
    assert not any("item.get_id" in line for line in lines(propagate_ids(made, local_range=(4,))))


def test_overwritten_store_is_dropped():
    a, b = vector(), vector()
    text = lines(finished((fill, N, b, 0.0), (copy, N, a, b)).kernel)
    assert not any("value" in line for line in text)
    assert "out[item.get_id(0)] = a[item.get_id(0)]" in text


def test_store_that_is_read_before_it_is_overwritten_stays():
    a, b, c = vector(), vector(), vector()
    text = lines(finished((fill, N, b, 0.0), (copy, N, b, c), (copy, N, a, b)).kernel)
    assert any(line.endswith("np.float32(value)") or line.endswith("value") for line in text)


def test_store_under_another_guard_stays():
    a, b = vector(), vector()
    text = lines(finished((fill, N, b, 0.0), (copy, N - 1, a, b)).kernel)
    assert sum("out[item.get_id(0)] = " in line for line in text) == 2


def test_store_through_an_overlapping_view_stays():
    base, a, c = vector(N + 1), vector(), vector()
    kernel = fused((fill, N, base[:N], 0.0), (copy, N, base[1:], c), (copy, N, a, base[:N])).kernel
    assert eliminate_dead_stores(propagate_ids(kernel)) == propagate_ids(kernel)


def test_store_that_the_overwriting_store_reads_stays():
    @fq.kernel
    def double(item: fq.Item, out):
        i = item.get_id(0)
        out[i] = out[i] + out[i]

    b = vector()
    text = lines(finished((fill, N, b, 1.0), (double, N, b)).kernel)
    assert sum("out[item.get_id(0)] = " in line for line in text) == 2


def test_store_whose_index_changes_in_between_stays():
    @fq.kernel
    def two_places(item: fq.Item, a, out):
        j = 0
        out[j] = a[0]
        j = 1
        out[j] = a[1]

    text = lines(finished((two_places, 1, vector(), vector())).kernel)
    assert sum(line.startswith("out[") for line in text) == 2


def test_unused_parameters_disappear():
    @fq.kernel
    def half_used(item: fq.Item, a, b, k, out):
        i = item.get_id(0)
        out[i] = a[i]

    result = finished((half_used, N, vector(), vector(), 3, vector()))
    assert [p.name for p in result.kernel.params] == ["a", "out", "range_0"]
    assert set(result.sources) == {"a", "out", "range_0"}


def test_interior_views_keep_their_unit_stride():
    @fq.kernel
    def copy2(item: fq.Item, a, out):
        i = item.get_id(0)
        j = item.get_id(1)
        out[i, j] = a[i, j]

    base, out = np.zeros((6, 6), np.float32), np.zeros((4, 4), np.float32)
    (interior, _, *_) = fused((copy2, (4, 4), base[1:-1, 1:-1], out)).kernel.params
    assert (interior.contiguous, interior.unit_stride) == (False, True)
    (columns, _, *_) = fused((copy2, (3, 3), base[:3, ::2], out[:3, :3])).kernel.params
    assert (columns.contiguous, columns.unit_stride) == (False, False)
