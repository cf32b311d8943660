"""A kernel over the parts of points, of which each work-item does all of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import Kernel
from fusionq.ir.printer import print_kernel
from fusionq.ir.verifier import verify
from fusionq.passes.points_of_items import points_of_items
from tests.unit.frontend.running import binding, specialised


@fq.kernel
def moved(item: fq.Item, a, b):
    i, place = item.get_id(0), item.get_id(1)
    if a[i, place] > 2:
        return
    b[i, place] = b[i, place] + a[i, (place + 1) % item.get_range(1)] + item.get_linear_id()


@fq.kernel
def of_pixels(item: fq.Item, a, b):
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    b[y, x, c] = a[y, x, c] * 10 + item.get_range(0) - item.get_range(1) * item.get_range(2)


def test_what_it_becomes() -> None:
    kernel = specialised(moved, (5, 3), np.zeros((5, 3), np.int64), np.zeros((5, 3), np.int64))
    made = points_of_items(kernel, 3)
    verify(made)
    assert made.ndim == 1
    assert print_kernel(made) == """\
def moved(item, a, b):
    # a: int64[:, :], b: int64[:, :]
    for place in range(3):
        if a[item.get_id(0), place] <= 2:
            b[item.get_id(0), place] = b[item.get_id(0), place] + a[item.get_id(0), (place + 1) % 3] + (item.get_id(0) * 3 + place)
"""  # noqa: E501


@fq.kernel
def guarded(item: fq.Item, a, b):
    y, x, c = item.get_id(0), item.get_id(1), item.get_id(2)
    last = c * 2 // 3
    width = a.shape[1] // 2
    if y == 0 or x >= width:
        return
    first = a[y, x, 0]
    if y > c:
        b[y, x, c] = first + last


def test_what_is_the_same_for_all_parts_is_done_once():
    kernel = specialised(guarded, (5, 4, 3), *[np.zeros((5, 4, 3), np.int64)] * 2)
    made = points_of_items(kernel, 3)
    verify(made)
    assert print_kernel(made) == """\
def guarded(item, a, b):
    # a: int64[:, :, :], b: int64[:, :, :]
    width = a.shape[1] // 2
    if not (item.get_id(0) == 0 or item.get_id(1) >= width):
        for place in range(3):
            last = place * 2 // 3
            first = a[item.get_id(0), item.get_id(1), 0]
            if item.get_id(0) > place:
                b[item.get_id(0), item.get_id(1), place] = first + last
"""


def run(made: Kernel, range_: tuple[int, ...], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    verify(made)
    backend = ReferenceBackend(order="natural")
    of_params = {"a": a, "b": b.copy()}
    bindings = [binding(of_params[p.name]) for p in made.params]
    launch = LaunchShape(range_, (1,) * len(range_))
    backend.prepare(backend.build(made, "strict"), bindings, launch).launch()
    return of_params["b"]


@pytest.mark.parametrize(
    "kernel, shape", ((moved, (7, 1)), (moved, (7, 4)), (of_pixels, (3, 5, 3)))
)
def test_it_does_each_work_item_once(kernel: Any, shape: tuple[int, ...]) -> None:
    a = np.arange(np.prod(shape)).reshape(shape) % 5
    b = a * 100

    one = specialised(kernel, shape, a, b)
    found = run(points_of_items(one, shape[-1]), shape[:-1], a, b)
    np.testing.assert_array_equal(found, run(one, shape, a, b))
    assert (found != b).any()
