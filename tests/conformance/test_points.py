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


@fq.kernel
def numbered(item: fq.Item, x, out):
    i, k = item.get_id(0), item.get_id(1)
    out[i, k] = x[i, k] * 2 + item.get_linear_id()


@fq.kernel
def numbered_in_planes(item: fq.Item, x, out):
    z, y, k = item.get_id(0), item.get_id(1), item.get_id(2)
    out[z, y, k] = x[z, y, k] * 2 + item.get_linear_id()


@pytest.mark.parametrize(
    "shape",
    [(301, 3), (1, 2), (90, 1), (7, 31), (65, 33), (130, 1, 2), (20, 3, 5), (3, 50, 4), (2, 2, 1)],
)
def test_rows_of_few_work_items(target: str, shape: tuple[int, ...]) -> None:
    """Those of several rows are one warp of a GPU: plain submits."""
    data = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    with fq.FusionQueue(target) as queue:
        x, out = fq.Buffer(data % 7), fq.Buffer(shape, np.int64)
        queue.submit(numbered if len(shape) == 2 else numbered_in_planes, shape, x, out)
        queue.wait()
        np.testing.assert_array_equal(out.numpy(), data % 7 * 2 + data)
