"""Allocations are used again, and nobody notices but by the time that it takes."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.block_pool import BlockPool
from fusionq.backends.registry import backend_for
from fusionq.backends.sycl import usm
from fusionq.backends.sycl.staggering import LINE, PERIOD
from fusionq.backends.sycl.usm import HUGE_PAGE, KEPT_PART, LARGEST_KEPT, MOST_KEPT, new_pool

dpctl = pytest.importorskip("dpctl")
LARGE = SimpleNamespace(global_mem_size=MOST_KEPT * KEPT_PART)


@pytest.fixture
def backend():
    made = backend_for(None)
    if made.info.filter_string == "reference":
        pytest.skip("no SYCL device")
    return made


def test_what_is_freed_is_used_again(backend):
    first = backend.allocate(1000)
    address = first.address
    assert address % 64 == 0
    del first
    second = backend.allocate(700)  # of the same size class
    assert (second.address, second.nbytes) == (address, 700)
    assert backend.allocate(700).address != address


def test_views_keep_an_allocation(backend):
    first = backend.allocate(64)
    address, view = first.address, first.host_view()
    view[:] = 7
    del first
    assert backend.allocate(64).address != address
    assert (view == 7).all()
    del view
    assert backend.allocate(64).address == address


def test_arrays_of_a_buffer_keep_its_memory():
    arrays = []
    for k in range(20):
        buffer = fq.Buffer(np.full(50, k, np.int32))
        arrays.append(buffer.numpy()[10:])
    gc.collect()
    for k, array in enumerate(arrays):
        assert (array == k).all()


def test_new_buffers_are_zeros_whatever_was_there_before():
    for n in (1, 3, 16, 17, 100, 10_000, 1_000_000, LARGEST_KEPT // 8, LARGEST_KEPT // 8 + 1):
        for _ in range(3):
            buffer = fq.Buffer(n, np.float64)
            assert (buffer.numpy() == 0).all()
            buffer.write(np.full(n, np.nan))


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [
        (0, 64), (1, 64), (64, 64), (65, 128), (4000, 4096), (1 << 16, 1 << 16),
        (80_000, 80 << 10), (100_000, 112 << 10), ((1 << 20) + 1, 5 << 18),
        (LARGEST_KEPT, LARGEST_KEPT), (LARGEST_KEPT + 1, None),
    ],
)
def test_sizes(nbytes, size):
    assert new_pool(LARGE).size_for(nbytes) == size


def test_of_large_blocks_at_most_a_quarter_is_not_used():
    pool = new_pool(LARGE)
    for nbytes in [*range((1 << 16) + 1, 1 << 18, 997), *range(1 << 22, 1 << 24, 99_991)]:
        size = pool.size_for(nbytes)
        assert nbytes <= size <= 1.25 * nbytes and pool.size_for(size) == size


def test_large_blocks_are_used_again_and_lie_on_huge_pages(backend):
    for nbytes in (80_000, 1_000_000, 5_000_000, 40_000_000):
        first = backend.allocate(nbytes)
        address = first.address
        assert address % LINE == 0
        if nbytes >= 4 << 20:
            assert address % HUGE_PAGE < PERIOD
        first.host_view()[-1] = 7
        del first
        assert backend.allocate(nbytes - 100).address == address


def test_a_small_device_keeps_less():
    pool = new_pool(SimpleNamespace(global_mem_size=KEPT_PART << 10))
    pool.give("large", 2048)
    assert pool.take(2048) is None
    pool.give("small", 1024)
    assert pool.take(1024) == "small"


def test_what_is_given_stays_and_the_most_of_the_others_goes():
    dropped = []
    pool = BlockPool(1000, 2000, dropped.append)
    for number in range(16):
        pool.give(f"old {number}", 100)
    for name in ("other", "new", "newer"):
        pool.give(name, 200)
    assert [name[:3] for name in dropped] == ["old"] * 2
    assert {pool.take(200) for _ in range(3)} == {"other", "new", "newer"}
    assert pool.kept_bytes == 1400


def test_a_pool_keeps_so_much_and_no_more():
    pool = new_pool(LARGE)
    for number in range(2 * MOST_KEPT // LARGEST_KEPT):
        pool.give(number, LARGEST_KEPT)
    taken = 0
    while pool.take(LARGEST_KEPT) is not None:
        taken += 1
    assert taken == MOST_KEPT // LARGEST_KEPT
    assert pool.take(64) is None


def test_memory_is_given_back_where_there_is_not_enough(backend, monkeypatch):
    del_address = backend.allocate(100).address
    original, calls = dpctl.memory.MemoryUSMShared, []

    def refuse_once(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            raise MemoryError
        return original(*args, **options)

    monkeypatch.setattr(usm.load_dpctl().memory, "MemoryUSMShared", refuse_once)
    assert backend.allocate(LARGEST_KEPT + 1).nbytes == LARGEST_KEPT + 1
    assert len(calls) == 2
    assert not backend._pool._free
    assert del_address  # was in the pool


def test_a_closed_queue_keeps_nothing():
    with fq.FusionQueue() as queue:
        backend = queue._state.launcher.backend
        if backend.info.filter_string == "reference":
            pytest.skip("no SYCL device")
        backend.allocate(100)
        assert any(backend._pool._free.values())
    assert not backend._pool._free
