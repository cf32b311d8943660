"""A kernel that divides its linear id, over rows: the same elements, each by one work-item."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import Binary, Extent, ItemQuery
from fusionq.ir.verifier import verify
from fusionq.ir.walk import expressions
from fusionq.passes.rows_of_items import rows_of_items
from tests.unit.frontend.running import binding, specialised

N, M, P = 3, 4, 5


@fq.kernel
def plane(item: fq.Item, a, b):
    m = a.shape[1]
    i = item.get_linear_id() // m
    j = item.get_linear_id() % m
    b[i, j] = a[i, max(j - 1, 0)] * 2 + i


@fq.kernel
def by_two_arrays(item: fq.Item, a, b):
    i = item.get_id(0) // b.shape[1]
    j = item.get_id(0) % a.shape[1]
    if item.get_id(0) < a.shape[0] * a.shape[1] - 2:
        b[i, j] = a[i, j] + item.get_id(0) - item.get_linear_range()


@fq.kernel
def box(item: fq.Item, a, b):
    n, p = a.shape[1], a.shape[2]
    i = item.get_linear_id() // (n * p)
    j = item.get_linear_id() // p % n
    k = item.get_linear_id() % p
    b[i, j, k] = a[i, j, max(k - 1, 0)] + i * 100 + j * 10 + k


@fq.kernel
def turned_box(item: fq.Item, a, b):
    i = item.get_linear_id() // (a.shape[2] * a.shape[1])
    j = item.get_linear_id() // a.shape[2] % a.shape[1]
    k = item.get_linear_id() % a.shape[2]
    b[i, j, k] = a[i, j, k] - j


@fq.kernel
def rows_only(item: fq.Item, a, b):
    i = item.get_linear_id() // a.shape[1]
    b[i, 0] = a[i, 0]


@fq.kernel
def by_a_number(item: fq.Item, a, b):
    b[item.get_id(0) // 4, item.get_id(0) % 4] = a[item.get_id(0) // 4, item.get_id(0) % 4] + 1


def sizes_of(arrays):
    return {
        Extent(name, dim): extent
        for name, array in arrays.items()
        for dim, extent in enumerate(array.shape)
    }


def run(kernel, shape, arrays):
    verify(kernel)
    backend = ReferenceBackend(order="natural")
    bindings = [binding(arrays[p.name]) for p in kernel.params]
    launch = LaunchShape(shape, (1,) * len(shape))
    backend.prepare(backend.build(kernel, "strict"), bindings, launch).launch()
    return arrays["b"]


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [(plane, (N, M)), (plane, (M, M)), (plane, (1, M)), (by_two_arrays, (N, M)),
     (box, (2, N, M)), (box, (N, N, N)), (turned_box, (M, 1, P)), (turned_box, (P, M, N))],
)  # fmt: skip
def test_rows_are_the_same_work_items(kernel, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(1).integers(-9, 10, shape)
    arrays = {"a": a, "b": np.zeros(shape, a.dtype)}
    ir = specialised(kernel, (a.size,), *arrays.values())
    found = rows_of_items(ir, sizes_of(arrays), a.size)
    assert found is not None
    rows, extents = found
    sizes = sizes_of(arrays)
    assert tuple(sizes[e] for e in extents) == shape
    assert rows.ndim == len(shape)
    expected = run(ir, (a.size,), {"a": a, "b": arrays["b"].copy()})
    np.testing.assert_array_equal(run(rows, shape, arrays), expected)
    divided = {
        e.op for e in expressions(rows.body)
        if isinstance(e, Binary) and e.op in ("floordiv", "mod")
        and any(isinstance(x, ItemQuery) for x in (e.lhs, e.rhs))
    }  # fmt: skip
    assert not divided


@pytest.mark.parametrize(
    ("kernel", "shape", "items"),
    [
        (plane, (N, M), N * M - 1),  # no whole rows
        (plane, (N, M), 7 * M),  # as many rows as no array has
        (rows_only, (N, M), N * M),
        (by_a_number, (N, M), N * M),
        (box, (2, N, P), 7 * N * P),
    ],
)
def test_other_kernels_stay_as_they_are(kernel, shape, items: int) -> None:
    arrays = {"a": np.zeros(shape, np.int64), "b": np.zeros(shape, np.int64)}
    ir = specialised(kernel, (items,), *arrays.values())
    assert rows_of_items(ir, sizes_of(arrays), items) is None
