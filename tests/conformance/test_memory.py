"""Memory of a backend: allocations, buffers on the host, and what moves between devices."""

from __future__ import annotations

import gc
import warnings
from itertools import pairwise

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.base import Backend
from fusionq.backends.registry import backend_for

N = 24


@fq.kernel
def add_one(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i] + np.float32(1)


@fq.kernel
def scale(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def from_neighbours(item: fq.Item, a, out):
    i = item.get_id(0)
    if i > 0:
        out[i] = a[i - 1] + a[i]
    else:
        out[i] = a[i]


def numbers() -> np.ndarray:
    return np.arange(N, dtype=np.float32)


def is_visible(backend: Backend) -> bool:
    return backend.allocate(8).host_view() is not None


# ------------------------------------------------------------------------- allocations
@pytest.mark.parametrize("nbytes", [0, 1, 1000])
def test_bytes_go_to_the_device_and_back(backend: Backend, nbytes: int) -> None:
    memory = backend.allocate(nbytes)
    assert memory.nbytes == nbytes
    memory.zero()
    assert not _contents(backend, memory, nbytes).any()
    written = np.arange(nbytes).astype(np.uint8)
    memory.write(written)
    assert (_contents(backend, memory, nbytes) == written).all()
    view = memory.host_view()
    if view is not None:
        assert view.shape == (nbytes,)
        assert (view == written).all()
        view[:] = 7
        assert (_contents(backend, memory, nbytes) == 7).all()


def _contents(backend: Backend, memory, nbytes: int) -> np.ndarray:
    into = np.empty(nbytes, np.uint8)
    memory.read(into)
    return into


def test_parts_of_allocations(backend: Backend) -> None:
    a, b = backend.allocate(100), backend.allocate(50)
    a.write(np.arange(100, dtype=np.uint8))
    b.zero()
    b.write(np.full(5, 200, np.uint8), 45)
    b.copy(a.address + 10, 20, 5)
    expected = np.zeros(50, np.uint8)
    expected[5:25], expected[45:] = np.arange(10, 30), 200
    assert (_contents(backend, b, 50) == expected).all()
    part = np.empty(3, np.uint8)
    a.read(part, 97)
    assert list(part) == [97, 98, 99]


def test_addresses_are_nobody_elses(backend: Backend) -> None:
    own = [backend.allocate(64) for _ in range(4)]
    host = [np.zeros(64, np.uint8) for _ in range(4)]
    places = sorted([m.address for m in own] + [h.ctypes.data for h in host])
    assert all(after - before >= 64 for before, after in pairwise(places))


def test_more_memory_than_there_is(backend: Backend) -> None:
    with pytest.raises(fq.DeviceError, match="cannot allocate"):
        backend.allocate(1 << 60)


# -------------------------------------------------------------------- buffers on the host
def test_a_buffer_as_numpys_array(queue: fq.FusionQueue, backend: Backend) -> None:
    a, out = fq.Buffer(numbers()), fq.Buffer(N, np.float32)
    queue.submit(add_one, N, a, out)
    seen = out.numpy()
    assert (seen == numbers() + 1).all()
    if is_visible(backend):
        seen[:] = 5
        queue.submit(add_one, N, out, a)
        assert (a.numpy() == 6).all()
        return
    with pytest.raises(ValueError, match="read-only"):
        seen[:] = 5
    queue.submit(add_one, N, out, out).wait()
    assert (seen == numbers() + 1).all(), "a copy does not change"
    with pytest.raises(ValueError, match="takes a copy"):
        out.__array__(copy=False)
    assert np.array(out).flags.writeable


def test_views_of_a_buffer(queue: fq.FusionQueue) -> None:
    a = fq.Buffer(np.arange(60, dtype=np.int32).reshape(6, 10))
    queue.submit(negate, (6, 10), a)
    expected = -np.arange(60, dtype=np.int32).reshape(6, 10)
    assert (a.numpy() == expected).all()
    for key in [np.s_[1:5:2], np.s_[:, ::-3], np.s_[2], np.s_[::-2, 3:7]]:
        assert (a[key].numpy() == expected[key]).all()
        a[key].write(np.full(expected[key].shape, 9, np.int16))
        expected[key] = 9
        assert (a.numpy() == expected).all()
        queue.submit(negate, (6, 10), a)
        expected = -expected
    assert (a.numpy() == expected).all()


@fq.kernel
def negate(item: fq.Item, a):
    i, j = item.get_id(0), item.get_id(1)
    a[i, j] = -a[i, j]


def test_empty_buffers(queue: fq.FusionQueue) -> None:
    a = fq.Buffer((0, 3), np.float64)
    assert a.numpy().shape == (0, 3)
    a.write(np.zeros((0, 3)))
    queue.fill(a, 1.0)
    queue.memcpy(a, np.zeros((0, 3)))
    seen: list[tuple[int, ...]] = []
    queue.host_task(lambda x: seen.append(x.shape), a)
    queue.wait()
    assert seen == [(0, 3)]
    assert a.numpy().shape == (0, 3)


def test_commands_on_the_host(queue: fq.FusionQueue) -> None:
    a, b = fq.Buffer(numbers()), fq.Buffer(N, np.float32)
    queue.submit(add_one, N, a, b)
    queue.memcpy(a, b)  # whole
    queue.memcpy(a[4:8], b[8:12])
    queue.memcpy(a[1:5], a[0:4])  # overlapping
    queue.memcpy(b[::2], np.zeros(N // 2, np.float32))
    queue.fill(b[1::2], 3)
    into = np.zeros(N, np.float32)
    queue.memcpy(into, a)
    expected = numbers() + 1
    expected[4:8] = (numbers() + 1)[8:12]
    expected[1:5] = expected[0:4].copy()
    assert (into == expected).all()
    queue.submit(add_one, N, b, b)
    assert (b.numpy() == np.tile(np.float32([1, 4]), N // 2)).all()


def test_a_host_task_sees_and_changes_its_buffers(queue: fq.FusionQueue) -> None:
    a, b = fq.Buffer(numbers()), fq.Buffer(N, np.float32)
    queue.submit(add_one, N, a, b)

    def task(whole: np.ndarray, left: np.ndarray, right: np.ndarray, other: np.ndarray) -> None:
        left[:] = 0
        assert not whole[:4].any(), "views of a buffer share its memory"
        right[:] = other[0]

    queue.host_task(task, b, b[:4], b[20:], a[7:])
    queue.submit(add_one, N, b, b)
    expected = numbers() + 2
    expected[:4], expected[20:] = 1, 8
    assert (b.numpy() == expected).all()


def test_what_a_host_task_did_before_an_error_stays(queue: fq.FusionQueue) -> None:
    a = fq.Buffer(numbers())
    queue.submit(add_one, N, a, a)

    def task(array: np.ndarray) -> None:
        array[0] = 100
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        queue.host_task(task, a)
    assert list(a.numpy()[:2]) == [100, 2]


def test_memory_that_only_the_host_has(queue: fq.FusionQueue) -> None:
    array, out = numbers(), fq.Buffer(N, np.float32)
    if queue.device.host_memory:
        queue.submit(add_one, N, array, out)
        assert (out.numpy() == array + 1).all()
        return
    with pytest.raises(fq.DeviceError, match=r"cannot reach ordinary host memory.*Buffer"):
        queue.submit(add_one, N, array, out)
    with pytest.raises(fq.DeviceError, match="cannot reach ordinary host memory"):
        queue.submit(add_one, N, fq.Buffer(array, copy=False), out).wait()


# --------------------------------------------------------------------------- moving
def test_a_buffer_goes_where_it_is_used(queue: fq.FusionQueue) -> None:
    a = fq.Buffer(numbers())
    out = fq.Buffer(N, np.float32)
    with fq.FusionQueue("reference") as other, fq.FusionQueue("far") as third:
        for _ in range(3):
            for q in (queue, other, third):
                q.submit(add_one, N, a, a)
                q.submit(scale, N, a, np.float32(2), out)
        assert (a.numpy() == numbers() + 9).all()
        assert (out.numpy() == 2 * (numbers() + 9)).all()


def test_replays_and_fused_lists_follow_their_memory(queue: fq.FusionQueue) -> None:
    a, b, c = fq.Buffer(numbers()), fq.Buffer(N, np.float32), fq.Buffer(N, np.float32)

    def step(q: fq.FusionQueue) -> fq.Fusion:
        with fq.fusion(q, strategy="sequence") as f:
            q.submit(from_neighbours, N, a, b)
            q.submit(from_neighbours, N, b, c)
            q.submit(scale, N, c, np.float32(0.5), a)
        return f

    def stepped(x: np.ndarray) -> np.ndarray:
        for _ in range(2):
            x = np.concatenate([x[:1], x[:-1] + x[1:]])
        return x * np.float32(0.5)

    expected = numbers()
    with fq.FusionQueue("far") as far, fq.FusionQueue("reference") as near:
        fusions = [step(queue)]
        expected = stepped(expected)
        for q in (far, near, queue):
            fusions.append(step(q))
            expected = stepped(expected)
            for f in fusions:
                f.replay()
                expected = stepped(expected)
        assert (a.numpy() == expected).all()


def test_an_unfused_list_is_replayed_after_a_move(queue: fq.FusionQueue) -> None:
    a = fq.Buffer(numbers())
    with fq.fusion(queue, strategy="unfused") as f:
        queue.submit(add_one, N, a, a)
        queue.submit(add_one, N, a, a)
    with fq.FusionQueue("far") as far:
        far.submit(add_one, N, a, a)
    f.replay()
    queue.submit(add_one, N, a, a)
    assert (a.numpy() == numbers() + 6).all()


def test_arrays_that_are_left_behind_are_named(queue: fq.FusionQueue) -> None:
    a = fq.Buffer(numbers())
    queue.submit(add_one, N, a, a)
    seen = a[2:].numpy()[1:]
    before = seen.copy()
    near = seen.flags.writeable  # shared with the device's memory
    with fq.FusionQueue("far") as far, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        far.submit(add_one, N, a, a).wait()
        assert (seen == before).all()
        assert [w.category for w in caught] == [fq.ArrayDetached] * near
        assert all("call numpy() again" in str(w.message) for w in caught)
        assert (a.numpy() == numbers() + 2).all()


def test_nobody_is_warned_of_arrays_that_are_gone(queue: fq.FusionQueue) -> None:
    a = fq.Buffer(numbers())
    queue.submit(add_one, N, a, a)
    assert a.numpy()[0] == 1
    gc.collect()
    with fq.FusionQueue("far") as far, warnings.catch_warnings():
        warnings.simplefilter("error", fq.ArrayDetached)
        far.submit(add_one, N, a, a).wait()


def test_two_queues_of_one_device_share_memory(target: str) -> None:
    a = fq.Buffer(numbers())
    with fq.FusionQueue(target) as one, fq.FusionQueue(target) as two:
        one.submit(add_one, N, a, a).wait()
        place = a._storage.address
        two.submit(add_one, N, a, a).wait()
        one.submit(add_one, N, a, a).wait()
        assert a._storage.address == place
        assert (a.numpy() == numbers() + 3).all()


def test_memory_that_nobody_has_asked_for_is_the_hosts(target: str) -> None:
    """Contents and views of a new Buffer are shared, until a device takes it that they are not."""
    a = fq.Buffer(N, np.float32)
    a.numpy()[:] = 3
    assert (a.numpy() == 3).all()
    backend = backend_for(target)
    a._storage.make_reachable(backend)
    assert (a.numpy() == 3).all()


# ------------------------------------------------------------------- copies in lists, graphs
def test_copies_and_fills_in_lists_and_graphs(backend: Backend) -> None:
    whole = numbers().reshape(4, 6)
    graph, factor = fq.Graph(), np.float32(2)
    with fq.FusionQueue(backend.info.filter_string) as queue:
        a, out = fq.Buffer(whole), fq.Buffer((4, 6), np.float32)
        row, filled = fq.Buffer(6, np.float32), fq.Buffer(9, np.int8)
        with fq.fusion(queue) as f:
            queue.memcpy(out[::-1, 1:], a[:, :-1])
            queue.memcpy(a[1:], a[:-1])
            queue.memcpy(row, out[2])
            queue.fill(filled[1::3], -5)
        assert not f.report.notes
        assert len(f.report.submissions) == 5
        with graph.record(queue):
            queue.submit(scale, 6, row, factor, row)
            queue.memcpy(out[3], row)
        graph.launch()
        graph.update(factor=np.float32(3))
        graph.launch()
        assert np.array_equal(a.numpy(), whole[[0, 0, 1, 2]])
        expected = np.zeros((4, 6), np.float32)
        expected[::-1, 1:] = whole[:, :-1]
        expected[3] = expected[2] * 6
        assert np.array_equal(out.numpy(), expected)
        assert filled.numpy().tolist() == [0, -5, 0, 0, -5, 0, 0, -5, 0]


def test_copies_of_memory_out_of_reach_run_on_the_host(backend: Backend) -> None:
    array = numbers()
    shared, out = fq.Buffer(array, copy=False), fq.Buffer(N, np.float32)
    with fq.FusionQueue(backend.info.filter_string) as queue, fq.fusion(queue) as f:
        queue.memcpy(out, shared)
        queue.submit(scale, N, fq.Buffer(array), np.float32(2), fq.Buffer(N, np.float32))
    assert np.array_equal(out.numpy(), array)
    assert len(f.report.notes) == (0 if backend.info.host_memory else 1)
