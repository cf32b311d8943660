"""Copies to the host: pinned memory that is used again, and never by two arrays at once."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda import pinned


@fq.kernel
def increment(item: fq.Item, a):
    i = item.get_id(0)
    a[i] = a[i] + 1


@pytest.mark.parametrize("n", [1, 1000, 100_000, pinned.LARGEST_BLOCK // 4 + 1])
def test_each_array_keeps_what_it_was_given(queue, n):
    buffer = fq.Buffer(np.zeros(n, np.int32))
    seen = []
    for _ in range(5):
        queue.submit(increment, n, buffer)
        seen.append(buffer.numpy())
    assert [int(array[-1]) for array in seen] == [1, 2, 3, 4, 5]
    assert all((array == array[0]).all() for array in seen)
    addresses = {array.ctypes.data for array in seen}
    assert len(addresses) == 5
    view = seen[2][n // 2 :]
    del seen
    gc.collect()
    for _ in range(5):
        queue.submit(increment, n, buffer)
        assert buffer.numpy()[0] > 5
    assert (view == 3).all()


def test_blocks_are_used_again(queue):
    buffer = fq.Buffer(np.arange(50_000, dtype=np.float32))
    queue.submit(increment, 50_000, buffer)
    first = buffer.numpy()
    address = first.ctypes.data
    del first
    gc.collect()
    again = buffer.numpy()
    assert again.ctypes.data == address and again[7] == 8


def test_no_more_is_kept_than_the_limit(queue):
    buffer = fq.Buffer(np.zeros(pinned.LARGEST_BLOCK, np.uint8))
    queue.submit(increment, 10, buffer)
    arrays = [buffer.numpy() for _ in range(8)]
    del arrays
    gc.collect()
    assert pinned._kept <= pinned.MOST_KEPT


def test_writing_contiguous_and_other_arrays(queue):
    buffer = fq.Buffer((100, 200), np.float32)
    queue.submit(increment, 1, buffer[0, :1])
    values = np.random.default_rng(1).random((100, 200), np.float32)
    for source in (values, values.astype(np.float16), values[:, ::-1], np.asfortranarray(values)):
        buffer.write(source)
        assert np.array_equal(buffer.numpy(), source.astype(np.float32))
    buffer[10:20].write(np.zeros((10, 200), np.float32))
    buffer[:, 5].write(np.ones(100, np.float32))
    expected = np.asfortranarray(values).copy()
    expected[10:20], expected[:, 5] = 0, 1
    assert np.array_equal(buffer.numpy(), expected)
