"""Which loops in rows several vectors share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.interior import parted
from fusionq.codegen.jammed_loops import JammedLoops, jammed_loops
from fusionq.codegen.row_segments import row_segments
from fusionq.ir.nodes import ArrayDecl, ArrayParam, Assign, Break, For, If, Kernel, Store, While
from fusionq.ir.types import FLOAT32
from fusionq.ir.walk import statements
from fusionq.passes.propagate_ids import propagate_ids
from tests.unit.frontend.running import specialised
from tests.unit.megakernel.plans import persistent

ROWS, COLUMNS = 6, 300


@fq.kernel
def product(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(i * 2, min(i * 2 + 2, a.shape[0])):
        total += x[k] * a[k, j]
    out[i, j] = total


@fq.kernel
def with_two(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total, least = a.dtype.type(0), a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k, j + 1]
        least = min(least, a[k, j])
    out[i, j] = total * least


@fq.kernel
def inside(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1) + 1
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k, j]
    out[i, j] = total


@fq.kernel
def on_the_last_row(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    if i == 5:
        total = a.dtype.type(0)
        for k in range(a.shape[0]):
            total += a[k, j]
        out[i, j] = total


@fq.kernel
def up_to_the_id(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(min(j, a.shape[0])):
        total += a[k, j]
    out[i, j] = total


@fq.kernel
def up_to_an_element(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(int(x[i])):
        total += a[k, j]
    out[i, j] = total


@fq.kernel
def up_to_a_found_value(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    most = 3
    if a[i, j] > 0:
        most = 2
    total = a.dtype.type(0)
    for k in range(most):
        total += a[k, j]
    out[i, j] = total


@fq.kernel
def where_positive(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        if a[k, j] > 0:
            total += a[k, j]
    out[i, j] = total


@fq.kernel
def in_memory(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    j = item.get_id(1)
    for k in range(1, a.shape[0]):
        out[k, j] = out[k - 1, j] * a[k, j]


@fq.kernel
def until_found(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        if k == x.shape[0] - 1:
            break
        total += a[k, j]
    out[i, j] = total


@fq.kernel
def while_there(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total, k = a.dtype.type(0), 0
    while k < a.shape[0]:
        total += a[k, j]
        k += 1 + k % 2
    out[i, j] = total


@fq.kernel
def across(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[j % 6, k] * a[i, 2 * j + k]
    out[i, j] = total


@fq.kernel
def one_row_each(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[j % 6, k] - a[i, j]
    out[i, j] = total


@fq.kernel
def beside_rows(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k, j]
    for k in range(a.shape[1]):
        total += a[j, k]
    out[i, j] = total


@fq.kernel
def the_same_row(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[i, j] * x[k]
    out[i, j] = total


@fq.kernel
def at_found_places(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    place = int(a[i, j])
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k, j + place]
    out[i, j] = total


@fq.kernel
def counted(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    for k in range(a.shape[0]):
        fq.AtomicRef(out, (i, j)).fetch_add(a[k, j])


@fq.kernel
def no_loop(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] + x[i]


def arrays(dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    return np.ones(ROWS, dtype), np.ones((ROWS, COLUMNS), dtype), np.ones((ROWS, COLUMNS), dtype)


def lowered(kernel: Any, dtype: Any = np.float32) -> Kernel:
    return propagate_ids(specialised(kernel, (ROWS, COLUMNS), *arrays(dtype)))


def found(kernel: Any, dtype: Any = np.float32, **changed: Any) -> JammedLoops | None:
    ir = replace(lowered(kernel, dtype), **changed)
    return jammed_loops(ir, ir.body, 16)


@pytest.mark.parametrize(
    ("kernel", "dtype", "items"),
    [
        (product, np.float32, 8),
        (product, np.float64, 4),
        (product, np.int16, 16),
        (with_two, np.float32, 4),
        (with_two, np.float64, 2),
        (on_the_last_row, np.float32, 8),
        (inside, np.float32, 8),
        (where_positive, np.float32, 8),
        (in_memory, np.float32, 8),
        (in_memory, np.float64, 4),
    ],
)
def test_as_many_vectors_as_their_variables_have_registers(
    kernel: Any, dtype: Any, items: int
) -> None:
    jam = found(kernel, dtype)
    assert jam is not None and jam.items == items
    assert items * np.dtype(dtype).itemsize <= CODE_LIMITS.jammed_bytes


def test_each_statement_is_done_for_all_before_the_next() -> None:
    jam = found(product, np.float64)
    assert jam is not None
    before, loop, *stores = [s for s in jam.body if isinstance(s, (Assign, For, Store))][3:]
    assert isinstance(before, Assign) and before.name == "total 3"
    assert isinstance(loop, For)
    assert [s.name for s in loop.body if isinstance(s, Assign)] == [
        "total", "total 1", "total 2", "total 3",
    ]  # fmt: skip
    assert len(stores) == 4 and all(isinstance(s, Store) for s in stores)
    assert [name for name, _ in jam.variables] == ["total 1", "total 2", "total 3"]


@pytest.mark.parametrize(
    "kernel",
    [
        up_to_the_id, up_to_an_element, up_to_a_found_value, until_found,
        while_there, across, one_row_each, beside_rows, the_same_row, at_found_places, counted,
        no_loop,
    ],
)  # fmt: skip
def test_what_is_not_the_same_for_a_row_or_reads_no_rows(kernel: Any) -> None:
    assert found(kernel) is None


def test_what_data_decides_is_done_for_one_vector_after_the_other() -> None:
    jam = found(where_positive)
    assert jam is not None
    (loop,) = (s for s in jam.body if isinstance(s, For))
    added = [s.name for part in loop.body if isinstance(part, If) for s in statements((part,))
             if isinstance(s, Assign)]  # fmt: skip
    assert added == ["total", *(f"total {k}" for k in range(1, 8))]


def test_what_the_others_are_refused_for_is_in_them() -> None:
    """The front end has not made something else of them."""
    for kernel, kind in ((until_found, Break), (while_there, While)):
        ir = lowered(kernel)
        assert any(isinstance(s, kind) for s in statements(ir.body))


def test_in_a_segment_of_a_row_its_values_are_the_same_for_all() -> None:
    @fq.kernel
    def linear(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
        i, j = item.get_linear_id() // a.shape[1], item.get_linear_id() % a.shape[1]
        total = a.dtype.type(0)
        for k in range(i + 1):
            total += a[k, j]
        out[i, j] = total

    ir = propagate_ids(specialised(linear, (ROWS * COLUMNS,), *arrays()))
    assert jammed_loops(ir, ir.body, 16) is None
    segments = row_segments(ir, ir.body)
    assert segments is not None
    own = [segments.first, *(name for name, _ in segments.values)]
    jam = jammed_loops(ir, segments.body, 16, own)
    assert jam is not None and jam.items == 8
    assert jammed_loops(ir, segments.body, 16, own[1:2]) is None


def test_rows_that_are_not_neighbours_in_memory() -> None:
    ir = lowered(product)
    params = tuple(
        replace(p, contiguous=False, unit_stride=p.name != "a") if isinstance(p, ArrayParam) else p
        for p in ir.params
    )
    assert found(product, params=params) is None
    near = tuple(replace(p, unit_stride=True) if isinstance(p, ArrayParam) else p for p in params)
    assert found(product, params=near) is not None


def test_private_arrays_of_which_each_work_item_has_one() -> None:
    ir = lowered(product)
    private = ArrayDecl("x", FLOAT32, (ROWS,), "private")
    without = tuple(p for p in ir.params if p.name != "x")
    assert found(product, params=without, arrays=(private,)) is None


def test_much_code_is_done_for_fewer() -> None:
    assert found(product, body=3 * lowered(product).body) is not None
    ir = lowered(product)
    long = replace(ir, body=20 * ir.body)
    assert jammed_loops(long, long.body, 16) is None


def test_in_the_interior_of_a_stage() -> None:
    @fq.kernel
    def turned(item: fq.Item, a, out):  # type: ignore[no-untyped-def]  # kernel language
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = a[a.shape[0] - 1 - i, a.shape[1] - 1 - j]

    x, a, out = arrays()
    shape = (ROWS, COLUMNS)
    code = persistent((product, shape, x, a, out), (turned, shape, out, a)).body.codes[0]
    body, inner = parted(code)
    assert jammed_loops(code.kernel, body if inner is None else inner.body, 16) is not None


def test_what_an_iteration_computes_for_itself_takes_no_registers_for_long() -> None:
    @fq.kernel
    def swept(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
        j = item.get_id(1)
        for k in range(1, a.shape[0]):
            one = a[k, j] * out[k - 1, j]
            two = one * one + a[k - 1, j]
            three = two - one
            out[k, j] = one / three

    @fq.kernel
    def kept(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
        j = item.get_id(1)
        one, two, three = a[0, j], a[0, j], a[0, j]
        for k in range(1, a.shape[0]):
            one = a[k, j] * three
            two = one * two
            three = two - one
        out[0, j] = one / three

    for kernel, items in ((swept, 4), (kept, 1)):
        jam = found(kernel, np.float64)
        assert (1 if jam is None else jam.items) == items


def test_but_they_are_not_without_limit() -> None:
    @fq.kernel
    def long(item: fq.Item, x, a, out):  # type: ignore[no-untyped-def]  # kernel language
        j = item.get_id(1)
        for k in range(1, a.shape[0]):
            b = a[k, j] * out[k - 1, j]
            c = b * b + a[k - 1, j]
            d = c - b
            e = c * d
            f = e - d
            g = f * e
            h = g - f
            m = h * g
            n = m - h
            out[k, j] = b + c + d + e + f + g + h + m / n

    jam = jammed_loops(lowered(long, np.float64), lowered(long, np.float64).body, 16, (), 10_000)
    assert jam is not None and jam.items == 2
    assert CODE_LIMITS.jammed_temporaries // 9 // 8 == 3
