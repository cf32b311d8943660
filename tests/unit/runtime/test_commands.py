"""memcpy, fill and host_task."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import copy, increment, slow


def test_memcpy_runs_after_the_kernels_before_it(queue):
    a, b, c = floats(), empty(), empty()
    queue.submit(copy, 8, a, b)
    event = queue.memcpy(c, b)
    assert event.is_complete
    queue.submit(increment, 8, c)
    assert np.array_equal(c.numpy(), a.numpy() + 1)


def test_memcpy_between_buffers_views_and_arrays(queue):
    array = np.zeros(4, np.float32)
    b = floats()
    queue.memcpy(array, b[::2])
    assert array.tolist() == [1, 3, 5, 7]
    queue.memcpy(b[4:], array)
    assert b.numpy().tolist() == [1, 2, 3, 4, 1, 3, 5, 7]
    queue.memcpy(b[1:], b[:-1])
    assert b.numpy().tolist() == [1, 1, 2, 3, 4, 1, 3, 5]


def test_memcpy_of_views_with_other_steps_that_overlap(queue):
    b = fq.Buffer(np.arange(15))
    queue.memcpy(b[::2], b[:8])
    assert b.numpy()[::2].tolist() == list(range(8))


def test_a_fill_waits_for_kernels_that_use_its_memory_by_another_array(sycl_queue):
    array = np.ones(20_000, np.float32)
    shared = fq.Buffer(array[:100], copy=False)
    sycl_queue.submit(slow, 20_000, array, 2_000, array)
    sycl_queue.fill(shared, 7)
    sycl_queue.wait()
    assert (array[:100] == 7).all()


def test_memcpy_of_usm_memory(sycl_queue):
    import dpctl.memory

    memory = dpctl.memory.MemoryUSMShared(4, queue=sycl_queue.sycl_queue)
    b = fq.Buffer(np.arange(4, dtype=np.uint8))
    sycl_queue.memcpy(memory, b)
    assert np.frombuffer(memory, np.uint8).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("dst", "src", "message"),
    [
        (np.zeros(4), np.zeros(5), "one shape"),
        (np.zeros(4), np.zeros(4, np.float32), "one shape and dtype"),
        ([0.0], np.zeros(1), "not list"),
        (np.zeros(1), None, "not NoneType"),
        (np.zeros(2, np.clongdouble), np.zeros(2, np.clongdouble), "complex"),
    ],
)
def test_memcpy_refuses(queue, dst, src, message):
    with pytest.raises(fq.ArgumentError, match=message) as caught:
        queue.memcpy(dst, src)
    assert f"{__file__}:" in str(caught.value)


def test_nothing_is_written_to_read_only_arrays(queue):
    array = np.zeros(2)
    array.flags.writeable = False
    for target in (array, fq.Buffer(array, copy=False)):
        with pytest.raises(fq.ArgumentError, match="read-only"):
            queue.memcpy(target, np.ones(2))
        with pytest.raises(fq.ArgumentError, match="read-only"):
            queue.fill(target, 1.0)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.float32, 2), (np.float32, 2.5), (np.float32, np.float64(0.1)), (np.float16, True),
        (np.int8, -128), (np.uint64, 2**64 - 1), (np.int32, np.int64(7)), (np.bool_, True),
        (np.float32, float("nan")), (np.float32, float("inf")), (np.float64, 10**20),
        (np.bool_, 1), (np.bool_, np.uint8(0)),
    ],
)  # fmt: skip
def test_fill(queue, dtype, value):
    b = fq.Buffer(3, dtype)
    queue.fill(b, value)
    assert b.numpy().tobytes() == np.full(3, value, dtype).tobytes()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.int8, 128), (np.int8, -129), (np.uint8, -1), (np.int32, 1.0), (np.bool_, 2),
        (np.int64, 2**70), (np.float32, "1"), (np.float32, None), (np.float32, 1j),
        (np.float32, [1.0]), (np.float16, 1e10), (np.float32, np.zeros(3)), (np.int64, 10**30),
    ],
)  # fmt: skip
def test_fill_refuses_what_does_not_fit(queue, dtype, value):
    with pytest.raises(fq.ArgumentError, match="fill cannot put") as caught:
        queue.fill(fq.Buffer(3, dtype), value)
    assert f"{__file__}:" in str(caught.value)


def test_fill_of_a_view(queue):
    b = floats()
    queue.fill(b[1::3], 0.0)
    assert b.numpy().tolist() == [1, 0, 3, 4, 0, 6, 7, 0]


def test_a_host_task_sees_what_was_launched_and_its_writes_are_seen(queue):
    a, b = floats(), empty()
    queue.submit(copy, 8, a, b)

    def double(array):
        array *= 2

    assert queue.host_task(double, b).is_complete
    queue.submit(increment, 8, b)
    assert np.array_equal(b.numpy(), a.numpy() * 2 + 1)


def test_a_host_task_waits_for_all_launches(sycl_queue):
    a = floats(20_000)
    event = sycl_queue.submit(slow, 20_000, a, 2_000, a)
    seen = []
    sycl_queue.host_task(lambda: seen.append(event.is_complete))
    assert seen == [True]


def test_a_host_tasks_exception_goes_on(queue):
    with pytest.raises(ZeroDivisionError):
        queue.host_task(lambda: 1 // 0)
    queue.submit(increment, 8, floats()).wait()


def test_a_host_task_needs_a_function(queue):
    with pytest.raises(fq.ArgumentError, match="calls a function"):
        queue.host_task(floats())


@pytest.mark.parametrize("command", ["memcpy", "fill", "host_task"])
@pytest.mark.parametrize("pending", [False, True])
def test_commands_wait_for_what_they_depend_on(queue, command, pending):
    a, b = floats(), fq.Buffer(np.zeros(8, np.float32))
    with fq.FusionQueue(queue.device.filter_string) as other:
        if pending:
            other.start_fusion()
        event = other.submit(increment, 8, a)
        if pending:
            with pytest.warns(fq.FusionAborted, match=f"{command} depends on an event of the list"):
                run_command(queue, command, b, event)
        else:
            run_command(queue, command, b, [event])
        assert event.is_complete
        assert b.numpy()[0] == 1
    with pytest.raises(fq.ArgumentError, match="depends_on takes Events"):
        run_command(queue, command, b, [a])


def run_command(queue, command, b, depends_on):
    """A command that writes ones to ``b``."""
    if command == "memcpy":
        queue.memcpy(b, fq.Buffer(np.ones(8, np.float32)), depends_on=depends_on)
    elif command == "fill":
        queue.fill(b, 1, depends_on=depends_on)
    else:
        queue.host_task(lambda array: array.fill(1), b, depends_on=depends_on)


@pytest.mark.parametrize("count", [16, np.int64(4)])
def test_memcpy_takes_no_count(queue, count):
    a, b = fq.Buffer(4, np.int32), fq.Buffer(4, np.int32)
    with pytest.raises(fq.ArgumentError, match=rf"test_commands.*no count, such as {count}.*slice"):
        queue.memcpy(a, b, count)
