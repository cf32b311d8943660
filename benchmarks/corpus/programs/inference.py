"""Layers of neural networks: a multilayer perceptron, softmax, layer normalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

GROUP = 64


# ---------------------------------------------------------------------- multilayer perceptron
@fq.kernel
def linear(item: fq.Item, x: Array, w: Array, out: Array) -> None:
    row = item.get_id(0)
    column = item.get_id(1)
    total = np.float32(0)
    for k in range(x.shape[1]):
        total += x[row, k] * w[k, column]
    out[row, column] = total


@fq.kernel
def add_bias(item: fq.Item, bias: Array, x: Array) -> None:
    row = item.get_id(0)
    column = item.get_id(1)
    x[row, column] = x[row, column] + bias[column]


@fq.kernel
def relu(item: fq.Item, x: Array, out: Array) -> None:
    row = item.get_id(0)
    column = item.get_id(1)
    out[row, column] = max(x[row, column], 0.0)


@fq.kernel
def linear_flat(item: fq.Item, x: Array, w: Array, bias: Array, out: Array) -> None:
    row = item.get_linear_id() // out.shape[1]
    column = item.get_linear_id() % out.shape[1]
    total = np.float32(0)
    for k in range(x.shape[1]):
        total += x[row, k] * w[k, column]
    out[row, column] = total + bias[column]


@fq.kernel
def relu_flat(item: fq.Item, x: Array) -> None:
    row = item.get_linear_id() // x.shape[1]
    column = item.get_linear_id() % x.shape[1]
    x[row, column] = x[row, column] if x[row, column] > 0.0 else 0.0


def submit_mlp_layers(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    batch, inputs, hidden = size
    x, w1, b1, w2, b2, w3, b3, h1, a1, h2, a2, out = arrays
    queue.submit(linear, (batch, hidden), x, w1, h1)
    queue.submit(add_bias, (batch, hidden), b1, h1)
    queue.submit(relu, (batch, hidden), h1, a1)
    queue.submit(linear, (batch, hidden), a1, w2, h2)
    queue.submit(add_bias, (batch, hidden), b2, h2)
    queue.submit(relu, (batch, hidden), h2, a2)
    queue.submit(linear, (batch, inputs), a2, w3, out)
    queue.submit(add_bias, (batch, inputs), b3, out)


def submit_mlp_flat(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    batch, inputs, hidden = size
    x, w1, b1, w2, b2, w3, b3, h1, _, h2, _, out = arrays
    queue.submit(linear_flat, batch * hidden, x, w1, b1, h1)
    queue.submit(relu_flat, batch * hidden, h1)
    queue.submit(linear_flat, batch * hidden, h1, w2, b2, h2)
    queue.submit(relu_flat, batch * hidden, h2)
    queue.submit(linear_flat, batch * inputs, h2, w3, b3, out)


def mlp_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    batch, inputs, hidden = size

    def weights(rows: int, columns: int) -> Array:
        found: Array = rng.standard_normal((rows, columns), dtype=np.float32)
        found *= np.float32(rows**-0.5)
        return found

    def bias(columns: int) -> Array:
        found: Array = rng.random(columns, dtype=np.float32)
        return found

    zeros = {name: np.zeros((batch, hidden), np.float32) for name in ("h1", "a1", "h2", "a2")}
    return {
        "x": rng.random((batch, inputs), dtype=np.float32),
        "w1": weights(inputs, hidden),
        "b1": bias(hidden),
        "w2": weights(hidden, hidden),
        "b2": bias(hidden),
        "w3": weights(hidden, inputs),
        "b3": bias(inputs),
        **zeros,
        "out": np.zeros((batch, inputs), np.float32),
    }


def mlp_numpy(size: Size, *arrays: Array) -> None:
    x, w1, b1, w2, b2, w3, b3, *_, out = arrays
    h = np.maximum(x @ w1 + b1, 0.0)
    h = np.maximum(h @ w2 + b2, 0.0)
    out[...] = h @ w3 + b3


# ------------------------------------------------------------------------------------ softmax
@fq.kernel
def row_maxima(item: fq.Item, x: Array, top: Array) -> None:
    i = item.get_id(0)
    best = x[i, 0]
    for j in range(1, x.shape[1]):
        best = max(best, x[i, j])
    top[i] = best


@fq.kernel
def exponentials(item: fq.Item, x: Array, top: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = np.exp(x[i, j] - top[i])


@fq.kernel
def row_sums(item: fq.Item, x: Array, total: Array) -> None:
    i = item.get_id(0)
    value = np.float32(0)
    for j in range(x.shape[1]):
        value += x[i, j]
    total[i] = value


@fq.kernel
def divide_rows(item: fq.Item, total: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = out[i, j] / total[i]


@fq.kernel
def group_maxima(item: fq.NdItem, x: Array, top: Array) -> None:
    i = item.get_global_id(0)
    k = item.get_local_id(1)
    best = x[i, k]
    for j in range(k, x.shape[1], GROUP):
        best = max(best, x[i, j])
    best = fq.reduce_over_group(item.get_group(), best, "max")
    if k == 0:
        top[i] = best


@fq.kernel
def group_exponentials(item: fq.NdItem, x: Array, top: Array, out: Array, total: Array) -> None:
    i = item.get_global_id(0)
    k = item.get_local_id(1)
    value = np.float32(0)
    for j in range(k, x.shape[1], GROUP):
        out[i, j] = np.exp(x[i, j] - top[i])
        value += out[i, j]
    value = fq.reduce_over_group(item.get_group(), value, "add")
    if k == 0:
        total[i] = value


def submit_softmax_rows(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, columns = size
    x, top, total, out = arrays
    queue.submit(row_maxima, rows, x, top)
    queue.submit(exponentials, (rows, columns), x, top, out)
    queue.submit(row_sums, rows, out, total)
    queue.submit(divide_rows, (rows, columns), total, out)


def submit_softmax_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, columns = size
    x, top, total, out = arrays
    groups = fq.NdRange((rows, GROUP), (1, GROUP))
    queue.submit(group_maxima, groups, x, top)
    queue.submit(group_exponentials, groups, x, top, out, total)
    queue.submit(divide_rows, (rows, columns), total, out)


def softmax_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    rows, _ = size
    zeros = {name: np.zeros(rows, np.float32) for name in ("top", "total")}
    x = rng.random(size, dtype=np.float32) * np.float32(8)
    return {"x": x, **zeros, "out": np.zeros(size, np.float32)}


def softmax_numpy(size: Size, x: Array, top: Array, total: Array, out: Array) -> None:
    np.exp(x - x.max(axis=1, keepdims=True), out=out)
    out /= out.sum(axis=1, keepdims=True)


def softmax_loop(numba: Any) -> Callable[..., None]:
    def loop(rows: int, columns: int, x: Array, top: Array, total: Array, out: Array) -> None:
        for i in numba.prange(rows):
            best = x[i, 0]
            for j in range(1, columns):
                best = max(best, x[i, j])
            value = np.float32(0)
            for j in range(columns):
                out[i, j] = np.exp(x[i, j] - best)
                value += out[i, j]
            for j in range(columns):
                out[i, j] /= value

    return loop


# ------------------------------------------------------------------------------- layer norm
EPSILON = 1e-5


@fq.kernel
def means(item: fq.Item, x: Array, mean: Array) -> None:
    i = item.get_id(0)
    total = np.float32(0)
    for j in range(x.shape[1]):
        total += x[i, j]
    mean[i] = total / np.float32(x.shape[1])


@fq.kernel
def variances(item: fq.Item, x: Array, mean: Array, variance: Array) -> None:
    i = item.get_id(0)
    total = np.float32(0)
    for j in range(x.shape[1]):
        total += (x[i, j] - mean[i]) * (x[i, j] - mean[i])
    variance[i] = total / np.float32(x.shape[1])


@fq.kernel
def normalise(
    item: fq.Item, x: Array, mean: Array, variance: Array, gain: Array, bias: Array, out: Array
) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    scaled = (x[i, j] - mean[i]) / np.sqrt(variance[i] + EPSILON)
    out[i, j] = scaled * gain[j] + bias[j]


@fq.kernel
def add_residual(item: fq.Item, residual: Array, out: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] += residual[i, j]


def group_total(item: fq.NdItem, value: Scalar) -> Scalar:
    return fq.reduce_over_group(item.get_group(), value, "add")


@fq.kernel
def group_moments(item: fq.NdItem, x: Array, mean: Array, variance: Array) -> None:
    i = item.get_global_id(0)
    k = item.get_local_id(1)
    value = np.float32(0)
    for j in range(k, x.shape[1], GROUP):
        value += x[i, j]
    average = group_total(item, value) / np.float32(x.shape[1])
    value = np.float32(0)
    for j in range(k, x.shape[1], GROUP):
        value += (x[i, j] - average) * (x[i, j] - average)
    spread = group_total(item, value) / np.float32(x.shape[1])
    if k == 0:
        mean[i] = average
        variance[i] = spread


@fq.kernel
def normalise_linear(
    item: fq.Item, x: Array, mean: Array, variance: Array, gain: Array, bias: Array, out: Array
) -> None:
    i = item.get_linear_id() // x.shape[1]
    j = item.get_linear_id() % x.shape[1]
    scaled = (x[i, j] - mean[i]) / np.sqrt(variance[i] + EPSILON)
    out[i, j] = scaled * gain[j] + bias[j]


def submit_norm_rows(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, columns = size
    x, gain, bias, mean, variance, out = arrays
    queue.submit(means, rows, x, mean)
    queue.submit(variances, rows, x, mean, variance)
    queue.submit(normalise, (rows, columns), x, mean, variance, gain, bias, out)
    queue.submit(add_residual, (rows, columns), x, out)


def submit_norm_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    rows, columns = size
    x, gain, bias, mean, variance, out = arrays
    queue.submit(group_moments, fq.NdRange((rows, GROUP), (1, GROUP)), x, mean, variance)
    queue.submit(normalise_linear, rows * columns, x, mean, variance, gain, bias, out)
    queue.submit(add_residual, (rows, columns), x, out)


def norm_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    rows, columns = size
    x = rng.random(size, dtype=np.float32)
    gain, bias = rng.random((2, columns), dtype=np.float32)
    zeros = {name: np.zeros(rows, np.float32) for name in ("mean", "variance")}
    return {"x": x, "gain": gain.copy(), "bias": bias.copy(), **zeros, "out": np.zeros_like(x)}


def norm_numpy(size: Size, x: Array, gain: Array, bias: Array, *arrays: Array) -> None:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.mean(centred * centred, axis=1, keepdims=True)
    arrays[-1][...] = centred / np.sqrt(variance + EPSILON) * gain + bias + x


PROGRAMS = (
    CorpusProgram(
        name="mlp",
        description="three dense layers with biases and rectifiers, float32",
        source="Rumelhart, Hinton and Williams, Nature 1986; NPBench: mlp",
        axes=("batch", "inputs", "hidden"),
        sizes={"tiny": (3, 8, 12), "in cache": (16, 128, 256), "out of cache": (8, 2048, 4096)},
        arrays=mlp_arrays,
        inputs=("x", "w1", "b1", "w2", "b2", "w3", "b3"),
        outputs=("out",),
        forms=(
            Form("layers", "product, bias, rectifier: a kernel each", submit_mlp_layers),
            Form("linear", "one linear id, in place", submit_mlp_flat),
        ),
        reference=mlp_numpy,
        tolerance=1e-4,
    ),
    CorpusProgram(
        name="softmax",
        description="maxima, exponentials, sums, quotients of rows, float32",
        source="Goodfellow, Bengio and Courville, Deep Learning, 2016, section 4.1",
        axes=("rows", "columns"),
        sizes={"tiny": (5, 70), "in cache": (256, 512), "out of cache": (8192, 2048)},
        arrays=softmax_arrays,
        inputs=("x",),
        outputs=("out",),
        forms=(
            Form("rows", "a work-item a row, a work-item an element", submit_softmax_rows),
            Form("groups", "NdRange, a work-group a row", submit_softmax_groups),
        ),
        reference=softmax_numpy,
        tolerance=1e-5,
        loop=softmax_loop,
    ),
    CorpusProgram(
        name="layer_norm",
        description="means, variances, normalisation and a residual, float32",
        source="Ba, Kiros and Hinton, Layer normalization, 2016",
        axes=("rows", "columns"),
        sizes={"tiny": (5, 70), "in cache": (256, 512), "out of cache": (8192, 2048)},
        arrays=norm_arrays,
        inputs=("x", "gain", "bias"),
        outputs=("out",),
        forms=(
            Form("rows", "a work-item a row, a work-item an element", submit_norm_rows),
            Form("groups", "NdRange for the rows, a linear id besides", submit_norm_groups),
        ),
        reference=norm_numpy,
        tolerance=1e-5,
    ),
)
