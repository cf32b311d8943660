"""What may be done twice for a work-item, and what may not."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.ir.repeatable import is_repeatable
from tests.unit.lists import submission

N = 16


@fq.kernel
def stencil(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        s = a[i]
        for k in range(2):
            s += a[i - k]
        b[i] = s
    else:
        b[i] = a[i]


@fq.kernel
def in_place(item: fq.Item, a, b):
    i = item.get_id(0)
    b[i] = b[i] + a[i]


@fq.kernel
def atomic(item: fq.Item, a, b):
    i = item.get_id(0)
    fq.AtomicRef(b, i).fetch_add(a[i])


@pytest.mark.parametrize(
    ("kernel", "alone", "repeatable"),
    [
        (stencil, {"a", "b"}, True),
        (stencil, {"a"}, False),  # something else may be where it stores
        (in_place, {"a", "b"}, False),
        (atomic, {"a", "b"}, False),
    ],
)
def test_stores_to_arrays_of_their_own_that_are_not_read(kernel, alone, repeatable):
    body = submission(kernel, N, np.zeros(N), np.zeros(N)).ir.body
    assert is_repeatable(body, alone) is repeatable
