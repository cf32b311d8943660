"""New memory is filled with zeros unless a list stores all of it before anybody reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.submission import overwritten_memory
from tests.poisoned import poisoned
from tests.unit.runtime.kernels import add, scale

N = 60


@pytest.fixture(autouse=True)
def unfilled(queue: fq.FusionQueue) -> Iterator[list[int]]:
    """The bytes of what was not filled."""
    with poisoned(queue) as found:
        yield found


@fq.kernel
def guarded(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    if i < n:
        out[i] = a[i] + 1


@fq.kernel
def returning(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    if i >= n:
        return
    out[i] = a[i] + 1


@fq.kernel
def either(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    if i < n:
        out[i] = a[i]
    else:
        out[i] = -1


@fq.kernel
def on_data(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    if a[i] > n:
        out[i] = a[i]


@fq.kernel
def spread(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    out[n * i] = a[i]


@fq.kernel
def moved(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    if 0 <= i + n < out.shape[0]:
        out[i + n] = a[i]


@fq.kernel
def backwards(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    out[out.shape[0] - 1 - i] = a[i] * n


@fq.kernel
def scattered(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    out[np.int64(a[i]) % n] = a[i]


@fq.kernel
def own_first(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] = a[i]
    out[i] = out[i] + n


@fq.kernel
def accumulated(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    out[i] += a[i] * n


@fq.kernel
def counted(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    fq.AtomicRef(out, i).fetch_add(a[i] * n)


@fq.kernel
def in_steps(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(n):
        out[i * n + k] = a[i] + k


@fq.kernel
def until_found(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(n):
        if a[i * n + k] > 3:
            break
        out[i * n + k] = 1


Case = tuple[Any, int, int, bool]

CASES: list[Case] = [
    (guarded, N, N, True), (guarded, N, N + 5, True), (guarded, N, N - 1, False),
    (guarded, N, 0, False), (returning, N, N, True), (returning, N, 7, False),
    (either, N, 7, True), (either, N - 1, 7, False), (on_data, N, 1, False),
    (spread, N, 1, True), (spread, N // 2, 2, False), (moved, N, 0, True), (moved, N, 1, False),
    (moved, N, -1, False), (backwards, N, 2, True), (backwards, N - 1, 2, False),
    (scattered, N, N, False), (own_first, N, 1, False), (accumulated, N, 1, False),
    (counted, N, 1, False), (in_steps, N // 3, 3, True), (in_steps, N // 3 - 1, 3, False),
    (until_found, N // 3, 3, False),
]  # fmt: skip


def host(value: fq.Buffer) -> np.ndarray:
    return np.array(value.numpy())


def run_by_numbers(kernel: Any, items: int, n: int, a: np.ndarray) -> np.ndarray:
    """What the reference backend leaves in zeros."""
    with fq.FusionQueue("reference") as queue:
        out = fq.Buffer(np.zeros(N, a.dtype))
        queue.submit(kernel, items, fq.Buffer(a), n, out).wait()
        return host(out)


@pytest.mark.parametrize(("kernel", "items", "n", "whole"), CASES)
def test_only_what_is_stored_for_certain_is_not_filled(
    queue: fq.FusionQueue, unfilled: list[int], kernel: Any, items: int, n: int, whole: bool
) -> None:
    a = np.arange(N, dtype=np.float32) % 7
    expected = run_by_numbers(kernel, items, n, a)
    for _ in range(3):
        out = fq.Buffer(N, np.float32)
        queue.submit(kernel, items, fq.Buffer(a), n, out)
        np.testing.assert_array_equal(host(out), expected)
    assert len(unfilled) == (3 if whole else 0)
    unfilled.clear()
    for strategy in ("fused", "sequence", "unfused"):
        between, out = fq.Buffer(N, np.float32), fq.Buffer(N, np.float32)
        with fq.fusion(queue, strategy=strategy):
            queue.submit(kernel, items, fq.Buffer(a), n, between)
            queue.submit(scale, N, between, 2.0, out)
        np.testing.assert_array_equal(host(out), expected * 2)
        np.testing.assert_array_equal(host(between), expected)
    assert len(unfilled) == (6 if whole else 3)


def test_sizes_and_scalars_that_vary(queue: fq.FusionQueue, unfilled: list[int]) -> None:
    for size, n in ((9, 9), (9, 8), (12, 12), (30, 29), (30, 30), (8, 9), (12, 3), (7, 7)):
        a = np.arange(size, dtype=np.float32)
        out = fq.Buffer(size, np.float32)
        unfilled.clear()
        queue.submit(guarded, size, fq.Buffer(a), n, out)
        np.testing.assert_array_equal(host(out), np.where(np.arange(size) < n, a + 1, 0))
        assert len(unfilled) == (n >= size), (size, n)


def test_who_reads_first(queue: fq.FusionQueue, unfilled: list[int]) -> None:
    a = fq.Buffer(np.arange(N, dtype=np.float32))
    out, later = fq.Buffer(N, np.float32), fq.Buffer(N, np.float32)
    with fq.fusion(queue):
        queue.submit(add, N, a, later, out)  # zeros
        queue.submit(scale, N, a, 3.0, later)
    np.testing.assert_array_equal(host(out), np.arange(N))
    np.testing.assert_array_equal(host(later), np.arange(N) * 3)
    assert unfilled == [4 * N]


def test_parts_and_the_same_memory_twice(queue: fq.FusionQueue, unfilled: list[int]) -> None:
    a = fq.Buffer(np.arange(N, dtype=np.float32))
    half, twice = fq.Buffer(2 * N, np.float32), fq.Buffer(N, np.float32)
    queue.submit(scale, N, a, 3.0, half[:N])
    queue.submit(add, N, a, twice, twice)
    np.testing.assert_array_equal(host(half)[N:], 0)
    np.testing.assert_array_equal(host(twice), np.arange(N))
    assert not unfilled


@fq.kernel
def transposed(item: fq.Item, a: Any, out: Any) -> None:
    i, j = item.get_id(0), item.get_id(1)
    out[j, i] = a[i, j]


@fq.kernel
def flat(item: fq.Item, a: Any, out: Any) -> None:
    k = item.get_id(0)
    i, j = k // out.shape[1], k % out.shape[1]
    out[i, j] = a[i, j]


@fq.kernel
def inside(item: fq.Item, a: Any, out: Any) -> None:
    i, j = item.get_id(0) + 1, item.get_id(1) + 1
    out[i, j] = a[i, j]


@pytest.mark.parametrize(
    ("kernel", "whole", "of"),
    [
        (transposed, True, lambda n, m: (n, m)),
        (flat, None, lambda n, m: n * m),
        (inside, False, lambda n, m: (n - 2, m - 2)),
    ],
)
def test_planes(
    queue: fq.FusionQueue, unfilled: list[int], kernel: Any, whole: bool | None,
    of: Callable[[int, int], Any],
) -> None:  # fmt: skip
    for n, m in ((6, 11), (8, 11), (3, 40), (1, 5)):
        unfilled.clear()
        if min(n, m) < 3 and kernel is inside:
            continue
        a = np.arange(1, n * m + 1, dtype=np.float32).reshape(n, m)
        shape = (m, n) if kernel is transposed else (n, m)
        out = fq.Buffer(shape, np.float32)
        queue.submit(kernel, of(n, m), fq.Buffer(a), out)
        expected = a.T if kernel is transposed else a.copy()
        if kernel is inside:
            expected[[0, -1]] = 0
            expected[:, [0, -1]] = 0
        np.testing.assert_array_equal(host(out), expected)
        if whole is not None:
            assert len(unfilled) == whole


@pytest.mark.parametrize("dtype", ["c8", [("x", "f4"), ("y", "i4")], "u1", "f8"], ids=str)
def test_elements_of_parts(queue: fq.FusionQueue, unfilled: list[int], dtype: Any) -> None:
    @fq.kernel
    def copied(item: fq.Item, a: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = a[i]

    @fq.kernel
    def first_only(item: fq.Item, a: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i]["x"] = a[i]["x"]

    a = np.arange(1, 8 * N + 1, dtype=np.uint8)[: np.dtype(dtype).itemsize * N].view(dtype)
    kernel = first_only if isinstance(dtype, list) else copied
    out = fq.Buffer(N, np.dtype(dtype))
    queue.submit(kernel, N, fq.Buffer(a), out)
    found = host(out)
    if isinstance(dtype, list):
        assert np.array_equal(found["x"], a["x"]) and not found["y"].any() and not unfilled
    else:
        assert found.tobytes() == a.tobytes() and len(unfilled) == 1


def test_little_is_filled(
    queue: fq.FusionQueue, unfilled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overwritten_memory, "LEAST", 4 * N)
    for n in (N - 1, N):
        out = fq.Buffer(n, np.float32)
        queue.submit(scale, n, fq.Buffer(np.ones(n, np.float32)), 2.0, out)
        np.testing.assert_array_equal(host(out), 2)
    assert unfilled == [4 * N]


def test_what_nobody_launches_is_zeros(queue: fq.FusionQueue, unfilled: list[int]) -> None:
    """Nothing is left of a list that did not run."""
    out = fq.Buffer(N, np.float32)
    with pytest.raises(fq.ArgumentError), fq.fusion(queue):
        queue.submit(scale, N + 1, fq.Buffer(np.ones(N, np.float32)), 2.0, out)
    np.testing.assert_array_equal(host(out), 0)
    assert not unfilled
