"""Kernels whose work-items go through columns of a matrix: a fusion, in which launches may do
several vectors of a row at a time, has the bits of submissions by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import fusionq as fq

pytestmark = pytest.mark.usefixtures("printed")


@fq.kernel
def means(item: fq.Item, a, mean):
    j = item.get_id(0)
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k, j]
    mean[j] = total / a.shape[0]


@fq.kernel
def deviations(item: fq.Item, a, mean, out):
    j = item.get_id(0)
    if j < out.shape[0] - 1:
        total = a.dtype.type(0)
        largest = a.dtype.type(0)
        for k in range(a.shape[0]):
            d = a[k, j] - mean[j]
            total += d * d
            if d > largest:
                largest = d
        out[j] = total + largest


@fq.kernel
def swept(item: fq.Item, a, out):
    j = item.get_id(0)
    for k in range(1, a.shape[0]):
        out[k, j] = a[k, j] - out[k - 1, j] * a[k - 1, j]


def test_columns(queue: fq.FusionQueue, target: str) -> None:
    for rows, columns, a in matrices(target):
        found = []
        for strategy in ("unfused", "auto"):
            mean, out = fq.Buffer(columns, np.float32), fq.Buffer(columns, np.float32)
            with fq.fusion(queue, strategy=strategy):
                queue.submit(means, columns, a, mean)
                queue.submit(deviations, columns, a, mean, out)
            found.append([mean.numpy().tobytes(), out.numpy().tobytes()])
        assert found[0] == found[1], rows


def test_sweeps(queue: fq.FusionQueue, target: str) -> None:
    for rows, columns, a in matrices(target):
        found = []
        for strategy in ("unfused", "auto"):
            out = fq.Buffer(np.ones((rows, columns), np.float32))
            with fq.fusion(queue, strategy=strategy):
                queue.submit(swept, columns, a, out)
            found.append(out.numpy().tobytes())
        assert found[0] == found[1], rows


def matrices(target: str) -> Iterator[tuple[int, int, fq.Buffer]]:
    """Matrices with their rows and columns, one of them large enough for launches along rows;
    Python takes minutes for that."""
    rng = np.random.default_rng(11)
    large = () if target in ("reference", "far") else ((64, 70_000),)
    for shape in (*large, (40, 300), (30, 31)):
        yield *shape, fq.Buffer(rng.standard_normal(shape).astype("float32"))
