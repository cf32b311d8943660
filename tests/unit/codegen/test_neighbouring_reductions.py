"""Which reductions of work-groups are done together."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.codegen.neighbouring_reductions import side_by_side
from fusionq.codegen.scoping import flatten_blocks
from fusionq.ir.nodes import GroupCall, Stmt
from fusionq.ir.types import ScalarType
from fusionq.ir.walk import nested_bodies
from tests.unit.frontend.running import specialised

MOST = 4


@fq.kernel
def two(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    x, y = a[i], b[i]
    first = fq.reduce_over_group(group, x, "add")
    second = fq.reduce_over_group(group, x * y, "add")
    out[i] = first + second


@fq.kernel
def five(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    x, y = a[i], b[i]
    r = fq.reduce_over_group(group, x, "add")
    s = fq.reduce_over_group(group, y, "add")
    t = fq.reduce_over_group(group, x + y, "add")
    u = fq.reduce_over_group(group, x - y, "add")
    v = fq.reduce_over_group(group, x * y, "add")
    out[i] = r + s + t + u + v


@fq.kernel
def of_the_one_before(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    x = a[i]
    first = fq.reduce_over_group(group, x, "add")
    out[i] = fq.reduce_over_group(group, x - first, "add")


@fq.kernel
def of_a_copy(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    x = a[i]
    x = fq.reduce_over_group(group, x, "add")
    out[i] = fq.reduce_over_group(group, x * x, "add")


@fq.kernel
def of_memory(item: fq.NdItem, a, b, out):
    """Another work-item may have stored it before the first reduction."""
    i, group = item.get_local_id(0), item.get_group()
    x = a[i]
    out[i] = x
    first = fq.reduce_over_group(group, x, "add")
    second = fq.reduce_over_group(group, out[7 - i], "add")
    b[i] = first + second


@fq.kernel
def with_a_store_between(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    x = a[i]
    out[i] = fq.reduce_over_group(group, x, "add")
    b[i] = fq.reduce_over_group(group, x * x, "add")


@fq.kernel
def of_two_kinds(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    x = a[i]
    n = np.int32(i)
    least = fq.reduce_over_group(group, x, "min")
    most = fq.reduce_over_group(group, x, "max")
    places = fq.reduce_over_group(group, n, "max")
    out[i] = least + most + np.float32(places)


@fq.kernel
def scans(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    x, y = a[i], b[i]
    first = fq.inclusive_scan_over_group(group, x, "add")
    second = fq.inclusive_scan_over_group(group, y, "add")
    out[i] = first + second


@fq.kernel
def in_a_loop(item: fq.NdItem, a, b, out):
    i, group = item.get_local_id(0), item.get_group()
    total = np.float32(0)
    for k in range(3):
        x = a[i] * np.float32(k)
        y = b[i] - x
        first = fq.reduce_over_group(group, x, "max")
        second = fq.reduce_over_group(group, y, "max")
        total += first * second
    out[i] = total


def found_in(kernel: fq.KernelFunction, most: int = MOST) -> list[int]:
    """How many reductions are done together, for all places where some are."""
    arrays = [np.zeros(8, np.float32) for _ in range(3)]
    body = flatten_blocks(specialised(kernel, fq.NdRange(8, 8), *arrays).body)

    def found(body: tuple[Stmt, ...]) -> list[int]:
        places = side_by_side(body, lambda type: most if isinstance(type, ScalarType) else 1)
        for first, of in places.items():
            assert first == of[0] and of == sorted(of)
            assert all(isinstance(body[place], GroupCall) for place in of)
        inside = [n for stmt in body for part in nested_bodies(stmt) for n in found(part)]
        return [len(of) for of in places.values()] + inside

    return found(body)


@pytest.mark.parametrize(("kernel", "together"), [(two, [2]), (five, [4]), (in_a_loop, [2])])
def test_values_known_before_the_first_are_reduced_together(kernel, together) -> None:
    assert found_in(kernel) == together


def test_as_many_as_are_worth_while() -> None:
    assert found_in(five, 5) == [5]
    assert found_in(five, 2) == [2, 2]
    assert found_in(five, 1) == []


@pytest.mark.parametrize(
    "kernel",
    [of_the_one_before, of_a_copy, of_memory, with_a_store_between, of_two_kinds, scans],
    ids=lambda kernel: kernel.__name__,
)
def test_others_stay_alone(kernel) -> None:
    assert found_in(kernel) == []
