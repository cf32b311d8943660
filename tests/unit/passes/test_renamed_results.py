"""A kernel divided in two: one that computes some of its results, and one that copies them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import ReferenceBackend
from fusionq.base.target import LaunchShape
from fusionq.ir.nodes import Block, Store
from fusionq.ir.verifier import verify
from fusionq.ir.walk import statements
from fusionq.passes.renamed_results import NotRenamed, results_alone, results_copied
from tests.unit.frontend.running import binding, specialised

N = 8
A = np.array([3, -2, 5, 0, 7, -1, 4, 2], np.float32)
BEFORE = np.arange(100, 100 + N, dtype=np.float32)


@fq.kernel
def whole(item: fq.Item, a, b, other):
    i = item.get_id(0)
    b[i] = a[i] * 2
    other[i] = a[i] + 1


@fq.kernel
def in_a_condition(item: fq.Item, a, b, other):
    i = item.get_id(0)
    x = a[i] * 2
    other[i] = x
    if x > 4:
        b[i] = x
        other[i] = x + 1


@fq.kernel
def else_only(item: fq.Item, a, b, other):
    i = item.get_id(0)
    if a[i] > 3:
        other[i] = 1
    else:
        b[i] = a[i]


@fq.kernel
def nested(item: fq.Item, a, b, other):
    i = item.get_id(0)
    total = a[i] * 0
    for k in range(3):
        total += a[k]
    if i > 1:
        if a[i] > 0:
            b[i] = total
        elif a[i] < -1:
            b[i] = -total
    else:
        b[i] = a[i]
    other[i] = total


@fq.kernel
def one_behind_the_other(item: fq.Item, a, b, other):
    i = item.get_id(0)
    if a[i] > 2:
        b[i] = a[i]
    if a[i] > 4:
        b[i] = a[i] * 3
    if a[i] < 0:
        b[i] = 11
    other[i] = 1


@fq.kernel
def in_a_loop(item: fq.Item, a, b, other):
    i = item.get_id(0)
    for k in range(int(a[i])):
        if k % 2 == 1:
            b[i] = a[k] + k
    other[i] = 1


@fq.kernel
def in_a_while(item: fq.Item, a, b, other):
    i = item.get_id(0)
    left = int(a[i])
    while left > 1:
        b[i] = left
        left -= 2
    other[i] = left


@fq.kernel
def by_early_return(item: fq.Item, a, b, other):
    i = item.get_id(0)
    if a[i] < 0:
        return
    b[i] = a[i]
    if a[i] > 4:
        return
    other[i] = a[i]


@fq.kernel
def read_again(item: fq.Item, a, b, other):
    i = item.get_id(0)
    if a[i] > 1:
        b[i] = a[i] * 2
        b[i] = b[i] + a[0]
    other[i] = 1


@fq.kernel
def shifted(item: fq.Item, a, b, other):
    """Work-items that have no element of ``b``, at both ends."""
    i = item.get_id(0)
    if i > 1 and i < b.shape[0] + 1 and a[i % 8] > 0:
        b[i - 2] = a[i % 8]
    other[i % 8] = 1


@fq.kernel
def turned(item: fq.Item, a, b, other):
    """A plane whose second index may be beyond, and whose first may be before, its elements."""
    i = item.get_id(0)
    j = item.get_id(1)
    if i > 0 and j < 2 and i + j < 4:
        b[j, i - 1] = a[i]
    other[j, i] = 1


def run(kernel, shape, arrays):
    """Run a kernel's IR; ``arrays`` by the names of its parameters."""
    verify(kernel)
    backend = ReferenceBackend(order="natural")
    bindings = [binding(arrays[p.name]) for p in kernel.params]
    launch = LaunchShape(shape, (1,) * len(shape))
    backend.prepare(backend.build(kernel, "strict"), bindings, launch).launch()


def divided(ir, shape, arrays):
    """The arrays after a kernel, and after both of its parts, where ``b`` has memory of its own
    that is full of NaN."""
    expected = {name: array.copy() for name, array in arrays.items()}
    run(ir, shape, expected)
    parts = results_alone(ir, {"b"}, {"b"})
    alone, before = parts.kernel, parts.before
    assert parts.range_of is None
    assert {s.array for s in statements(alone.body) if isinstance(s, Store)} == {"b"}
    own = np.full_like(arrays["b"], np.nan)
    found = {name: array.copy() for name, array in arrays.items()}
    run(alone, shape, {**found, "b": own, before["b"]: found["b"]})
    try:
        copied, computed = results_copied(ir, {"b"}, {"b"})
    except NotRenamed:
        found["b"][...] = own
        return found, {**expected, "other": found["other"]}
    run(copied, shape, {**found, computed["b"]: own})
    return found, expected


@pytest.mark.parametrize(
    "kernel",
    [
        whole, in_a_condition, else_only, nested, one_behind_the_other, in_a_loop, in_a_while,
        by_early_return, read_again,
    ],
    ids=lambda kernel: kernel.__name__,
)  # fmt: skip
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, -1), (0, -3), (1, None), (0, None)])
def test_elements_that_are_left_out_keep_what_was_there(
    kernel, first: int, last: int | None
) -> None:
    """``first``, ``last``: which statements are a block, as those of a part of a fused kernel."""
    arrays = {"a": A.copy(), "b": BEFORE.copy(), "other": np.zeros(N, np.float32)}
    ir = specialised(kernel, (N,), *arrays.values())
    if last != 0:
        body = ir.body
        behind = body[last:] if last is not None else ()
        block = Block("part", body[first:last])
        ir = replace(ir, body=(*body[:first], block, *behind))
    found, expected = divided(ir, (N,), arrays)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("extent", [1, 5, 8])
def test_work_items_without_an_element(extent: int) -> None:
    """More of them than the array has elements, before its first one and behind its last."""
    n = 12
    arrays = {"a": A.copy(), "b": BEFORE[:extent].copy(), "other": np.zeros(N, np.float32)}
    found, expected = divided(specialised(shifted, (n,), *arrays.values()), (n,), arrays)
    np.testing.assert_array_equal(found["b"], expected["b"])


def test_work_items_without_an_element_of_a_plane() -> None:
    a, plane = A.copy(), np.arange(8, dtype=np.float32).reshape(2, 4) + 50
    arrays = {"a": a, "b": plane, "other": np.zeros((3, 6), np.float32)}
    found, expected = divided(specialised(turned, (6, 3), *arrays.values()), (6, 3), arrays)
    np.testing.assert_array_equal(found["b"], expected["b"])


def test_two_results_of_which_one_is_completed() -> None:
    ir = specialised(else_only, (N,), A, BEFORE, BEFORE)
    parts = results_alone(ir, {"b", "other"}, {"other"})
    alone, before = parts.kernel, parts.before
    assert set(before) == {"other"}
    arrays = {"a": A.copy(), "b": BEFORE.copy(), "other": np.full(N, np.nan, np.float32)}
    run(alone, (N,), {**arrays, before["other"]: BEFORE.copy()})
    np.testing.assert_array_equal(arrays["other"], np.where(A > 3, 1, BEFORE))
    np.testing.assert_array_equal(arrays["b"], np.where(A > 3, BEFORE, A))


def test_a_result_whose_element_is_not_known() -> None:
    @fq.kernel
    def scattered(item: fq.Item, a, b, other):
        i = item.get_id(0)
        if a[i] > 0:
            b[int(a[i])] = i
        other[i] = 1

    @fq.kernel
    def two_elements(item: fq.Item, a, b, other):
        i = item.get_id(0)
        b[i] = 1
        if i > 0:
            b[i - 1] = 2
        other[i] = 1

    for kernel in (scattered, two_elements):
        ir = specialised(kernel, (N,), A, BEFORE, BEFORE)
        with pytest.raises(NotRenamed, match="which element of it a work-item leaves out is not"):
            results_alone(ir, {"b"}, {"b"})


def test_a_result_that_the_other_part_reads() -> None:
    @fq.kernel
    def reads(item: fq.Item, a, b, other):
        i = item.get_id(0)
        b[i] = a[i] * 2
        other[i] = b[i] + 1

    ir = specialised(reads, (N,), A, BEFORE, BEFORE)
    with pytest.raises(NotRenamed, match="reads reads it, and writes other memory"):
        results_copied(ir, {"b"}, {"b"})


def test_a_result_that_is_not_kept_is_not_stored() -> None:
    ir = specialised(in_a_condition, (N,), A, BEFORE, BEFORE)
    copied, computed = results_copied(ir, {"b"}, set())
    assert not computed
    assert {s.array for s in statements(copied.body) if isinstance(s, Store)} == {"other"}
