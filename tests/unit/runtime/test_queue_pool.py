"""SYCL queues serve one fusion queue after the other, unless somebody else may hold them."""

from __future__ import annotations

import numpy as np

import fusionq as fq
from tests.unit.runtime.conftest import empty
from tests.unit.runtime.kernels import put


def _inner(queue: fq.FusionQueue) -> object:
    return queue._state.launcher.backend.sycl_queue


def test_a_queue_that_is_gone_leaves_its_sycl_queue_to_the_next(sycl_queue):
    first = fq.FusionQueue()
    first.submit(put, 8, 1.0, empty())
    inner = id(_inner(first))
    del first
    second, third = fq.FusionQueue(), fq.FusionQueue()
    assert inner in (id(_inner(second)), id(_inner(third)))
    assert _inner(second) is not _inner(third)


def test_what_was_launched_before_runs_before(sycl_queue):
    out = empty(1 << 16)
    for value in range(20):
        fq.FusionQueue().submit(put, 1 << 16, float(value), out)
    assert (out.numpy() == 19).all()


def test_queues_that_users_have_seen_do_not_serve_again(sycl_queue):
    queue = fq.FusionQueue()
    seen = queue.sycl_queue
    del queue
    others = [fq.FusionQueue() for _ in range(50)]
    assert all(_inner(other) is not seen for other in others)
    around = fq.FusionQueue(seen)
    assert around.sycl_queue is seen
    del around
    assert all(_inner(fq.FusionQueue()) is not seen for _ in range(3))


def test_queues_that_record_times_are_others(sycl_queue):
    plain = fq.FusionQueue()
    inner = _inner(plain)
    del plain
    with fq.FusionQueue(profiling=True) as queue:
        assert _inner(queue) is not inner
        event = queue.submit(put, 8, 2.0, fq.Buffer(8, np.float32))
        assert event.profiling[1] >= event.profiling[0]
