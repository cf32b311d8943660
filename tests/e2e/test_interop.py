"""Memory of other libraries goes in and out without a copy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.kernels import N, empty, increment, numbers


@pytest.fixture
def dpnp(sycl_queue):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "dpnp", reason="dpnp is not installed, or does not fit this dpctl", exc_type=ImportError
        )


def floats():
    return np.arange(N, dtype=np.float32)


def launch(queue, source, target):
    temporary = fq.Buffer(N, np.float32, promote_private=True)
    with fq.fusion(queue) as f:
        queue.submit(increment, N, source, temporary)
        queue.submit(increment, N, temporary, target)
    f.event.wait()
    assert f.report.strategy == "fused"


# ---------------------------------------------------------------------------------- NumPy
def test_numpy_arrays_in_and_out(queue):
    a, out = floats(), np.zeros(N, np.float32)
    launch(queue, a, out)
    assert np.array_equal(out, a + 2)


def test_a_buffer_as_a_numpy_array(queue):
    out = fq.Buffer(N, np.float32)
    view = np.asarray(out)
    launch(queue, fq.Buffer(floats()), out)
    assert np.array_equal(view, floats() + 2)  # no copy: the view sees what came later
    assert np.shares_memory(view, out.numpy())


def test_numpy_functions_take_buffers(queue):
    buffer = numbers()
    queue.submit(increment, N, numbers(), buffer)
    assert np.sum(buffer) == np.arange(1, N + 1).sum()
    assert np.array_equal(np.asarray(buffer, dtype=np.float64), np.arange(1.0, N + 1))


def test_a_buffer_around_a_numpy_array(queue):
    memory = floats()
    queue.submit(increment, N, fq.Buffer(floats()), fq.Buffer(memory, copy=False)).wait()
    assert np.array_equal(memory, floats() + 1)


# --------------------------------------------------------------------------------- DLPack
def test_dlpack_out(queue):
    buffer = empty()
    view = np.from_dlpack(buffer)
    queue.submit(increment, N, numbers(), buffer).wait()
    assert np.array_equal(view, np.arange(N) + 1)
    assert np.shares_memory(view, buffer.numpy())


def test_dlpack_in(queue):
    class Producer:
        """An array of a library that speaks DLPack and nothing else."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    memory = np.arange(N)
    buffer = fq.Buffer(np.from_dlpack(Producer(memory)), copy=False)
    out = empty()
    queue.submit(increment, N, buffer, out).wait()
    assert np.array_equal(out.numpy(), memory + 1)
    assert np.shares_memory(buffer.numpy(), memory)


# ---------------------------------------------------------------------------------- dpctl
def usm(queue, values):
    memory = pytest.importorskip("dpctl.memory").MemoryUSMShared(
        values.nbytes, queue=queue.sycl_queue
    )
    view = np.frombuffer(memory, values.dtype)
    view[:] = values
    return memory, view


def test_usm_memory_in_a_fused_list(sycl_queue):
    source, _ = usm(sycl_queue, np.arange(N, dtype=np.uint8))
    target, view = usm(sycl_queue, np.zeros(N, np.uint8))
    temporary = fq.Buffer(N, np.uint8, promote_private=True)
    with fq.fusion(sycl_queue) as f:
        sycl_queue.submit(increment, N, source, temporary)
        sycl_queue.submit(increment, N, temporary, target)
    f.event.wait()
    assert f.report.strategy == "fused"
    assert np.array_equal(view, np.arange(N) + 2)


def test_usm_memory_as_a_buffer(sycl_queue):
    memory, view = usm(sycl_queue, np.zeros(N, np.uint8))
    buffer = fq.Buffer(memory, copy=False)
    sycl_queue.submit(increment, N, fq.Buffer(np.arange(N, dtype=np.uint8)), buffer).wait()
    assert np.array_equal(view, np.arange(N) + 1)


def test_a_buffer_as_usm_memory(sycl_queue):
    memory = pytest.importorskip("dpctl.memory")
    out = fq.Buffer(N, np.float32)
    seen = memory.as_usm_memory(out)
    launch(sycl_queue, fq.Buffer(floats()), out)
    assert np.array_equal(np.frombuffer(seen, np.float32), floats() + 2)


# ----------------------------------------------------------------------------------- dpnp
def test_dpnp_arrays_in_and_out(dpnp, sycl_queue):
    where = {"sycl_queue": sycl_queue.sycl_queue}
    a = dpnp.arange(N, dtype=np.float32, **where)
    out = dpnp.zeros(N, dtype=np.float32, **where)
    sycl_queue.sycl_queue.wait()
    launch(sycl_queue, a, out)
    assert np.array_equal(dpnp.asnumpy(out), floats() + 2)


def test_dpnp_views_in_and_out(dpnp, sycl_queue):
    a = dpnp.arange(2 * N, dtype=np.float32, sycl_queue=sycl_queue.sycl_queue)
    out = dpnp.zeros(2 * N, dtype=np.float32, sycl_queue=sycl_queue.sycl_queue)
    sycl_queue.sycl_queue.wait()
    launch(sycl_queue, a[::2], out[N:])
    assert np.array_equal(dpnp.asnumpy(out)[N:], 2 * floats() + 2)
    assert not dpnp.asnumpy(out)[:N].any()


def test_a_dpnp_array_as_a_buffer(dpnp, sycl_queue):
    array = dpnp.zeros(N, dtype=np.float32, usm_type="shared", sycl_queue=sycl_queue.sycl_queue)
    buffer = fq.Buffer(array, copy=False)
    launch(sycl_queue, fq.Buffer(floats()), buffer)
    assert np.array_equal(dpnp.asnumpy(array), floats() + 2)


def test_a_buffer_as_a_dpnp_array(dpnp, sycl_queue):
    memory = pytest.importorskip("dpctl.memory")
    out = fq.Buffer(N, np.float32)
    array = dpnp.ndarray(out.shape, dtype=out.dtype, buffer=memory.as_usm_memory(out))
    launch(sycl_queue, fq.Buffer(floats()), out)
    assert float(array.sum()) == float((floats() + 2).sum())
    array[0] = 5
    array.sycl_queue.wait()
    assert out.numpy()[0] == 5
