"""Conditions on elements whose indices wrap around, or are clamped, at the ends of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.codegen.interior import interior_of
from fusionq.ir.nodes import Binary, Call, ItemQuery
from fusionq.ir.types import INT64
from fusionq.ir.walk import expressions, subexpressions
from tests.property.running import examples
from tests.unit.lists import submission


@fq.kernel
def alike(item: fq.Item, a, b):
    """How many neighbours on a torus are like it, in the states of a cellular automaton."""
    y, x = item.get_id(0), item.get_id(1)
    h, w = a.shape
    n = 0
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            if a[(y + dy) % h, (x + dx) % w] == a[y, x]:
                n += 1
    match int(a[y, x]):
        case 1:
            b[y, x] = 2
        case 2:
            b[y, x] = 1 if n in (1, 2) else n
        case _:
            b[y, x] = n


@fq.kernel
def ridge(item: fq.Item, a, b):
    y, x = item.get_id(0), item.get_id(1)
    w = a.shape[1]
    if a[y, min(x + 1, w - 1)] > a[y, max(x - 1, 0)]:
        b[y, x] = 1
    elif not a[y, (x + 2) % w]:
        b[y, x] = 2


@fq.kernel
def risen(item: fq.Item, a, b):
    y, x = item.get_id(0), item.get_id(1)
    n = b[y, x]
    while a[y, min(x + 1, a.shape[1] - 1)] > n:
        n += 1
    b[y, x] = n


KERNELS = alike, ridge, risen


@pytest.mark.parametrize("kernel", KERNELS)
def test_inside_of_rows_no_index_is_asked_for(kernel: fq.Kernel) -> None:
    a = np.zeros((9, 4096), np.uint8)
    inner = interior_of(submission(kernel, a.shape, a, a.astype(np.int32)).ir, keeps_rows=True)
    assert inner is not None and inner.lows + inner.highs
    for e in expressions(inner.body):
        if (isinstance(e, Binary) and e.op == "mod") or (isinstance(e, Call) and e.type == INT64):
            assert ItemQuery("global_id", 1) not in subexpressions(e)


def _states(kernel: fq.Kernel, a, strategy, queue):
    first, second = fq.Buffer(a), fq.Buffer(np.zeros(a.shape, np.int32))
    with fq.fusion(queue, strategy=strategy, adapt=False):
        queue.submit(kernel, a.shape, first, second)
        queue.submit(kernel, a.shape, second, first)
    return first.numpy().copy(), second.numpy().copy()


@examples(60)
@given(
    kernel=st.sampled_from(KERNELS),
    dtype=st.sampled_from([np.uint8, np.int16, np.int64]),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 150)),
    strategy=st.sampled_from(["unfused", "fused", "megakernel", "overlap"]),
    seed=st.integers(0, 1000),
)
def test_equal_to_plain_python(kernel, dtype, shape, strategy, seed) -> None:
    a = np.random.default_rng(seed).integers(0, 4, shape).astype(dtype)
    made = _states(kernel, a, strategy, fq.FusionQueue())
    expected = _states(kernel, a, "unfused", fq.FusionQueue("reference"))
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, other)
