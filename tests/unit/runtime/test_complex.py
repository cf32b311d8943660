"""Complex arrays as arguments: buffers, NumPy's arrays, fusion, promotion, commands."""

import cmath

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference import run_function

N = 64
_ENDS = (0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan)


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
    scalars = [(2j, 3), (np.complex64(1 - 2j), -1 + 1j), (np.complex128(0.5j), np.complex64(2j))]
    for z, w in scalars:
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
    with pytest.raises(fq.ArgumentError, match="takes a complex, as in the list, not complex64"):
        f.replay(z=np.complex64(1))


def test_complex_scalars_go_by_the_parameter_s_name_too(queue):
    @fq.kernel
    def scale(item, a, by, z_real, out):
        i = item.get_id(0)
        out[i] = a[i] * by + z_real

    a, out, factor, z = fq.Buffer(numbers()), fq.Buffer(N, np.complex64), 2j, np.complex64(1j)
    with fq.fusion(queue) as f:
        queue.submit(scale, N, a, factor, z.real, out)
    f.replay(by=3 - 1j)
    assert (out.numpy() == [x * (3 - 1j) for x in a.numpy()]).all()
    f.replay(factor=1 - 1j, z_real=np.float32(2))
    assert (out.numpy() == [x * (1 - 1j) + np.float32(2) for x in a.numpy()]).all()
    with pytest.raises(fq.ArgumentError, match="takes a complex, as in the list, not float"):
        f.replay(by=1.0)
    with pytest.raises(fq.ArgumentError, match="takes a float32, as in the list, not complex64"):
        f.replay(z_real=np.complex64(2))
    with pytest.raises(
        fq.ArgumentError, match=r"no scalar argument 'y' .* has by, factor, z\.real, z_real\."
    ):
        f.replay(y=1.0)
    graph = fq.Graph()
    with graph.record(queue):
        queue.submit(scale, N, a, factor, z.real, out)
    graph.update(by=5j)
    graph.launch()
    assert (out.numpy() == [x * 5j for x in a.numpy()]).all()


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


@fq.kernel
def functions(item, a, b, x, n, out):
    i = item.get_id(0)
    z, w = a[i], b[i]
    out[i, 0], out[i, 1], out[i, 2] = np.exp(z), np.log(z), np.sqrt(z)
    out[i, 3], out[i, 4], out[i, 5] = np.sin(z), np.cos(z), np.tan(z)
    out[i, 6], out[i, 7], out[i, 8] = np.sinh(z), np.cosh(z), np.tanh(z)
    out[i, 9], out[i, 10] = np.log2(z), np.log10(z)
    out[i, 11], out[i, 12] = cmath.exp(x[i] * 1j), cmath.sqrt(-x[i])
    out[i, 13], out[i, 14] = z**w, np.power(z, 0.5)
    out[i, 15:17] = np.exp(a[i : i + 2]) * w
    out[i, 17] = complex(cmath.phase(z), np.angle(w))


@fq.kernel
def exact_functions(item, a, b, n, out):
    i = item.get_id(0)
    out[i, 0], out[i, 1], out[i, 2] = a[i] ** 2, a[i] ** 3, pow(a[i], n)
    out[i, 3], out[i, 4] = np.reciprocal(a[i]), np.power(a[i], -2)
    out[i, 5], out[i, 6] = np.isnan(a[i]) or cmath.isinf(b[i]), np.isfinite(b[i])
    out[i, 7] = np.square(a[i]) ** 0


SPECIAL = [complex(x, y) for x in _ENDS for y in _ENDS]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_functions_of_infinities_and_nan(dtype):
    """What C99 (annex G) says: where there is an infinity and where a NaN, as in NumPy."""
    a = np.array(SPECIAL, dtype)
    n = len(a)
    out = np.zeros((n, 18), dtype)
    with fq.FusionQueue("reference") as queue, np.errstate(all="ignore"):
        queue.submit(functions, n - 1, a, np.ones_like(a), np.ones(n, a.real.dtype), 5, out)
        names = ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")
        expected = np.stack([getattr(np, name)(a) for name in names], 1)
    for part in ("real", "imag"):
        ours, numpys = getattr(out[: n - 1, :9], part), getattr(expected[: n - 1], part)
        for kind in (np.isnan, np.isinf, np.isfinite):
            np.testing.assert_array_equal(kind(ours), kind(numpys))


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_functions(target, dtype):
    """To a few units in the last place of the result's length; whole powers bit for bit."""
    rng = np.random.default_rng(3)
    a, b = (numbers(np.complex128, 3 * N + 1) * s for s in (1, 3))
    a[:N] *= 10.0 ** rng.uniform(-30, 30, N)
    a[N : 2 * N] = np.exp(1j * a[N : 2 * N].real)  # whose logarithms are near 0
    a, b = a.astype(dtype), b.astype(dtype)
    x = abs(a[:-1].real)
    out, exact = np.zeros((3 * N, 18), dtype), np.zeros((3 * N, 8), dtype)
    with fq.FusionQueue(target) as queue:
        queue.submit(functions, 3 * N, a, b, x, 5, out)
        queue.submit(exact_functions, 3 * N, a, b, 5, exact)
    z, w = a[:-1].astype(np.clongdouble), b[:-1].astype(np.clongdouble)
    with np.errstate(all="ignore"):
        wide = [
            *(f(z) for f in (np.exp, np.log, np.sqrt, np.sin, np.cos, np.tan)),
            *(f(z) for f in (np.sinh, np.cosh, np.tanh)),
            np.log(z) / np.log(np.longdouble(2)), np.log(z) / np.log(np.longdouble(10)),
            np.exp(x.astype(np.longdouble) * 1j), np.sqrt(x.astype(np.longdouble)) * 1j,
            z**w, np.sqrt(z), np.exp(z) * w, np.exp(a[1:].astype(np.clongdouble)) * w,
            np.angle(z) + 1j * np.angle(w),
        ]  # fmt: skip
        units = np.finfo(dtype).eps * np.array([4] * 13 + [400, 100] + [4] * 3)
        for k, expected in enumerate(wide):
            ends = np.isfinite(expected.astype(dtype)) & (abs(expected) > np.finfo(dtype).tiny)
            error = abs(out[ends, k] - expected[ends]) / abs(expected[ends])
            assert ends.sum() > N and error.max() < units[k], (k, error.max() / units[k])
    a, b = a[:-1], b[:-1]
    named = (np.isnan(a) | np.isinf(b)).astype(dtype), np.isfinite(b).astype(dtype)
    with np.errstate(all="ignore"):
        same = [*(np.array([p**k for p in a]) for k in (2, 3, 5)), np.reciprocal(a),
                np.array([p**-2 for p in a]), *named, np.ones_like(a)]  # fmt: skip
    np.testing.assert_array_equal(exact, np.stack(same, 1))
