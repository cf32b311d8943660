"""Indices of private and local arrays and of atomics that certainly leave them are refused."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.conftest import empty


def refused(queue, kernel, range_, *args, match):
    with pytest.raises(fq.ArgumentError, match=match) as caught:
        queue.submit(kernel, range_, *args)
    message = str(caught.value)
    assert "work-item (" in message and "in the kernel at" in message and __file__ in message


@fq.kernel
def private_store(item, out):
    own = fq.PrivateArray(4, np.float32)
    i = item.get_id(0)
    own[i] = 1.0
    out[i] = own[0]


@fq.kernel
def private_load(item, n, out):
    own = fq.PrivateArray((2, 3), np.float32, fill_zeros=True)
    for k in range(n):
        out[item.get_id(0)] = own[0, k]


@fq.kernel
def guarded(item, out):
    own = fq.PrivateArray(4, np.float32)
    i = item.get_id(0)
    if i < 4:
        own[i] = 2.0
        out[i] = own[i]


@fq.kernel
def data_dependent(item, a, out):
    own = fq.PrivateArray(4, np.float32, fill_zeros=True)
    i = item.get_id(0)
    if a[i] < 0:
        own[i + 100] = 1.0
    out[i] = own[0]


def test_private_arrays(queue):
    out = empty(8)
    refused(queue, private_store, 8, out, match=r"private array 'own' \(shape \(4,\)\)")
    refused(queue, private_load, 8, 4, out, match=r"read outside the private array 'own'")
    queue.submit(private_load, 8, 3, out).wait()
    queue.submit(guarded, 8, out).wait()
    assert out.numpy().tolist() == [2.0] * 4 + [0.0] * 4
    queue.submit(data_dependent, 8, fq.Buffer(np.ones(8, np.float32)), out).wait()


def test_another_size_is_checked_anew(queue):
    """An array's own extent is no size that scales with the range, though equal to it."""
    out = empty(8)
    queue.submit(private_store, 4, out).wait()
    refused(queue, private_store, 5, out, match="private array 'own'")
    queue.submit(private_store, 3, out).wait()
    queue.submit(private_load, 4, 2, out).wait()
    refused(queue, private_load, 4, 6, out, match="private array 'own'")


@fq.kernel
def local_store(item, tile, out):
    i = item.get_local_id(0)
    tile[i] = 1.0
    fq.group_barrier(item.get_group())
    out[item.get_global_id(0)] = tile[0]


def test_local_arrays(queue):
    out = empty(16)
    space = fq.NdRange((16,), (8,))
    refused(
        queue, local_store, space, fq.LocalAccessor(7, np.float32), out,
        match=r"local array 'tile' \(shape \(7,\)\)",
    )  # fmt: skip
    queue.submit(local_store, space, fq.LocalAccessor(8, np.float32), out).wait()
    assert (out.numpy() == 1).all()


@fq.kernel
def count(item, counters):
    fq.AtomicRef(counters, item.get_id(0) + 1).fetch_add(1)


def test_atomics(queue):
    counters = fq.Buffer(8, np.int32)
    refused(queue, count, 8, counters, match="outside array 'counters'")
    queue.submit(count, 7, counters).wait()
    assert counters.numpy().tolist() == [0] + [1] * 7
