"""A kernel over a plain range, over work-groups of which each does some of its work-items."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.passes.items_of_groups import items_of_groups, lanes_of
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
@pytest.mark.parametrize("each", (1, 3, 4))
def test_it_does_each_work_item_once(local: tuple[int, ...], each: int) -> None:
    groups = 5
    n = groups * each
    a, b = np.arange(n) % 5, np.arange(n) * 100
    kernel = specialised(numbered, (n,), a, b)
    whole = (groups * 4,) if len(local) == 1 else (groups, 4)
    found = run(items_of_groups(kernel, local, each), whole, local, a, b)
    np.testing.assert_array_equal(found, run(kernel, (n,), (1,), a, b))


def test_work_groups_that_are_rows() -> None:
    assert [lanes_of(local) for local in ((8,), (1, 8), (2, 8), (1, 1, 8))] == [8, 8, None, None]
