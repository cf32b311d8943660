"""Work-items that do several neighbours of an outer dimension together."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.options import FusionOptions
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import For, Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.ir.walk import statements
from fusionq.passes.jam_items import JammedItems, jammed_items
from fusionq.planning.launching import launch_shape_of
from fusionq.planning.planner import holds_for, make_plan
from tests.unit.frontend.running import binding
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

TARGET = replace(TWO_CORES, device=replace(TWO_CORES.device, jams_items=True))


@fq.kernel
def product(item: fq.Item, a, b, c):
    i, j = item.get_id(0), item.get_id(1)
    s = a.dtype.type(0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@fq.kernel
def guarded(item: fq.Item, a, b, c):
    i, j = item.get_id(0), item.get_id(1)
    if 1 <= i < c.shape[0] - 1 and j < c.shape[1] - 1:
        s = a.dtype.type(0)
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@fq.kernel
def channels(item: fq.Item, x, w, out):
    o, i, j = item.get_id(0), item.get_id(1), item.get_id(2)
    s = x.dtype.type(0)
    for c in range(x.shape[0]):
        s += x[c, i, j] * w[o, c]
    out[o, i, j] = s


@fq.kernel
def in_groups(item: fq.NdItem, a, b, c):
    i, j = item.get_global_id(0), item.get_global_id(1)
    s = a.dtype.type(0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    fq.group_barrier(item.get_group())
    c[i, j] = s


@fq.kernel
def counted(item: fq.Item, a, b, c):
    i, j = item.get_id(0), item.get_id(1)
    for k in range(a.shape[1]):
        if a[i, k] > b[k, j]:
            fq.AtomicRef(c, (i, j)).fetch_add(c.dtype.type(1))


@fq.kernel
def with_table(item: fq.Item, a, b, c):
    i, j = item.get_id(0), item.get_id(1)
    kept = fq.PrivateArray(2, np.float32)
    kept[0] = a.dtype.type(0)
    for k in range(a.shape[1]):
        kept[0] += a[i, k] * b[k, j]
    c[i, j] = kept[0]


@fq.kernel
def until(item: fq.Item, a, b, c):
    i, j = item.get_id(0), item.get_id(1)
    s = a.dtype.type(0)
    k = 0
    while k < a.shape[1]:
        s += a[i, k] * b[k, j]
        k += 1 + k % 2
    c[i, j] = s


@fq.kernel
def of_vectors(item: fq.Item, a, b, c):
    """Nothing that differs within a vector is the same for rows."""
    i, j = item.get_id(0), item.get_id(1)
    s = a.dtype.type(0)
    for k in range(b.shape[0]):
        s += b[k, 0] * c[i, j]
    c[i, j] = s


def arrays(rows: int, length: int, columns: int, dtype: str = "float32") -> list[Any]:
    rng = np.random.default_rng(rows)
    shapes = (rows, length), (length, columns), (rows, columns)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def plain(kernel: Any, items: Any, *given: Any) -> Kernel:
    """The kernel of a launch by itself, each of whose work-items does its own."""
    (found,) = submissions((kernel, items, *given))
    (stage,) = make_plan([found], FusionOptions(strategy="unfused"), TARGET).stages
    assert not stage.items_at_once
    return stage.kernel


def jam(kernel: Any, rows: int, *given: Any, dim: int = 0, most: int = 32) -> JammedItems | None:
    return jammed_items(plain(kernel, given[-1].shape, *given), dim, most)


def run(kernel: Kernel, shape: tuple[int, ...], given: list[Any]) -> Any:
    verify(kernel)
    backend = ReferenceBackend(order="natural")
    *inputs, out = given
    out = out.copy()
    values = dict(zip((p.name for p in kernel.params), (*inputs, out), strict=False))
    bindings = [
        binding(values[p.name]) if p.name in values else given[-1].shape[int(p.name[-1])]
        for p in kernel.params
    ]
    launch = LaunchShape(shape, (1,) * len(shape))
    backend.prepare(backend.build(kernel, "strict"), bindings, launch).launch()
    return out


@pytest.mark.parametrize("kernel", [product, guarded], ids=lambda k: k.__name__)
@pytest.mark.parametrize("rows", [1, 3, 4, 6, 9, 16])
def test_every_row_is_done_once(kernel: Any, rows: int) -> None:
    given = arrays(rows, 3, 5)
    ir = plain(kernel, given[-1].shape, *given)
    found = jammed_items(ir, 0, 32)
    assert found is not None and (found.dim, found.items) == (0, 4)
    expected = run(ir, given[-1].shape, given)
    np.testing.assert_array_equal(run(found.kernel, (-(-rows // 4), 5), given), expected)


def test_the_text() -> None:
    found = jam(guarded, 8, *arrays(8, 6, 10))
    assert found is not None
    assert print_kernel(found.kernel) == GUARDED


GUARDED = """\
def guarded(item, a, b, c, range_0, range_1):
    # a: float32[:, :], b: float32[:, :], c: float32[:, :], range_0: int64, range_1: int64
    if item.get_id(0) < (range_0 + 3) // 4 and item.get_id(1) < range_1:
        if item.get_id(1) < c.shape[1] - 1:
            first_0 = item.get_id(0) * 4
            if first_0 + 4 <= range_0 and 1 <= first_0 and 1 <= first_0 + 1 \
and 1 <= first_0 + 2 and 1 <= first_0 + 3 and first_0 < c.shape[0] - 1 \
and first_0 + 1 < c.shape[0] - 1 and first_0 + 2 < c.shape[0] - 1 \
and first_0 + 3 < c.shape[0] - 1:
                # guarded
                s = np.float32(0.0)
                s_1 = np.float32(0.0)
                s_2 = np.float32(0.0)
                s_3 = np.float32(0.0)
                for k in range(a.shape[1]):
                    s = s + a[first_0, k] * b[k, item.get_id(1)]
                    s_1 = s_1 + a[first_0 + 1, k] * b[k, item.get_id(1)]
                    s_2 = s_2 + a[first_0 + 2, k] * b[k, item.get_id(1)]
                    s_3 = s_3 + a[first_0 + 3, k] * b[k, item.get_id(1)]
                c[first_0, item.get_id(1)] = s
                c[first_0 + 1, item.get_id(1)] = s_1
                c[first_0 + 2, item.get_id(1)] = s_2
                c[first_0 + 3, item.get_id(1)] = s_3
            else:
                for item_0 in range(first_0, np.minimum(first_0 + 4, range_0)):
                    # guarded
                    if 1 <= item_0 and item_0 < c.shape[0] - 1 \
and item.get_id(1) < c.shape[1] - 1:
                        s = np.float32(0.0)
                        for k in range(a.shape[1]):
                            s = s + a[item_0, k] * b[k, item.get_id(1)]
                        c[item_0, item.get_id(1)] = s
"""


def test_sums_stay_in_registers() -> None:
    """As many rows as their sums leave room for."""
    for dtype, most, items in (("float64", 32, 4), ("float64", 16, 2), ("float32", 8, 2)):
        found = jam(product, 8, *arrays(8, 6, 10, dtype), most=most)
        assert found is not None and found.items == items
    assert jam(product, 8, *arrays(8, 6, 10, "float64"), most=8) is None


def test_loops_of_launches_are_shared() -> None:
    found = jam(product, 8, *arrays(8, 6, 10))
    assert found is not None
    assert len(found.loops) == 1
    assert sum(isinstance(s, For) for s in statements(found.together.body)) == 1


def test_the_dimension_counts() -> None:
    x, w, out = np.ones((4, 6, 8)), np.ones((9, 4)), np.ones((9, 6, 8))
    assert jam(channels, 9, x, w, out, dim=0) is not None
    assert jam(channels, 9, x, w, out, dim=1) is None


@pytest.mark.parametrize(
    "kernel", [counted, with_table, until, of_vectors], ids=lambda k: k.__name__
)
def test_what_is_left_alone(kernel: Any) -> None:
    assert jam(kernel, 8, *arrays(8, 6, 10)) is None


def test_work_groups_are_left_alone() -> None:
    a, b, c = arrays(64, 64, 64)
    (found,) = submissions((in_groups, fq.NdRange((64, 64), (1, 64)), a, b, c))
    (stage,) = make_plan([found], FusionOptions(strategy="sequence"), TARGET).stages
    assert not stage.items_at_once
    assert jammed_items(stage.kernel, 0, 32) is None


# ----------------------------------------------------------------------------------- plans
def planned(rows: int, length: int, columns: int, strategy: Any = "sequence") -> Any:
    found = submissions((product, (rows, columns), *arrays(rows, length, columns)))
    return make_plan(found, FusionOptions(strategy=strategy), TARGET)


def test_launches_are_as_many_rows_less() -> None:
    found = submissions((product, (514, 512), *arrays(514, 512, 512)))
    plan = make_plan(found, FusionOptions(strategy="sequence"), TARGET)
    (stage,) = plan.stages
    assert (plan.strategy, stage.items_at_once) == ("sequence", (4, 1))
    shape = launch_shape_of(stage, found, TARGET)
    assert shape is not None
    assert 129 * 512 <= prod(shape.global_range) < 140 * 512


@pytest.mark.parametrize(
    ("rows", "length", "columns"), [(6, 512, 4096), (512, 15, 512), (32, 32, 32), (0, 64, 64)]
)
def test_small_launches_stay_as_they_are(rows: int, length: int, columns: int) -> None:
    (stage,) = planned(rows, length, columns).stages
    assert not stage.items_at_once


def test_plain_submits_stay_as_they_are() -> None:
    plan = planned(512, 512, 512, "unfused")
    assert plan.strategy == "unfused"
    assert not plan.stages[0].items_at_once


def test_the_plan_serves_sizes_on_its_side() -> None:
    def of(rows: int, length: int, columns: int) -> Any:
        return submissions((product, (rows, columns), *arrays(rows, length, columns)))

    large = planned(512, 500, 640)
    assert large.stages[0].items_at_once
    assert holds_for(large, of(300, 400, 600))
    assert not holds_for(large, of(512, 8, 640))
    assert not holds_for(large, of(16, 500, 24))
    short = planned(512, 8, 640)
    assert not short.stages[0].items_at_once
    assert holds_for(short, of(300, 7, 600))
    assert not holds_for(short, of(512, 500, 640))
