"""Ids in 32 bits and fewer, sums of which wrap around for some sizes and scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusionq as fq

N = 300


@fq.kernel
def placed(item: fq.Item, a: Any, by: Any, plus: Any, out: Any, seen: Any) -> None:
    i = np.int32(item.get_id(0))
    at = i * by + plus
    if at > i:
        seen[i] = 1
    seen[((at + at) & 127) + 300] = 2
    out[i] = a[(at - 1) & 255] + np.float32(at)


@fq.kernel
def unsigned(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = np.uint32(item.get_id(0))
    if i - np.uint32(1) < n - np.uint32(1):
        out[i] = a[i - np.uint32(1)]
    else:
        out[i] = a[min(i - n, i)]


@fq.kernel
def stencil(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = np.uint32(item.get_id(0))
    one = np.uint32(1)
    if i > one and i < n - one:
        out[i] = a[i - one] + a[i + np.uint32(2**32 - 2)] * 2 + a[(i * n + one) - n * i]


@fq.kernel
def through_variables(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = np.uint32(item.get_id(0))
    left = i - np.uint32(1)
    before = left - np.uint32(1)
    right = i + np.uint32(1)
    if i > np.uint32(1) and right < n:
        out[i] = a[left] + a[before] * 2 + a[right] * 4
    elif left > i:
        out[i] = np.float32(left)


@fq.kernel
def divided(item: fq.Item, a: Any, w: Any, out: Any) -> None:
    i = np.int32(item.get_id(0))
    y, x = i // w, i % w
    z = (x - y) // w
    if x > 0 and z < 5:
        out[i] = a[i - 1] + np.float32(y) * 3 + np.float32(z)
    else:
        out[i] = a[x & 255] + np.float32(y)


@fq.kernel
def by_extents(item: fq.Item, a: Any, n: Any, out: Any) -> None:
    i = np.int32(item.get_id(0))
    at = n - 1
    if i < at:
        at = i + 1
    out[i] = a[at & 511] + np.float32(at)


@fq.kernel
def of_bytes(item: fq.Item, a: Any, out: Any, high: Any) -> None:
    i = np.int8(item.get_id(0))
    j = np.uint8(item.get_id(0))
    k = i + high
    if k < i:
        out[item.get_id(0)] = a[np.int64(k) + 128]
    else:
        out[item.get_id(0)] = a[j] + np.float32(-i)


def test_sums_that_wrap_around(queue: fq.FusionQueue) -> None:
    """The same kernel for scalars with which they do, and others with which they do not."""
    a = np.random.default_rng(1).random(512).astype(np.float32)
    given = fq.Buffer(a)
    i = np.arange(N, dtype=np.int32)
    for by, plus in ((1, 0), (3, -7), (1 << 24, 5), (1 << 30, 1), (-3, 2**31 - 1), (1, 2**31 - 9)):
        out, seen = fq.Buffer(np.zeros(512, "f4")), fq.Buffer(np.zeros(N + 128, np.uint8))
        with fq.fusion(queue):
            queue.submit(placed, N, given, np.int32(by), np.int32(plus), out, seen)
        with np.errstate(over="ignore"):
            at = i * np.int32(by) + np.int32(plus)
            want = a[(at - np.int32(1)) & 255] + at.astype(np.float32)
        np.testing.assert_array_equal(out.numpy()[:N], want, f"{by}, {plus}")
        np.testing.assert_array_equal(seen.numpy()[:N], at > i, f"{by}, {plus}")
        twice = (at + at) & 127
        assert set(np.flatnonzero(seen.numpy()[N:])) == set(twice), f"{by}, {plus}"


def test_unsigned_differences_below_zero(queue: fq.FusionQueue) -> None:
    a = np.random.default_rng(1).random(512).astype(np.float32)
    given = fq.Buffer(a)
    i = np.arange(N, dtype=np.uint32)
    for n in (0, 1, 2, 299, 300, 2**32 - 1):
        out = fq.Buffer(np.zeros(N, "f4"))
        queue.submit(unsigned, N, given, np.uint32(n), out).wait()
        before, most = i - np.uint32(1), np.uint32((n - 1) % 2**32)
        with np.errstate(over="ignore"):
            other = np.minimum(i - np.uint32(n), i)
        want = a[np.where(before < most, before, other) % 512]
        np.testing.assert_array_equal(out.numpy(), want, f"{n}")


def test_indices_that_would_be_outside(queue: fq.FusionQueue) -> None:
    a = np.random.default_rng(1).random(N).astype(np.float32)
    given = fq.Buffer(a)
    for n in (N, 7, 1, 2**32 - 1):
        out = fq.Buffer(np.zeros(N, "f4"))
        queue.submit(stencil, N, given, np.uint32(n), out).wait()
        want = np.zeros(N, np.float32)
        i = np.arange(2, min(n - 1, N))
        want[i] = a[i - 1] + a[i - 2] * np.float32(2) + a[1]
        np.testing.assert_array_equal(out.numpy(), want, f"{n}")


def test_variables_that_would_be_outside(queue: fq.FusionQueue) -> None:
    a = np.random.default_rng(1).integers(0, 99, N).astype(np.float32)
    given = fq.Buffer(a)
    for n in (N, 7, 1, 0):
        out = fq.Buffer(np.zeros(N, "f4"))
        queue.submit(through_variables, N, given, np.uint32(n), out).wait()
        want = np.zeros(N, np.float32)
        want[0] = np.float32(2**32 - 1)
        i = np.arange(2, max(2, min(n - 1, N)))
        want[i] = a[i - 1] + a[i - 2] * np.float32(2) + a[i + 1] * np.float32(4)
        np.testing.assert_array_equal(out.numpy(), want, f"{n}")


def test_quotients_and_remainders(queue: fq.FusionQueue) -> None:
    a = np.random.default_rng(1).integers(0, 99, N).astype(np.float32)
    given = fq.Buffer(a)
    i = np.arange(N, dtype=np.int32)
    for w in (1, 7, 64, 100, N, 2000, 0, -1, -7, -(2**31), 2**31 - 1):
        out = fq.Buffer(np.zeros(N, "f4"))
        queue.submit(divided, N, given, np.int32(w), out).wait()
        with np.errstate(divide="ignore", over="ignore"):
            y, x = i // np.int32(w), i % np.int32(w)
            z = (x - y) // np.int32(w)
        inside = a[i - 1] + y.astype("f4") * np.float32(3) + z.astype("f4")
        want = np.where((x > 0) & (z < 5), inside, a[x & 255] + y.astype("f4"))
        np.testing.assert_array_equal(out.numpy(), want, f"{w}")


def test_values_of_arguments_beside_ids(queue: fq.FusionQueue) -> None:
    a = np.random.default_rng(1).integers(0, 99, 512).astype(np.float32)
    given = fq.Buffer(a)
    i = np.arange(N, dtype=np.int32)
    for n in (N, 7, 1, 0, -5, -(2**31), 2**31 - 1):
        out = fq.Buffer(np.zeros(N, "f4"))
        queue.submit(by_extents, N, given, np.int32(n), out).wait()
        last = (np.array([n], np.int64) - 1).astype(np.int32)
        at = np.where(i < last, i + 1, last)
        np.testing.assert_array_equal(out.numpy(), a[at & 511] + at.astype("f4"), f"{n}")


def test_ids_in_bytes(queue: fq.FusionQueue) -> None:
    a = np.random.default_rng(1).random(512).astype(np.float32)
    given = fq.Buffer(a)
    for items in (3, 100, 256):
        for high in (0, 1, 27, 127):
            out = fq.Buffer(np.zeros(256, "f4"))
            queue.submit(of_bytes, items, given, out, np.int8(high)).wait()
            whole = np.arange(items)
            i, j = whole.astype(np.int8), whole.astype(np.uint8)
            k = i + np.int8(high)
            other = a[j] + (-i).astype(np.float32)
            want = np.where(k < i, a[k.astype(int) + 128], other)
            np.testing.assert_array_equal(out.numpy()[:items], want, f"{items}, {high}")
