"""Non-temporal stores give the bits of ordinary ones, wherever arrays begin and ranges end.

The device is said to have caches of a few bytes, so that every launch leaves them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq

pytestmark = pytest.mark.usefixtures("printed")

SIZES = (0, 1, 15, 16, 17, 31, 255, 256, 257, 4095, 4096, 4097, 70_001)
FEWER_SIZES = SIZES[:9]
"""Where there are no such stores."""
DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
    "float64",
)  # fmt: skip


@fq.kernel
def weighted(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] * b[i]


@fq.kernel
def functions(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = np.exp(a[i] * 0.25) / np.sqrt(b[i] + 1) + (np.sin(a[i]) if a[i] > b[i] else b[i])


@fq.kernel
def products_of_sums(item: fq.Item, a, b, plus, minus):
    i = item.get_id(0)
    plus[i] = (a[i] + b[i]) * b[0]
    minus[i] = (a[i] - b[i]) * b[0]


@fq.kernel
def other_types(item: fq.Item, a, bigger, nearest, double):
    i = item.get_id(0)
    bigger[i] = a[i] > 3
    nearest[i] = np.int16(a[i] * 100)
    double[i] = a[i]


@fq.kernel
def of_rows(item: fq.Item, a, row, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i, j] * row[j] + i


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i + 1] = a[i]


@fq.kernel
def where_positive(item: fq.Item, a, out):
    i = item.get_id(0)
    if a[i] > 0:
        out[i] = a[i]


@pytest.fixture
def streaming(queue: fq.FusionQueue) -> fq.FusionQueue:
    """``queue``, on a device with next to no caches, which makes such stores of all kernels."""
    backend = queue._state.launcher.backend
    device = replace(
        backend.target.device, streams_stores=True, masks_vectors=True, splits_rows=False
    )
    backend.target = replace(backend.target, device=device, cache_bytes=2)
    return queue


@pytest.fixture
def dtype(request: pytest.FixtureRequest, streaming: fq.FusionQueue) -> str:
    """A type that the device has."""
    name: str = request.param
    if name == "float16" and not streaming._state.launcher.backend.info.has_fp16:
        pytest.skip("float16, which the backend lacks")
    return name


def values(n: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 7, n).astype(dtype)


def streams(fusion: fq.Fusion) -> int:
    """How many stores of its kernels are non-temporal."""
    return fusion.report.source.count("# non-temporal")


@pytest.mark.parametrize("dtype", DTYPES, indirect=True)
def test_each_type_at_each_end_of_a_range(
    streaming: fq.FusionQueue, target: str, dtype: str
) -> None:
    for n in SIZES if target == "sycl" else FEWER_SIZES:
        a, b = values(n, dtype), values(n, dtype, 1)
        held, out = [fq.Buffer(x) for x in (a, b)], fq.Buffer(np.ones(n + 40, dtype))
        with fq.fusion(streaming) as f:
            streaming.submit(weighted, n, *held, out)
        assert np.array_equal(out.numpy(), np.concatenate([a * b, np.ones(40, dtype)]))
        assert streams(f) == (n > 0)


@pytest.mark.parametrize("offset", [1, 3, 8, 15, 16])
def test_arrays_that_begin_anywhere(streaming: fq.FusionQueue, offset: int) -> None:
    for n in (16, 300, 5_000):
        a, b = values(n), values(n, seed=1)
        out = fq.Buffer(np.zeros(n + 64, np.float32))
        streaming.submit(weighted, n, fq.Buffer(a), fq.Buffer(b), out[offset : offset + n])
        expected = np.zeros(n + 64, np.float32)
        expected[offset : offset + n] = a * b
        assert np.array_equal(out.numpy(), expected)


def test_prepared_launches_of_arrays_elsewhere(streaming: fq.FusionQueue) -> None:
    n = 5_000
    a, b, out = fq.Buffer(values(n)), fq.Buffer(values(n, seed=1)), fq.Buffer(2 * n, np.float32)
    for first in (0, 16, 1, 17, 0):
        streaming.fill(out, -1)
        streaming.submit(weighted, n, a, b, out[first : first + n])
        assert np.array_equal(out.numpy()[first : first + n], a.numpy() * b.numpy())
        assert np.count_nonzero(out.numpy() == -1) == n


@pytest.mark.parametrize("kernel", [functions, products_of_sums, other_types])
@pytest.mark.parametrize("n", [7, 300, 8_191])
def test_the_bits_of_ordinary_stores(
    streaming: fq.FusionQueue, target: str, kernel: fq.KernelFunction, n: int
) -> None:
    types = {
        functions: [np.float32],
        products_of_sums: [np.float32] * 2,
        other_types: [np.bool_, np.int16, np.float64],
    }
    arguments = [values(n), values(n, seed=1)][: 1 if kernel is other_types else 2]

    def run(queue: fq.FusionQueue) -> tuple[list[bytes], int]:
        outs = [fq.Buffer(n, dtype) for dtype in types[kernel]]
        with fq.fusion(queue) as f:
            queue.submit(kernel, n, *map(fq.Buffer, arguments), *outs)
        return [out.numpy().tobytes() for out in outs], streams(f)

    bits, count = run(streaming)
    with fq.FusionQueue(target) as ordinary:
        assert run(ordinary) == (bits, 0)
    assert count == len(types[kernel])


@pytest.mark.parametrize("columns", [1, 16, 17, 48, 100, 256])
def test_rows(streaming: fq.FusionQueue, columns: int) -> None:
    """Those that begin where vectors do; others have ordinary stores."""
    a, row = values(30 * columns).reshape(30, columns), values(columns, seed=1)
    lanes = streaming._state.launcher.backend.target.vector_width
    out, wider = fq.Buffer(a.shape, np.float32), fq.Buffer((30, columns + 5), np.float32)
    for to in (out, wider[:, 2 : columns + 2]):
        with fq.fusion(streaming) as f:
            streaming.submit(of_rows, a.shape, fq.Buffer(a), fq.Buffer(row), to)
        assert streams(f) == (to is out and columns % lanes == 0)
        expected = a * row + np.arange(30, dtype=np.int64)[:, None]
        assert np.array_equal(to.numpy(), expected.astype(np.float32))


def test_a_list_reads_what_it_has_stored(streaming: fq.FusionQueue) -> None:
    n = 10_007
    a, b = values(n), values(n, seed=1)
    held, one, two, three = fq.Buffer(a), *(fq.Buffer(n + 1, np.float32) for _ in range(3))
    with fq.fusion(streaming, strategy="unfused") as f:
        streaming.submit(weighted, n, held, fq.Buffer(b), one)
        streaming.submit(shifted, n, one, two)
        streaming.submit(where_positive, n, two, three)
        streaming.submit(weighted, n, two, three, one)
    assert streams(f) == 2
    product = np.concatenate([[0], a * b]).astype(np.float32)[:n]
    assert np.array_equal(one.numpy()[:n], product * product)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64"], indirect=True)
def test_a_fused_list_loads_what_it_has_stored(streaming: fq.FusionQueue, dtype: str) -> None:
    for n in (5, 300, 8_197):
        a, b = values(n, dtype), values(n, dtype, 1)
        held, other, one, two = fq.Buffer(a), fq.Buffer(b), *(fq.Buffer(n, dtype) for _ in range(2))
        with fq.fusion(streaming, strategy="fused") as f:
            streaming.submit(weighted, n, held, other, one)
            streaming.submit(weighted, n, one, other, two)
        assert streams(f) == 2
        assert np.array_equal(one.numpy(), a * b)
        assert np.array_equal(two.numpy(), a * b * b)


def test_in_place(streaming: fq.FusionQueue) -> None:
    n = 1_003
    a, b = values(n), values(n, seed=1)
    held = fq.Buffer(a)
    with fq.fusion(streaming) as f:
        streaming.submit(weighted, n, held, fq.Buffer(b), held)
    assert streams(f) == 0
    assert np.array_equal(held.numpy(), a * b)
