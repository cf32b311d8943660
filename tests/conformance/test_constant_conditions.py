"""Values under a condition that is always true, or never, though not in the kernel's text: what is
stored behind it is stored."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq

ONES = [1, 1, 2, 7, 1]
DIVISORS = np.array([np.float32(1), np.float32(-3), np.float32(7)])


@fq.kernel
def quotient(item: fq.Item, out):
    i = item.get_id(0)
    if not (i < out.shape[0]):
        return
    x = (
        np.float32(out.shape[0])
        if np.bool_(max(np.int8(3), np.int8(ONES[(i + 1) % 5])))
        else np.float32(2) // DIVISORS[(2 * i) % 3]
    )
    out[i] = np.int8(np.int64(round(x))) + np.int8(x)


@fq.kernel
def remainder(item: fq.Item, out):
    i = item.get_id(0)
    if not (i < out.shape[0]):
        return
    x = (
        np.float32(out.shape[0])
        if np.bool_(max(np.int8(3), np.int8(ONES[(i + 1) % 5])))
        else np.float32(2) % DIVISORS[(2 * i) % 3]
    )
    out[i] = np.int8(np.int64(round(x))) + np.int8(x)


@fq.kernel
def converted(item: fq.Item, out):
    i = item.get_id(0)
    if not (i < out.shape[0]):
        return
    x = (
        np.float32(out.shape[0])
        if max(np.int8(3), np.int8(ONES[(i + 1) % 5])) != 0
        else np.float32(np.int64(DIVISORS[i % 3] * np.float32(1e3)))
    )
    out[i] = np.int8(np.int64(round(x))) + np.int8(x)


@fq.kernel
def clamped(item: fq.Item, out):
    i = item.get_id(0)
    if not (i < out.shape[0]):
        return
    x = (
        np.float32(out.shape[0])
        if min(max(ONES[i % 5], 0), 9) <= 9
        else np.float32(np.int64(DIVISORS[i % 3] * np.float32(1e3)))
    )
    out[i] = np.int8(np.int64(round(x))) + np.int8(x)


@fq.kernel
def nested(item: fq.Item, out):
    i = item.get_id(0)
    if not (i < out.shape[0]):
        return
    x = (
        np.float32(out.shape[0])
        if max(np.int8(3), np.int8(ONES[i % 5])) > 2
        else (np.float32(3) if DIVISORS[i % 3] > 0 else DIVISORS[(i + 1) % 3] // np.float32(2))
    )
    out[i] = np.int8(np.int64(round(x))) + np.int8(x)


@fq.kernel
def never(item: fq.Item, out):
    i = item.get_id(0)
    if not (i < out.shape[0]):
        return
    x = (
        np.float32(np.int64(DIVISORS[i % 3] * np.float32(1e3)))
        if max(np.int8(3), np.int8(ONES[i % 5])) == 0
        else np.float32(out.shape[0])
    )
    out[i] = np.int8(np.int64(round(x))) + np.int8(x)


KERNELS = (quotient, remainder, converted, clamped, nested, never)


@pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.__name__ for kernel in KERNELS])
def test_what_is_behind_them_is_stored(queue: fq.FusionQueue, kernel: fq.Kernel) -> None:
    out = fq.Buffer(np.arange(8, dtype=np.int8))
    queue.submit(kernel, 8, out)
    queue.wait()
    assert out.numpy().tolist() == [16] * 8
