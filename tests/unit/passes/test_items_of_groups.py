"""A kernel over a plain range, over work-groups of which each does some of its work-items."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import Extent
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.passes.items_of_groups import items_of_groups, lanes_of, rows_of_groups
from tests.unit.frontend.running import binding, specialised


@fq.kernel
def numbered(item: fq.Item, a, b):
    i = item.get_id(0)
    if a[i] > 2:
        b[i] = b[i] + a[i] * 10 + i - item.get_range(0)


def run(kernel, shape, local, a, b):
    verify(kernel)
    backend = ReferenceBackend(order="natural")
    of_params = {"a": a, "b": b.copy()}
    bindings = [binding(of_params[p.name]) for p in kernel.params]
    launch = LaunchShape(shape, local)
    backend.prepare(backend.build(kernel, "strict"), bindings, launch).launch()
    return of_params["b"]


def test_what_it_becomes() -> None:
    kernel = specialised(numbered, (12,), np.zeros(12, np.int64), np.zeros(12, np.int64))
    made = items_of_groups(kernel, (1, 4), 3)
    verify(made)
    assert made.ndim == 2
    assert print_kernel(made) == """\
def numbered(item, a, b):
    # a: int64[:], b: int64[:]
    if item.get_id(1) < 3:
        i = 3 * item.get_id(0) + item.get_id(1)
        if a[i] > 2:
            b[i] = b[i] + a[i] * 10 + i - 3 * item.get_range(0)
"""


@pytest.mark.parametrize("local", ((4,), (1, 4)))
@pytest.mark.parametrize("each", (1, 3, 4, 5, 11))
def test_it_does_each_work_item_once(local: tuple[int, ...], each: int) -> None:
    groups = 5
    n = groups * each
    a, b = np.arange(n) % 5, np.arange(n) * 100
    kernel = specialised(numbered, (n,), a, b)
    whole = (groups * 4,) if len(local) == 1 else (groups, 4)
    found = run(items_of_groups(kernel, local, each), whole, local, a, b)
    np.testing.assert_array_equal(found, run(kernel, (n,), (1,), a, b))


@pytest.mark.parametrize("local", ((4,), (1, 4)))
@pytest.mark.parametrize("each", (1, 3, 4, 11))
def test_one_work_group_does_all(local: tuple[int, ...], each: int) -> None:
    a, b = np.arange(each) % 5, np.arange(each) * 100
    kernel = specialised(numbered, (each,), a, b)
    made = items_of_groups(kernel, local, each, alone=True)
    np.testing.assert_array_equal(run(made, local, local, a, b), run(kernel, (each,), (1,), a, b))
    assert "global" not in print_kernel(made) and "get_group" not in print_kernel(made)


def test_work_groups_that_are_rows() -> None:
    assert [lanes_of(local) for local in ((8,), (1, 8), (2, 8), (1, 1, 8))] == [8, 8, None, None]


@fq.kernel
def in_rows(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if a[j % 5] > 2:
        for place in range(j % 3):
            b[i, j] = b[i, j] * 3 + a[place] + item.get_range(1) - item.get_range(0)


@fq.kernel
def in_planes(item: fq.Item, a, b):
    i, k, j = item.get_id(0), item.get_id(1), item.get_id(2)
    b[i, k, j] = b[i, k, j] * 10 + a[(k + j) % 5] + item.get_range(1) * i


def test_what_rows_become() -> None:
    a, b = np.zeros(12, np.int64), np.zeros((5, 7), np.int64)
    made = rows_of_groups(specialised(in_rows, (5, 7), a, b), (1, 4), [Extent("b", 1)])
    verify(made)
    assert print_kernel(made).splitlines()[2:6] == [
        "    for place_1 in range(item.get_local_id(1), b.shape[1], 4):",
        "        i = item.get_global_id(0)",
        "        j = place_1",
        "        if a[j % 5] > 2:",
    ]


@pytest.mark.parametrize("local", ((4,), (1, 4)))
@pytest.mark.parametrize("columns", (1, 3, 4, 9))
def test_rows_do_each_work_item_once(local: tuple[int, ...], columns: int) -> None:
    a = np.arange(5) * 3 % 5
    whole = (20,) if len(local) == 1 else (5, 4)
    for kernel, shape in ((in_rows, (5, columns)), (in_planes, (5, 2, columns))):
        b = np.arange(np.prod(shape)).reshape(shape)
        ir = specialised(kernel, shape, a, b)
        inner = [Extent("b", d) for d in range(1, len(shape))]
        found = run(rows_of_groups(ir, local, inner), whole, local, a, b)
        np.testing.assert_array_equal(found, run(ir, shape, (1,) * len(shape), a, b))
