"""What was stored to one array is loaded again, or what lies in another one, by a condition.

NVRTC makes one load of both.  Where nobody writes the other array, as where elements are stored to
themselves, it takes the load for one of constant memory, and what was stored before for lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq

SIZE = 200


@fq.kernel
def selected(item: fq.Item, a: Any, b: Any, takes: Any) -> None:
    i = item.get_id(0)
    a[i] = b[i] // (a[i] + 12)
    a[i] = a[i] if takes else b[i]
    b[i] = b[i]


@fq.kernel
def by_branches(item: fq.Item, a: Any, b: Any, takes: Any) -> None:
    i = item.get_id(0)
    a[i] = b[i] // (a[i] + 12)
    if takes:
        x = a[i]
    else:
        x = b[i]
        b[i] = b[i]
    a[i] = x


@fq.kernel
def by_one_branch(item: fq.Item, a: Any, b: Any, takes: Any) -> None:
    i = item.get_id(0)
    a[i] = b[i] // (a[i] + 12)
    x = b[i]
    if takes:
        x = a[i]
    a[i] = x
    y = b[i]
    b[i] = y


@fq.kernel
def only_loaded(item: fq.Item, a: Any, b: Any, takes: Any) -> None:
    i = item.get_id(0)
    a[i] = b[i] // (a[i] + 12)
    a[i] = a[i] if takes else b[i]


@pytest.mark.parametrize("takes", [False, True])
@pytest.mark.parametrize("kernel", [selected, by_branches, by_one_branch, only_loaded])
@pytest.mark.parametrize("strategy", ["unfused", "fused", "megakernel"])
def test_either_is_loaded(queue: fq.FusionQueue, strategy: Any, kernel: Any, takes: bool) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-9, 10, SIZE).astype(np.int32) for _ in range(2))
    given = fq.Buffer(a), fq.Buffer(b)
    with fq.fusion(queue, strategy=strategy):
        for _ in range(2):
            queue.submit(kernel, SIZE, *given, takes)
    for _ in range(2):
        a = b // (a + 12) if takes else b.copy()
    np.testing.assert_array_equal(given[0].numpy(), a)
    np.testing.assert_array_equal(given[1].numpy(), b)
