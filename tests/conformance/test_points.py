"""Lists over points and over their parts are what launches one by one are."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq


@fq.kernel
def normalised(item: fq.Item, x, out):
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(x.shape[1]):
        total += x[i, k] * x[i, k]
    for k in range(x.shape[1]):
        out[i, k] = x[i, k] / (total + 1)


@fq.kernel
def turned(item: fq.Item, x, v):
    i, k = item.get_id(0), item.get_id(1)
    v[i, k] = x[i, (k + 1) % x.shape[1]] - np.float32(0.5) * x[i, k] + item.get_range(1)


@fq.kernel
def lengths(item: fq.Item, v, out):
    i = item.get_id(0)
    total = np.float32(0)
    for k in range(v.shape[1]):
        total += abs(v[i, k])
    out[i] = total


@pytest.mark.parametrize("strategy", ["auto", "sequence", "megakernel"])
@pytest.mark.parametrize("parts", [3, 5])
def test_points_and_their_parts(target: str, parts: int, strategy: str) -> None:
    found = []
    for n in (37, 1001):
        data = np.random.default_rng(parts).standard_normal((n, parts)).astype(np.float32)
        for asked in ("unfused", strategy):
            with fq.FusionQueue(target) as queue:
                x, out = fq.Buffer(data), fq.Buffer(n, np.float32)
                between = fq.Buffer((n, parts), np.float32, promote_private=True)
                v = fq.Buffer((n, parts), np.float32)
                with fq.fusion(queue, strategy=asked) as f:
                    queue.submit(normalised, n, x, between)
                    queue.submit(turned, (n, parts), between, v)
                    queue.submit(lengths, n, v, out)
                f.event.wait()
                found.append((np.array(v.numpy()), np.array(out.numpy())))
        for one, other in zip(found[-2], found[-1], strict=True):
            np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32))
