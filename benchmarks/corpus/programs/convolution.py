"""A small convolutional layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Size


# -------------------------------------------------------------------------------- convolution
@fq.kernel
def convolve(item: fq.Item, x: Array, w: Array, out: Array) -> None:
    c = item.get_id(0)
    i = item.get_id(1)
    j = item.get_id(2)
    total = np.float32(0)
    for k in range(x.shape[0]):
        for y in range(3):
            for z in range(3):
                total += w[c, k, y, z] * x[k, i + y, j + z]
    out[c, i, j] = total


@fq.kernel
def bias_relu(item: fq.Item, bias: Array, x: Array) -> None:
    c = item.get_id(0)
    i = item.get_id(1)
    j = item.get_id(2)
    x[c, i, j] = max(x[c, i, j] + bias[c], 0.0)


@fq.kernel
def max_pool(item: fq.Item, x: Array, out: Array) -> None:
    c = item.get_id(0)
    i = item.get_id(1)
    j = item.get_id(2)
    top = max(x[c, 2 * i, 2 * j], x[c, 2 * i, 2 * j + 1])
    out[c, i, j] = max(top, max(x[c, 2 * i + 1, 2 * j], x[c, 2 * i + 1, 2 * j + 1]))


@fq.kernel
def convolve_bias(item: fq.Item, x: Array, w: Array, bias: Array, out: Array) -> None:
    m = out.shape[2]
    c = item.get_linear_id() // (out.shape[1] * m)
    i = item.get_linear_id() // m % out.shape[1]
    j = item.get_linear_id() % m
    total = np.float32(0)
    for k in range(x.shape[0]):
        for y in range(3):
            for z in range(3):
                total += w[c, k, y, z] * x[k, i + y, j + z]
    out[c, i, j] = max(total + bias[c], 0.0)


@fq.kernel
def max_pool_linear(item: fq.Item, x: Array, out: Array) -> None:
    m = out.shape[2]
    c = item.get_linear_id() // (out.shape[1] * m)
    i = item.get_linear_id() // m % out.shape[1] * 2
    j = item.get_linear_id() % m * 2
    best = x[c, i, j]
    for y in range(2):
        for z in range(2):
            best = max(best, x[c, i + y, j + z])
    out[c, item.get_linear_id() // m % out.shape[1], item.get_linear_id() % m] = best


def submit_convolution_kernels(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    _, channels, n = size
    x, w, bias, full, out = arrays
    queue.submit(convolve, (channels, n, n), x, w, full)
    queue.submit(bias_relu, (channels, n, n), bias, full)
    queue.submit(max_pool, (channels, n // 2, n // 2), full, out)


def submit_convolution_linear(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    _, channels, n = size
    x, w, bias, full, out = arrays
    queue.submit(convolve_bias, channels * n * n, x, w, bias, full)
    queue.submit(max_pool_linear, channels * (n // 2) ** 2, full, out)


def convolution_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    inputs, channels, n = size
    return {
        "x": rng.random((inputs, n + 2, n + 2), dtype=np.float32),
        "w": rng.standard_normal((channels, inputs, 3, 3), dtype=np.float32),
        "bias": rng.random(channels, dtype=np.float32),
        "full": np.zeros((channels, n, n), np.float32),
        "out": np.zeros((channels, n // 2, n // 2), np.float32),
    }


def convolution_numpy(
    size: Size, x: Array, w: Array, bias: Array, full: Array, out: Array
) -> None:
    inputs, channels, n = size
    for c in range(channels):
        total = np.zeros((n, n), np.float32)
        for k in range(inputs):
            for y in range(3):
                for z in range(3):
                    total += w[c, k, y, z] * x[k, y : y + n, z : z + n]
        full[c] = np.maximum(total + bias[c], 0.0)
    out[...] = full.reshape(channels, n // 2, 2, n // 2, 2).max(axis=(2, 4))


def convolution_loop(numba: Any) -> Callable[..., None]:
    def loop(
        inputs: int, channels: int, n: int, x: Array, w: Array, bias: Array, full: Array, out: Array
    ) -> None:
        zero = np.float32(0)
        for c in numba.prange(channels):
            for i in range(n):
                for j in range(n):
                    total = zero
                    for k in range(inputs):
                        for y in range(3):
                            for z in range(3):
                                total += w[c, k, y, z] * x[k, i + y, j + z]
                    full[c, i, j] = max(total + bias[c], zero)
            for i in range(n // 2):
                for j in range(n // 2):
                    top = max(full[c, 2 * i, 2 * j], full[c, 2 * i, 2 * j + 1])
                    low = max(full[c, 2 * i + 1, 2 * j], full[c, 2 * i + 1, 2 * j + 1])
                    out[c, i, j] = max(top, low)

    return loop


PROGRAMS = (
    CorpusProgram(
        name="convolution",
        description="3 by 3 filters over channels, bias, rectifier, maximum pooling; float32",
        source="LeCun et al., Gradient-based learning, 1998; NPBench: conv2d",
        axes=("inputs", "channels", "n"),
        sizes={"tiny": (2, 3, 6), "in cache": (4, 8, 64), "out of cache": (4, 16, 1024)},
        arrays=convolution_arrays,
        inputs=("x", "w", "bias"),
        outputs=("out",),
        forms=(
            Form("kernels", "channel, row, column as ids", submit_convolution_kernels),
            Form("linear", "two kernels, one linear id, divided", submit_convolution_linear),
        ),
        reference=convolution_numpy,
        tolerance=1e-5,
        loop=convolution_loop,
    ),
)
