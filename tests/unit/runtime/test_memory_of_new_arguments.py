"""Calls whose arguments are new each time leave nothing behind.  (Of sizes that are new, tables
keep more or less until they are cleared.)"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fusionq as fq
from fusionq.memory.storage import MOST_VIEWS

CALLS = 2_500
"""More than any table of a queue keeps."""


@fq.kernel
def product(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def difference(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] - b[i]


SOURCE = np.random.default_rng(1).random(2 * CALLS + 200, dtype=np.float32)


def buffers(k):
    return fq.Buffer(SOURCE[:100]), fq.Buffer(100, np.float32), fq.Buffer(100, np.float32), 100


def arrays(k):
    return SOURCE[:100].copy(), np.empty(100, np.float32), np.empty(100, np.float32), 100


def views(k):
    return SOURCE[k : k + 100], np.empty(100, np.float32), np.empty(100, np.float32), 100


def plain(queue, a, between, out, n):
    queue.submit(product, n, a, a, out)


def block(queue, a, between, out, n):
    with fq.fusion(queue):
        queue.submit(product, n, a, a, between)
        queue.submit(difference, n, between, a, out)


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("call", [plain, block])
@pytest.mark.parametrize("arguments", [buffers, arrays, views])
def test_objects_do_not_add_up(sycl_queue, arguments, call):
    least = []
    for part in range(2):
        counts = []
        for k in range(part * CALLS, (part + 1) * CALLS):
            call(sycl_queue, *arguments(k))
            sycl_queue.wait()
            if k % 64 == 0:  # tables fill and are cleared; the least counts are when they were
                gc.collect()
                counts.append(len(gc.get_objects()))
        least.append(min(counts[len(counts) // 8 :]))
    assert least[1] - least[0] < CALLS, "objects are kept of each call"


@pytest.mark.slow
def test_views_at_ever_other_places_do_not_add_up(queue):
    """Nor is one taken for another whose number was forgotten."""
    whole = fq.Buffer(np.arange(3 * MOST_VIEWS, dtype=np.float32))
    out = fq.Buffer(3 * MOST_VIEWS, np.float32)
    first, last = whole[:1], out[-1:]
    for _ in range(2):  # the second time it is known
        queue.submit(product, 1, first, first, last)
    for k in range(2 * MOST_VIEWS + 10):
        view = whole[k : k + 1]
        if k % 1000 == 999:
            queue.submit(product, 1, view, view, last)
            assert last.numpy() == np.float32(k) * np.float32(k)
    assert len(whole._storage.view_tokens) <= MOST_VIEWS
    again = whole[:1]
    assert again._token == whole[:1]._token
    queue.submit(product, 1, again, again, last)
    assert last.numpy() == 0
