"""A store is dropped only where the same element is written again before anybody can see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.nodes import ArrayParam, Store
from fusionq.ir.walk import statements
from fusionq.passes.dead_stores import eliminate_dead_stores
from tests.unit.lists import submission

N = 8


@fq.kernel
def twice(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]
    out[i] = a[i] * 2


@fq.kernel
def by_variable(item: fq.Item, a, out):
    i = item.get_id(0)
    j = int(a[i])
    out[j] = a[i]
    out[j] = a[i] * 2


@fq.kernel
def variable_changed(item: fq.Item, a, out):
    i = item.get_id(0)
    j = int(a[i])
    out[j] = a[i]
    j = int(a[0])
    out[j] = a[i] * 2


@fq.kernel
def changed_in_a_loop(item: fq.Item, a, out):
    i = item.get_id(0)
    j = int(a[i])
    out[j] = a[i]
    for k in range(3):
        j += int(a[k])
    out[j] = a[i] * 2


@fq.kernel
def seen_by_others(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]
    fq.AtomicRef(a, 0).fetch_add(1)
    out[i] = a[i] * 2


@fq.kernel
def behind_a_fence(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]
    fq.atomic_fence(fq.MemoryOrder.ACQ_REL, fq.MemoryScope.DEVICE)
    out[i] = a[i] * 2


@fq.kernel
def in_both_branches(item: fq.Item, a, out):
    i = item.get_id(0)
    if a[i] > 0:
        out[i] = a[i]
        out[i] = a[i] * 2
    else:
        out[i] = a[i] + 1
        out[i] = a[i] + 2
    a[i] = 1


@pytest.mark.parametrize(
    ("kernel", "left"),
    [
        (twice, 1),
        (by_variable, 1),
        (variable_changed, 2),
        (changed_in_a_loop, 2),
        (seen_by_others, 2),
        (behind_a_fence, 2),
        (in_both_branches, 3),
    ],
)
def test_what_is_overwritten_unseen(kernel, left):
    ir = submission(kernel, N, np.zeros(N), np.zeros(N)).ir
    params = tuple(replace(p, restrict=True) if isinstance(p, ArrayParam) else p for p in ir.params)
    found = eliminate_dead_stores(replace(ir, params=params))
    assert sum(isinstance(s, Store) for s in statements(found.body)) == left
