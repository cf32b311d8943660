"""A kernel over all elements of an array of which it writes some."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import Binary, Const, Expr, Extent, ItemQuery
from fusionq.ir.types import INT64
from fusionq.ir.verifier import verify
from fusionq.passes.extended_range import NotExtended, Writing, extended_range
from fusionq.passes.inline_producer import index_of
from tests.unit.frontend.running import binding, specialised

N = 9


def less(expr: Expr, number: int) -> Expr:
    return Binary(INT64, "sub", expr, Const(INT64, number))


@fq.kernel
def inside(item: fq.Item, a, b):
    i = item.get_id(0) + 1
    b[i] = a[i - 1] + a[i]


@fq.kernel
def of_the_range(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i + 2] = a[item.get_range(0) - 1 - i] * item.get_range(0)


@fq.kernel
def every_third(item: fq.Item, a, b):
    i = 3 * item.get_id(0) + 1
    if a[i] > 2:
        b[i] = a[i - 1]
    else:
        b[i] = -a[i]


@fq.kernel
def from_the_end(item: fq.Item, a, b):
    i = b.shape[0] - 2 - item.get_id(0)
    b[i] = a[i] * 5


ELEMENT = index_of(0)
LAST = less(Extent("b", 0), 2)


@pytest.mark.parametrize(
    ("kernel", "writer"),
    [
        (inside, less(ELEMENT, 1)),
        (of_the_range, less(ELEMENT, 2)),
        (every_third, Binary(INT64, "floordiv", less(ELEMENT, 1), Const(INT64, 3))),
        (from_the_end, Binary(INT64, "sub", LAST, ELEMENT)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
@pytest.mark.parametrize("items", [0, 1, 2, 3])
def test_it_writes_what_it_wrote(kernel, writer: Expr, items: int) -> None:
    a, b = np.arange(N) * 7 % 5, np.arange(100, 100 + N)
    ir = specialised(kernel, (items,), a, b)
    extended, size = extended_range(ir, Writing("b", (writer,)))
    verify(extended)
    assert extended.ndim == 1
    results = []
    for each, shape in ((ir, items), (extended, N)):
        arrays = {"a": a.copy(), "b": b.copy(), size: np.empty(items, b.dtype)}
        backend = ReferenceBackend(order="natural")
        bindings = [binding(arrays[p.name]) for p in each.params]
        launch = LaunchShape((shape,), (1,))
        backend.prepare(backend.build(each, "strict"), bindings, launch).launch()
        results.append(arrays["b"])
    np.testing.assert_array_equal(*results)


def test_the_row_of_a_plane_has_the_plane_s_work_items() -> None:
    @fq.kernel
    def row(item: fq.Item, a, b):
        j = item.get_id(0)
        b[2, j + 1] = a[j]

    a, b = np.arange(N), np.zeros((4, N), np.int64)
    ir = specialised(row, (5,), a, b)
    extended, size = extended_range(ir, Writing("b", (less(index_of(1), 1),)))
    assert extended.ndim == 2
    arrays = {"a": a, "b": b, size: np.empty(5, b.dtype)}
    backend = ReferenceBackend(order="natural")
    bindings = [binding(arrays[p.name]) for p in extended.params]
    program = backend.build(extended, "strict")
    backend.prepare(program, bindings, LaunchShape((4, N), (1, 1))).launch()
    assert b.nonzero()[0].tolist() == [2] * 4  # the first one's value is 0
    assert b[2, 1:6].tolist() == a[:5].tolist()


def test_elements_that_no_range_has_and_elements_that_are_not_known() -> None:
    @fq.kernel
    def deep(item: fq.Item, a, b):
        i = item.get_id(0)
        b[0, 0, 0, i + 1] = a[i]

    @fq.kernel
    def scattered(item: fq.Item, a, b):
        i = item.get_id(0)
        b[a[i]] = i

    a = np.arange(N)
    ir = specialised(deep, (5,), a, np.zeros((1, 1, 1, N), np.int64))
    with pytest.raises(NotExtended, match="it has 4 dimensions, and ranges have 3 at most"):
        extended_range(ir, Writing("b", (less(index_of(3), 1),)))
    ir = specialised(scattered, (5,), a, np.zeros(N, np.int64))
    with pytest.raises(NotExtended, match="which element of it a work-item leaves out"):
        extended_range(ir, Writing("b", (ItemQuery("global_id", 0),)))
