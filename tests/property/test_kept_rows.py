"""Random lists of work-groups that go through rows several times, as on a device whose work-items
keep what they load and store of rows in registers: bit for bit as unfused."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from tests.property.running import examples
from tests.unit.codegen.kept_rows_backend import keeping_queue

ROWS = 3
LANES = 4


@fq.kernel
def summed(item: fq.NdItem, a, b, t):
    i, k = item.get_global_id(0), item.get_local_id(1)
    own = 0
    for j in range(k, a.shape[1], LANES):
        own += a[i, j] * (j % 5 + 1)
    t[i] = fq.reduce_over_group(item.get_group(), own, "add") + b[i, 0]


@fq.kernel
def twice(item: fq.NdItem, a, b, t):
    """Two loops, the second of which goes on with what the first has stored."""
    i, k = item.get_global_id(0), item.get_local_id(1)
    for j in range(k, a.shape[1], LANES):
        b[i, j] = a[i, j] - t[i]
    for j in range(k, b.shape[1], LANES):
        b[i, j] = b[i, j] * 3 + a[i, j] * b[i, j]


@fq.kernel
def chosen(item: fq.NdItem, a, b, t):
    """Loads under a condition, and others' elements behind a barrier."""
    i, k = item.get_global_id(0), item.get_local_id(1)
    own = -100
    for j in range(k, a.shape[1], LANES):
        own = max(own, a[i, j] if j % 3 else t[i])
        b[i, j] = own
    fq.group_barrier(item.get_group())
    for j in range(k, a.shape[1], LANES):
        own = max(own, b[i, b.shape[1] - 1 - j] % 7)
    fq.group_barrier(item.get_group())
    for j in range(k, b.shape[1], LANES):
        b[i, j] = b[i, j] + own


@fq.kernel
def moved(item: fq.NdItem, a, b, t):
    """Work-items store to elements of others."""
    i, k = item.get_global_id(0), item.get_local_id(1)
    for j in range(k, a.shape[1], LANES):
        b[i, a.shape[1] - 1 - j] = a[i, j] + t[i]


@fq.kernel
def scaled(item: fq.Item, a, b, t):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = b[i, j] * t[i] + a[i, j]


@fq.kernel
def reversed_row(item: fq.Item, a, b, t):
    i, j = item.get_id(0), item.get_id(1)
    b[i, j] = a[i, a.shape[1] - 1 - j]


@fq.kernel
def linear(item: fq.Item, a, b, t):
    i, j = item.get_id(0) // a.shape[1], item.get_id(0) % a.shape[1]
    b[i, j] = a[i, j] + b[i, j] % 5 - t[i]


BY_GROUPS = summed, twice, chosen, moved
BY_ITEMS = scaled, reversed_row, linear


@st.composite
def lists(draw: st.DrawFn) -> tuple[int, list[tuple[Any, int, int, int]]]:
    """How many columns arrays have, and what is submitted: a kernel, and the numbers of its
    matrices and of its vector."""
    columns = draw(st.integers(1, 30))
    made: list[tuple[Any, int, int, int]] = []
    for _ in range(draw(st.integers(1, 5))):
        a, b = draw(st.permutations(range(3)))[:2]
        kernel = draw(st.sampled_from(BY_GROUPS if not made else (*BY_GROUPS, *BY_ITEMS)))
        made.append((kernel, a, b, draw(st.integers(0, 1))))
    return columns, made


def _run(queue: fq.FusionQueue, columns: int, made: Any, strategy: str) -> list[np.ndarray]:
    whole = np.arange(ROWS * columns).reshape(ROWS, columns)
    matrices = [fq.Buffer(whole * (k + 3) % 11 - 4) for k in range(3)]
    vectors = [fq.Buffer(np.arange(ROWS) * (k + 2) % 5) for k in range(2)]
    groups = fq.NdRange((ROWS, LANES), (1, LANES))
    with fq.fusion(queue, strategy=strategy) as f:
        for kernel, a, b, vector in made:
            range_: Any = (ROWS, columns) if kernel in BY_ITEMS else groups
            range_ = ROWS * columns if kernel is linear else range_
            queue.submit(kernel, range_, matrices[a], matrices[b], vectors[vector])
    f.event.wait()
    return [np.array(array.numpy()) for array in (*matrices, *vectors)]


@examples(60)
@given(lists(), st.sampled_from(("fused", "sequence", "auto")))
def test_results_have_the_same_bits(made: Any, strategy: str) -> None:
    columns, calls = made
    with fq.FusionQueue("reference") as queue:
        expected = _run(queue, columns, calls, "unfused")
    with keeping_queue() as (queue, _):
        found = _run(queue, columns, calls, strategy)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
