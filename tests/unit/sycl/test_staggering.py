"""Large allocations begin in different sets of the cache."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.registry import backend_for
from fusionq.backends.sycl.staggering import LINE, PERIOD, STAGGERED_FROM, next_offset

dpctl = pytest.importorskip("dpctl")


@pytest.fixture
def backend():
    made = backend_for(None)
    if made.info.filter_string == "reference":
        pytest.skip("no SYCL device")
    return made


def test_blocks_in_turn_begin_at_all_lines_of_a_page():
    offsets = [next_offset(STAGGERED_FROM) for _ in range(PERIOD // LINE)]
    assert sorted(offsets) == list(range(0, PERIOD, LINE))


def test_neighbours_in_time_are_lines_apart():
    offsets = [next_offset(1 << 20) for _ in range(100)]
    for k in range(12):
        apart = [(b - a) % PERIOD for a, b in zip(offsets, offsets[k + 1 :], strict=False)]
        assert all(4 * LINE <= d <= PERIOD - 4 * LINE for d in apart)


def test_small_blocks_stay_where_they_are():
    assert {next_offset(n) for n in (0, 1, 64, 4096, STAGGERED_FROM - 1)} == {0}


@pytest.mark.parametrize("nbytes", [1 << 17, 1 << 20, 4 << 20, (4 << 20) + 8])
def test_allocations_begin_in_different_sets_and_hold_what_they_are_given(backend, nbytes):
    made = [backend.allocate(nbytes) for _ in range(9)]
    lines = {allocation.address % PERIOD // LINE for allocation in made}
    assert len(lines) == len(made)
    assert all(allocation.address % LINE == 0 for allocation in made)
    for number, allocation in enumerate(made):
        assert allocation.host_view().nbytes == nbytes
        allocation.host_view()[:] = number
    for number, allocation in enumerate(made):
        assert (allocation.host_view() == number).all()


def test_dpctl_sees_the_bytes_of_a_buffer_where_they_begin():
    contents = np.arange(70_000, dtype=np.float32)
    buffers = [fq.Buffer(contents + k) for k in range(3)]
    for k, buffer in enumerate(buffers):
        if buffer._storage.usm_interface is None:
            pytest.skip("no SYCL device")
        interface = buffer._storage.usm_interface
        memory = dpctl.memory.as_usm_memory(buffer)
        assert memory._pointer == interface["data"][0] == buffer.numpy().ctypes.data
        seen = np.asarray(memory).view(np.float32)[: contents.size]
        assert (seen == contents + k).all()
