"""CuPy, PyTorch, JAX and numba-cuda: their arrays as arguments, Buffers as theirs, streams."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.cuda.allocation import pool
from fusionq.backends.cuda.devices import device

N = 1 << 20


@fq.kernel
def scale(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def add(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def spin(item: fq.Item, a, turns):
    """Takes milliseconds."""
    i = item.get_id(0)
    x = a[i]
    for _ in range(turns):
        x = x * np.float32(1.0000001) + np.float32(1e-7)
    a[i] = x


@pytest.fixture(scope="session")
def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not module.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    return module


@pytest.fixture(scope="session")
def cupy():
    return pytest.importorskip("cupy", reason="CuPy is not installed")


def floats():
    return np.arange(N, dtype=np.float32)


# ------------------------------------------------------------------------------ arguments
def test_torch_tensors_are_arguments(queue, torch):
    a, out = torch.arange(N, dtype=torch.float32, device="cuda"), torch.zeros(N, device="cuda")
    queue.submit(scale, N, a, np.float32(3), out).wait()
    assert np.array_equal(out.cpu().numpy(), floats() * 3)


def test_cupy_arrays_are_arguments(queue, cupy):
    a, out = cupy.arange(N, dtype=np.float32), cupy.zeros(N, np.float32)
    queue.submit(scale, N, a, np.float32(3), out).wait()
    assert np.array_equal(out.get(), floats() * 3)


def test_numba_arrays_are_arguments(queue):
    cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    try:
        a, out = cuda.to_device(floats()), cuda.device_array(N, np.float32)
    except Exception as error:
        pytest.skip(f"numba-cuda does not run here: {type(error).__name__}: {error}")
    queue.submit(scale, N, a, np.float32(3), out).wait()
    assert np.array_equal(out.copy_to_host(), floats() * 3)


def test_jax_arrays_are_arguments_that_are_read(queue):
    """The first is still being copied to the GPU when it is submitted: JAX returns before that."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    try:
        gpu = jax.devices("gpu")[0]
    except Exception as error:
        pytest.skip(f"JAX has no GPU here: {error}")
    out = fq.Buffer(N, np.float32)
    numbers = floats()
    for factor in range(2, 22):
        queue.submit(scale, N, jax.device_put(numbers, gpu), np.float32(factor), out)
        assert np.array_equal(out.numpy(), numbers * factor)


def test_strided_and_reversed_views(queue, torch, cupy):
    a = cupy.arange(2 * N, dtype=np.float32)[::-2]
    t = torch.zeros((N, 3), device="cuda")[:, 1]
    queue.submit(scale, N, a, np.float32(1), t).wait()
    assert np.array_equal(t.cpu().numpy(), a.get())


def test_lists_fuse_over_arrays_of_several_libraries(queue, torch, cupy):
    a, b = torch.rand(N, device="cuda"), cupy.ones(N, np.float32)
    temporary = fq.Buffer(N, np.float32, internal=True)
    out = torch.empty(N, device="cuda")
    with fq.fusion(queue, require=True, promote="internal") as f:
        queue.submit(scale, N, a, np.float32(2), temporary)
        queue.submit(add, N, temporary, b, out)
    f.event.wait()
    assert f.report.strategy == "fused" and not temporary.is_allocated
    assert np.array_equal(out.cpu().numpy(), a.cpu().numpy() * np.float32(2) + 1)
    a += 1
    f.replay().wait()
    assert np.array_equal(out.cpu().numpy(), a.cpu().numpy() * np.float32(2) + 1)


def test_what_kernels_must_not_see_is_refused(queue, torch, cupy):
    out = fq.Buffer(N, np.float32)
    with pytest.raises(fq.ArgumentError, match=r"gradient.*detach"):
        queue.submit(scale, N, torch.zeros(N, device="cuda", requires_grad=True), 1.0, out)
    with pytest.raises(fq.KernelLanguageError, match="a complex number for an array"):
        queue.submit(scale, N, cupy.zeros(N, np.complex64), 1.0, out)
    negated = torch.zeros(N, dtype=torch.complex64, device="cuda").conj().imag
    with pytest.raises(fq.ArgumentError, match="resolve_neg"):
        queue.submit(scale, N, negated, 1.0, out)
    reference = fq.FusionQueue("reference")
    with pytest.raises(fq.DeviceError, match=r"cannot reach this array.*cuda:0"):
        reference.submit(scale, N, cupy.zeros(N, np.float32), 1.0, out)


def test_arrays_live_until_the_kernels_have_run(queue, cupy):
    a = cupy.full(N, 2, np.float32)
    seen = weakref.ref(a)
    out = fq.Buffer(N, np.float32)
    queue.submit(spin, N, fq.Buffer(N, np.float32), 20_000)
    queue.submit(scale, N, a, np.float32(3), out)
    del a
    assert seen() is not None
    queue.wait()
    gc.collect()
    assert np.array_equal(out.numpy(), np.full(N, 6, np.float32))


# -------------------------------------------------------------------------------- streams
def slow_fill(torch, stream, tensor, value):
    """A stream that overwrites ``tensor`` after some milliseconds."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        tensor.fill_(value)


def test_kernels_wait_for_the_current_stream_of_torch(queue, torch):
    stream, out = torch.cuda.Stream(), fq.Buffer(N, np.float32)
    for value in range(1, 6):
        a = torch.zeros(N, device="cuda")
        torch.cuda.synchronize()
        slow_fill(torch, stream, a, value)
        with torch.cuda.stream(stream):
            queue.submit(scale, N, a, np.float32(1), out)
        assert np.array_equal(out.numpy(), np.full(N, value, np.float32))


def test_lists_and_replays_wait_for_it_too(queue, torch):
    stream, out = torch.cuda.Stream(), fq.Buffer(N, np.float32)
    a = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        slow_fill(torch, stream, a, 1)
        with fq.fusion(queue) as f:
            queue.submit(scale, N, a, np.float32(2), out)
            queue.submit(scale, N, out, np.float32(2), out)
        assert np.array_equal(out.numpy(), np.full(N, 4, np.float32))
        for value in range(2, 6):
            slow_fill(torch, stream, a, value)
            f.replay()
            assert np.array_equal(out.numpy(), np.full(N, 4 * value, np.float32))


def test_kernels_wait_for_the_stream_that_an_interface_names(queue, cupy, torch):
    stream, out = cupy.cuda.Stream(non_blocking=True), fq.Buffer(N, np.float32)
    for value in range(1, 6):
        a = cupy.zeros(N, np.float32)
        cupy.cuda.Device().synchronize()
        t = torch.from_dlpack(a)
        slow_fill(torch, torch.cuda.ExternalStream(stream.ptr), t, value)
        with stream:
            queue.submit(scale, N, a, np.float32(1), out)
        assert np.array_equal(out.numpy(), np.full(N, value, np.float32))


def test_a_queue_on_a_library_s_stream_is_in_order_with_it(torch, cupy):
    stream = torch.cuda.Stream()
    with fq.FusionQueue(stream) as queue, torch.cuda.stream(stream):
        a = torch.zeros(N, device="cuda")
        for _ in range(20):
            queue.submit(spin, N, fq.Buffer(N, np.float32), 500)
            queue.submit(scale, N, a, np.float32(1), a)
            a += 1
            assert queue.__cuda_stream__()[1] == stream.cuda_stream
        assert np.array_equal(a.cpu().numpy(), np.full(N, 20, np.float32))


def test_the_queue_s_stream_for_others(queue, cupy):
    stream = cupy.cuda.ExternalStream(queue.__cuda_stream__()[1])
    a, out = fq.Buffer(N, np.float32), cupy.zeros(N, np.float32)
    cupy.cuda.Device().synchronize()
    queue.submit(spin, N, a, 100_000)
    shown = cupy.asarray(a)
    with stream:
        cupy.add(shown, 1, out=out)
    stream.synchronize()
    assert np.array_equal(out.get(), a.numpy() + 1)


# ------------------------------------------------------------------------------------ out
@pytest.mark.parametrize("how", ["interface", "dlpack"])
def test_buffers_as_cupy_arrays(queue, cupy, how):
    buffer = fq.Buffer(floats())
    queue.submit(spin, N, buffer, 50_000)
    queue.submit(scale, N, buffer, np.float32(0), buffer)
    queue.submit(add, N, buffer, fq.Buffer(floats()), buffer)
    shown = cupy.asarray(buffer) if how == "interface" else cupy.from_dlpack(buffer)
    copied = shown + 1  # on CuPy's stream, at once
    assert shown.data.ptr == buffer._storage.address
    assert np.array_equal(copied.get(), floats() + 1)


def test_buffers_as_tensors(queue, torch):
    buffer = fq.Buffer(floats())
    queue.submit(spin, N, buffer, 50_000)
    queue.submit(scale, N, buffer, np.float32(0), buffer)
    tensor = torch.from_dlpack(buffer)
    assert buffer.__dlpack_device__() == (2, 0)
    assert tensor.data_ptr() == buffer._storage.address
    assert not (tensor + 0).cpu().numpy().any()
    tensor += 5
    torch.cuda.synchronize()
    assert np.array_equal(buffer.numpy(), np.full(N, 5, np.float32))
    view = buffer[10:20:3]
    assert torch.from_dlpack(view).stride() == (3,)
    address, _ = view.__cuda_array_interface__["data"]
    assert torch.as_tensor(view, device="cuda").data_ptr() == address


def test_a_tensor_keeps_the_buffer_s_memory(queue, torch):
    buffer = fq.Buffer(floats())
    queue.submit(scale, N, buffer, np.float32(2), buffer)
    tensor = torch.from_dlpack(buffer)
    address = buffer._storage.address
    del buffer
    gc.collect()
    others = [fq.Buffer(np.zeros(N, np.float32)) for _ in range(4)]
    for other in others:
        queue.submit(scale, N, other, np.float32(1), other)
    queue.wait()
    assert tensor.data_ptr() == address
    assert np.array_equal(tensor.cpu().numpy(), floats() * 2)
    before = pool(device(0)).in_use()
    del tensor
    gc.collect()
    pool(device(0)).finish()
    assert pool(device(0)).in_use() < before


def test_a_host_copy_by_dlpack(queue):
    buffer = fq.Buffer(floats())
    queue.submit(scale, N, buffer, np.float32(2), buffer)
    assert np.array_equal(np.from_dlpack(buffer, device="cpu"), floats() * 2)


# -------------------------------------------------------------------------- buffers around
@pytest.mark.parametrize("how", ["interface", "dlpack"])
def test_buffers_around_tensors(queue, torch, how):
    class OnlyDlpack:
        def __init__(self, tensor):
            self.__dlpack__ = tensor.__dlpack__
            self.__dlpack_device__ = tensor.__dlpack_device__

    stream = torch.cuda.Stream()
    tensor = torch.zeros((8, N // 8), device="cuda")
    torch.cuda.synchronize()
    slow_fill(torch, stream, tensor, 3)
    with torch.cuda.stream(stream):
        buffer = fq.Buffer(tensor if how == "interface" else OnlyDlpack(tensor), copy=False)
    del stream
    assert buffer.shape == (8, N // 8) and buffer.dtype == np.float32
    flat = fq.Buffer(N // 8, np.float32)
    queue.submit(scale, N // 8, buffer[3], np.float32(2), flat)
    assert np.array_equal(flat.numpy(), np.full(N // 8, 6, np.float32))
    queue.fill(buffer, 9)
    assert np.array_equal(tensor.cpu().numpy(), np.full((8, N // 8), 9, np.float32))
    copy = fq.Buffer(tensor)
    buffer.write(np.zeros((8, N // 8), np.float32))
    assert copy.numpy()[2, 5] == 9 and not tensor.any()


def test_commands_take_arrays_of_the_gpu(queue, cupy):
    a, b = cupy.zeros(N, np.float32), fq.Buffer(floats())
    queue.submit(scale, N, b, np.float32(2), b)
    queue.memcpy(a, b)
    assert np.array_equal(a.get(), floats() * 2)
    queue.fill(a, 4)
    queue.host_task(lambda x: x.__iadd__(1), a)
    assert np.array_equal(a.get(), np.full(N, 5, np.float32))
    queue.memcpy(b, a)
    assert np.array_equal(b.numpy(), a.get())


def test_a_buffer_around_an_array_stays_on_its_gpu(queue, cupy):
    buffer = fq.Buffer(cupy.zeros(N, np.float32), copy=False)
    with pytest.raises(fq.DeviceError, match="only NVIDIA"):
        fq.FusionQueue("reference").submit(scale, N, buffer, 1.0, buffer)
