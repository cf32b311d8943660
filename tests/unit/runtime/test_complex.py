"""Complex arrays as arguments: buffers, NumPy's arrays, fusion, promotion, commands."""

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function

N = 64


def numbers(dtype=np.complex64, n=N):
    rng = np.random.default_rng(7)
    return (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(dtype)


@fq.kernel
def multiply(item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def divide(item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] / (b[i] + 1)


@fq.kernel
def butterfly(item, a, step, out):
    i = item.get_id(0)
    j = i ^ step
    out[i] = (a[j] - a[i]) * 1j if i & step else a[i] + a[j]


@fq.kernel
def transpose(item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[j, i] = a[i, j].conjugate()


@fq.kernel
def add_real(item, z, x):
    i = item.get_id(0)
    z[i] = z[i] + x[i]


@pytest.fixture
def queue(target):
    with fq.FusionQueue(target) as made:
        yield made


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_plain_submissions(queue, dtype):
    a, b = numbers(dtype), numbers(dtype)[::-1].copy()
    out, buffer = np.zeros(N, dtype), fq.Buffer(N, dtype)
    for _ in range(3):
        queue.submit(multiply, N, fq.Buffer(a), b, out)
        queue.submit(divide, N, out, b[::-1], buffer)
    queue.wait()
    np.testing.assert_array_equal(out, [x * y for x, y in zip(a, b, strict=True)])
    expected = [x / (y + 1) for x, y in zip(out, b[::-1], strict=True)]
    np.testing.assert_array_equal(buffer.numpy(), expected)
    assert (buffer.dtype, buffer.shape, buffer.nbytes) == (dtype, (N,), a.nbytes)


def test_views_commands_and_two_dimensions(queue):
    a = fq.Buffer(numbers(n=60).reshape(6, 10))
    out = fq.Buffer((10, 6), np.complex64)
    queue.submit(transpose, (3, 5), a[::2, 5:], out[5:, 1:4])
    whole = np.zeros((10, 6), np.complex64)
    whole[5:, 1:4] = a.numpy()[::2, 5:].T.conj()
    np.testing.assert_array_equal(out.numpy(), whole)
    queue.fill(a, 2 - 1j)
    queue.memcpy(out, a.numpy().reshape(10, 6))
    assert (out.numpy() == 2 - 1j).all()
    out.write(np.ones((10, 6), np.float32))
    assert (out.numpy() == 1).all() and out.numpy().dtype == np.complex64


@pytest.mark.parametrize("strategy", ["auto", "megakernel"])
def test_a_fused_list_is_the_unfused_one(queue, strategy):
    a = numbers()
    results = []
    for fused in (False, True):
        first, last = fq.Buffer(a), fq.Buffer(N, np.complex64)
        tmp = fq.Buffer(N, np.complex64, promote_private=True)

        def submit(first=first, last=last, tmp=tmp):
            queue.submit(multiply, N, first, a, tmp)
            queue.submit(divide, N, tmp, a, last)
            for step in (1, 2):
                queue.submit(butterfly, N, last, step, first)
                queue.submit(multiply, N, first, a, last)

        if fused:
            with fq.fusion(queue, strategy=strategy) as f:
                submit()
            assert [p.scope for p in f.report.promotions] == ["private"], str(f.report)
        else:
            submit()
        results.append((first.numpy().copy(), last.numpy().copy()))
    np.testing.assert_array_equal(results[0], results[1])


def test_the_real_parts_alias_the_numbers(queue):
    z = numbers()
    before = z.copy()
    with fq.fusion(queue) as f:
        queue.submit(add_real, N, z, z.real)
        queue.submit(add_real, N, z, z.imag)
    queue.wait()
    expected = before + before.real
    np.testing.assert_array_equal(z, expected + expected.imag)
    assert {d.scope for d in f.report.dependences} == {"ITEM"}


def test_commands_in_fusion_mode_and_other_arguments_of_a_graph(queue):
    a, b, out = fq.Buffer(numbers()), fq.Buffer(numbers()[::-1].copy()), fq.Buffer(N, np.complex64)
    tmp = fq.Buffer(N, np.complex64)
    with fq.fusion(queue) as f:
        queue.memcpy(tmp, a)
        queue.submit(multiply, N, tmp, a, out)
    assert (out.numpy() == [x * x for x in a.numpy()]).all()
    assert f.report.strategy == "fused"
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(multiply, N, a, a, out)
    graph.update(a=b)
    graph.launch().wait()
    assert (out.numpy() == [x * x for x in b.numpy()]).all()
    for other in (fq.Buffer((N, 2), np.float32), fq.Buffer(N, np.complex128)):
        with pytest.raises(fq.ArgumentError, match="like the one that was recorded"):
            graph.update(a=other)


TURNS = np.array([[1, 1j], [-1, -1j]], np.complex64)
PAIR = 1j, 2 - 1j


@fq.kernel
def turn(item: fq.NdItem, a, z, w, z_real, shared, pair, out):
    i, k = item.get_global_id(0), item.get_local_id(0)
    shared[k] = a[i // 32, i // 8 % 4, i % 8] * z + z_real
    fq.group_barrier(item.get_group())
    out[i] = shared[7 - k] * TURNS[i % 2, k // 4] + PAIR[k % 2] * w - pair[i % 2] + TURNS[1, 1]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_scalars_tables_local_memory_and_three_dimensions(queue, dtype):
    a = numbers(dtype).reshape(2, 4, 8)
    space, shared = fq.NdRange(N, 8), fq.LocalAccessor(8, dtype)
    for z in (2j, np.complex64(1 - 2j), np.complex128(0.5j)):
        for w in (3, -1 + 1j, np.complex64(2j)):
            out, want = np.zeros(N, dtype), np.zeros(N, dtype)
            queue.submit(turn, space, a, z, w, 2, shared, (1j, 3 + 0j), out).wait()
            run_function(turn.function, space, [a, z, w, 2, shared, (1j, 3 + 0j), want])
            np.testing.assert_array_equal(out, want)


def test_complex_scalars_change_between_replays(queue):
    @fq.kernel
    def scale(item, a, z, out):
        i = item.get_id(0)
        out[i] = a[i] * z

    a, out, z = fq.Buffer(numbers()), fq.Buffer(N, np.complex64), 2j
    with fq.fusion(queue) as f:
        queue.submit(scale, N, a, z, out)
    f.replay(z=3 - 1j)
    assert (out.numpy() == [x * (3 - 1j) for x in a.numpy()]).all()
    with pytest.raises(fq.ArgumentError, match="takes a float, as in the list, not float32"):
        f.replay(z=np.complex64(1))


def test_what_is_refused(queue):
    a = fq.Buffer(N, np.complex64)
    with pytest.raises(fq.ArgumentError, match=r"shape \(64,\).*element \[64\]"):
        queue.submit(multiply, N + 1, a, a, fq.Buffer(N + 1, np.complex64))
    with pytest.raises(fq.KernelLanguageError, match="a bitwise operation of a complex number"):
        queue.submit(butterfly, N, a, 1j, a)
    with pytest.raises(fq.ArgumentError, match="clongdouble"):
        queue.submit(butterfly, N, a, np.clongdouble(1), a)
    with pytest.raises(fq.ArgumentError, match="fill cannot put"):
        queue.fill(fq.Buffer(3, np.float32), 1j)
