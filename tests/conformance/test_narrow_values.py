"""Python's integers made of small elements, at the ends of their types."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def combined(item: fq.Item, a, b, t, out, real, small):
    i = item.get_id(0)
    x, y = int(a[i]), int(b[i])
    d = abs(x - y)
    if d > 100:
        d = min(x, y) - 3
    out[i, 0] = x + y
    out[i, 1] = x * y
    out[i, 2] = min(max(x * 3 - y, -70), 300)
    out[i, 3] = (x + 1) // 3 + (y - 5) % 7
    out[i, 4] = x // y + x % y
    out[i, 5] = (x * 77 + y * 150) >> 8
    out[i, 6] = (x & 15) | (y & 3) ^ 9
    out[i, 7] = d * d
    out[i, 8] = x << 3
    out[i, 9] = t[abs(x) % 5 + (y & 1)]
    out[i, 10] = -x if x > y else ~y
    out[i, 11] = x * x * x * y
    real[i] = np.float32(x - y) / 3
    small[i] = (x * 3 + y) >> 1


@fq.kernel
def summed(item: fq.Item, a, out):
    i = item.get_id(0)
    total = 0
    most = int(a[i, 0])
    for k in range(a.shape[1]):
        total += int(a[i, k]) * int(a[i, k])
        most = max(most, abs(int(a[i, k]) - 1))
    out[i] = total * 3 + most


def values(dtype: str) -> np.ndarray:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = [low, low + 1, high - 1, high, 0, 1, min(high, 100), max(low, -1)]
    return np.array(ends, dtype)


@pytest.mark.parametrize("dtypes", [
    ("uint8", "uint8"), ("int8", "uint8"), ("int16", "int8"), ("uint16", "uint16"),
    ("int32", "uint8"), ("uint32", "int16"), ("bool", "uint8"),
])  # fmt: skip
@pytest.mark.parametrize("strategy", ["unfused", "megakernel"])
def test_operations(queue: fq.FusionQueue, dtypes: tuple[str, str], strategy: fq.Strategy) -> None:
    a, b = (np.array([0, 1] * 4, bool) if t == "bool" else values(t) for t in dtypes)
    a, b = np.repeat(a, 8), np.tile(b, 8)
    found = []
    for own in (queue, fq.FusionQueue("reference")):
        out, real = fq.Buffer((64, 12), np.int64), fq.Buffer(64, np.float32)
        small, table = fq.Buffer(64, np.uint8), fq.Buffer(np.arange(6) * 11)
        total = fq.Buffer(8, np.int64)
        with fq.fusion(own, strategy=strategy if own is queue else "unfused"):
            own.submit(combined, 64, fq.Buffer(a), fq.Buffer(b), table, out, real, small)
            own.submit(summed, 8, fq.Buffer(a.reshape(8, 8)), total)
        found.append([x.numpy().copy() for x in (out, real, small, total)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    x, y = a.astype(object), b.astype(object)
    exact = [int(p) * int(q) for p, q in zip(x, y, strict=True)]
    np.testing.assert_array_equal(found[0][0][:, 1], exact)
