"""Attention over a sequence, one decoding step of a transformer, and a small convolution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fusionq as fq
from fusionq.benchmarks.corpus.program import Array, CorpusProgram, Form, Scalar, Size

GROUP = 64


# ---------------------------------------------------------------------------------- attention
@fq.kernel
def scores(item: fq.Item, scale: Scalar, q: Array, k: Array, s: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    total = np.float32(0)
    for d in range(q.shape[1]):
        total += q[i, d] * k[j, d]
    s[i, j] = total * scale


@fq.kernel
def largest(item: fq.Item, s: Array, top: Array) -> None:
    i = item.get_id(0)
    best = s[i, 0]
    for j in range(1, s.shape[1]):
        best = max(best, s[i, j])
    top[i] = best


@fq.kernel
def exponentials(item: fq.Item, top: Array, s: Array) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    s[i, j] = np.exp(s[i, j] - top[i])


@fq.kernel
def totals(item: fq.Item, s: Array, total: Array) -> None:
    i = item.get_id(0)
    value = np.float32(0)
    for j in range(s.shape[1]):
        value += s[i, j]
    total[i] = value


@fq.kernel
def weighted(item: fq.Item, s: Array, v: Array, total: Array, out: Array) -> None:
    i = item.get_id(0)
    d = item.get_id(1)
    value = np.float32(0)
    for j in range(s.shape[1]):
        value += s[i, j] * v[j, d]
    out[i, d] = value / total[i]


@fq.kernel
def scores_linear(item: fq.Item, scale: Scalar, q: Array, k: Array, s: Array) -> None:
    i = item.get_linear_id() // s.shape[1]
    j = item.get_linear_id() % s.shape[1]
    total = np.float32(0)
    for d in range(q.shape[1]):
        total += q[i, d] * k[j, d]
    s[i, j] = total * scale


@fq.kernel
def softmax_groups(item: fq.NdItem, s: Array, total: Array) -> None:
    i = item.get_global_id(0)
    lane = item.get_local_id(1)
    best = s[i, 0]
    for j in range(lane, s.shape[1], GROUP):
        best = max(best, s[i, j])
    best = fq.reduce_over_group(item.get_group(), best, "max")
    value = np.float32(0)
    for j in range(lane, s.shape[1], GROUP):
        s[i, j] = np.exp(s[i, j] - best)
        value += s[i, j]
    value = fq.reduce_over_group(item.get_group(), value, "add")
    if lane == 0:
        total[i] = value


def submit_attention_rows(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, dims = size
    q, k, v, s, top, total, out = arrays
    queue.submit(scores, (n, n), np.float32(dims**-0.5), q, k, s)
    queue.submit(largest, n, s, top)
    queue.submit(exponentials, (n, n), top, s)
    queue.submit(totals, n, s, total)
    queue.submit(weighted, (n, dims), s, v, total, out)


def submit_attention_groups(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
    n, dims = size
    q, k, v, s, _, total, out = arrays
    queue.submit(scores_linear, n * n, np.float32(dims**-0.5), q, k, s)
    queue.submit(softmax_groups, fq.NdRange((n, GROUP), (1, GROUP)), s, total)
    queue.submit(weighted, (n, dims), s, v, total, out)


def attention_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    n, dims = size
    inputs = {name: rng.standard_normal((n, dims), dtype=np.float32) for name in "qkv"}
    rows = {name: np.zeros(n, np.float32) for name in ("top", "total")}
    return {**inputs, "s": np.zeros((n, n), np.float32), **rows, "out": np.zeros_like(inputs["q"])}


def attention_numpy(size: Size, q: Array, k: Array, v: Array, *arrays: Array) -> None:
    s = q @ k.T * np.float32(size[1] ** -0.5)
    s = np.exp(s - s.max(axis=1, keepdims=True))
    arrays[-1][...] = s @ v / s.sum(axis=1, keepdims=True)


# -------------------------------------------------------------------------------- decode step
@fq.kernel
def square_sum(item: fq.Item, x: Array, total: Array) -> None:
    value = np.float32(0)
    for j in range(x.shape[0]):
        value += x[j] * x[j]
    total[item.get_id(0)] = value


@fq.kernel
def rms_norm(item: fq.Item, x: Array, total: Array, gain: Array, out: Array) -> None:
    j = item.get_id(0)
    out[j] = x[j] / np.sqrt(total[0] / np.float32(x.shape[0]) + np.float32(1e-5)) * gain[j]


@fq.kernel
def matvec(item: fq.Item, w: Array, x: Array, out: Array) -> None:
    row = item.get_id(0)
    value = np.float32(0)
    for j in range(w.shape[1]):
        value += w[row, j] * x[j]
    out[row] = value


@fq.kernel
def matvec_add(item: fq.Item, w: Array, x: Array, out: Array) -> None:
    row = item.get_id(0)
    value = np.float32(0)
    for j in range(w.shape[1]):
        value += w[row, j] * x[j]
    out[row] += value


@fq.kernel
def matvec_group(item: fq.NdItem, w: Array, x: Array, out: Array) -> None:
    row = item.get_global_id(0)
    lane = item.get_local_id(1)
    own = np.float32(0)
    for j in range(lane, w.shape[1], GROUP):
        own += w[row, j] * x[j]
    value = fq.reduce_over_group(item.get_group(), own, "add")
    if lane == 0:
        out[row] = value


@fq.kernel
def add_vector(item: fq.Item, x: Array, out: Array) -> None:
    out[item.get_id(0)] += x[item.get_id(0)]


@fq.kernel
def store_row(item: fq.Item, position: Scalar, x: Array, cache: Array) -> None:
    cache[position, item.get_id(0)] = x[item.get_id(0)]


@fq.kernel
def head_scores(item: fq.Item, dims: Scalar, q: Array, keys: Array, s: Array) -> None:
    head = item.get_id(0)
    t = item.get_id(1)
    value = np.float32(0)
    for d in range(dims):
        value += q[head * dims + d] * keys[t, head * dims + d]
    s[head, t] = value / np.sqrt(np.float32(dims))


@fq.kernel
def head_softmax(item: fq.Item, s: Array) -> None:
    head = item.get_id(0)
    best = s[head, 0]
    for t in range(1, s.shape[1]):
        best = max(best, s[head, t])
    value = np.float32(0)
    for t in range(s.shape[1]):
        s[head, t] = np.exp(s[head, t] - best)
        value += s[head, t]
    for t in range(s.shape[1]):
        s[head, t] = s[head, t] / value


@fq.kernel
def mix_values(item: fq.Item, dims: Scalar, s: Array, values: Array, out: Array) -> None:
    c = item.get_id(0)
    value = np.float32(0)
    for t in range(s.shape[1]):
        value += s[c // dims, t] * values[t, c]
    out[c] = value


@fq.kernel
def gate_with_silu(item: fq.Item, gate: Array, up: Array) -> None:
    j = item.get_id(0)
    up[j] = up[j] * (gate[j] / (np.float32(1) + np.exp(-gate[j])))


WEIGHTS = ("wq", "wk", "wv", "wo", "gate_w", "up_w", "down_w")


def submit_decode(groups: bool) -> Callable[..., None]:
    def submit(queue: fq.FusionQueue, size: Size, *arrays: fq.Buffer) -> None:
        layers, width, hidden, heads, context = size
        x, *rest = arrays
        weights, caches = rest[: 8 * layers], rest[8 * layers : 10 * layers]
        total, y, q, k, v, s, mixed, gate, up, spare = rest[10 * layers :]
        dims = width // heads

        def product(w: fq.Buffer, by: fq.Buffer, out: fq.Buffer, rows: int) -> None:
            if groups:
                queue.submit(matvec_group, fq.NdRange((rows, GROUP), (1, GROUP)), w, by, out)
            else:
                queue.submit(matvec, rows, w, by, out)

        def added(w: fq.Buffer, by: fq.Buffer) -> None:
            if groups:
                product(w, by, spare, width)
                queue.submit(add_vector, width, spare, x)
            else:
                queue.submit(matvec_add, width, w, by, x)

        for layer in range(layers):
            gain, wq, wk, wv, wo, gate_w, up_w, down_w = weights[8 * layer : 8 * (layer + 1)]
            keys, values = caches[2 * layer : 2 * (layer + 1)]
            queue.submit(square_sum, 1, x, total)
            queue.submit(rms_norm, width, x, total, gain, y)
            for w, out in ((wq, q), (wk, k), (wv, v)):
                product(w, y, out, width)
            queue.submit(store_row, width, context - 1, k, keys)
            queue.submit(store_row, width, context - 1, v, values)
            queue.submit(head_scores, (heads, context), dims, q, keys, s)
            queue.submit(head_softmax, heads, s)
            queue.submit(mix_values, width, dims, s, values, mixed)
            added(wo, mixed)
            queue.submit(square_sum, 1, x, total)
            queue.submit(rms_norm, width, x, total, gain, y)
            product(gate_w, y, gate, hidden)
            product(up_w, y, up, hidden)
            queue.submit(gate_with_silu, hidden, gate, up)
            added(down_w, up)

    return submit


def decode_shapes(size: Size) -> dict[str, Size]:
    """Of a layer's weights."""
    _, width, hidden, _, _ = size
    square: dict[str, Size] = dict.fromkeys(WEIGHTS[:4], (width, width))
    return square | {"gate_w": (hidden, width), "up_w": (hidden, width), "down_w": (width, hidden)}


def decode_arrays(size: Size, rng: np.random.Generator) -> dict[str, Array]:
    layers, width, hidden, heads, context = size
    arrays = {"x": rng.standard_normal(width, dtype=np.float32)}
    for layer in range(layers):
        arrays[f"gain_{layer}"] = rng.random(width, dtype=np.float32) + np.float32(0.5)
        for name, shape in decode_shapes(size).items():
            weights = rng.standard_normal(shape, dtype=np.float32)
            weights *= np.float32(shape[1] ** -0.5)
            arrays[f"{name}_{layer}"] = weights
    for layer in range(layers):
        for name in ("keys", "values"):
            arrays[f"{name}_{layer}"] = rng.standard_normal((context, width), dtype=np.float32)
    lengths = {"total": 1, "y": width, "q": width, "k": width, "v": width}
    arrays |= {name: np.zeros(n, np.float32) for name, n in lengths.items()}
    arrays["s"] = np.zeros((heads, context), np.float32)
    lengths = {"mixed": width, "gate": hidden, "up": hidden, "spare": width}
    return arrays | {name: np.zeros(n, np.float32) for name, n in lengths.items()}


def decode_numpy(size: Size, *arrays: Array) -> None:
    layers, _width, _hidden, heads, context = size
    x, *rest = arrays
    for layer in range(layers):
        gain, wq, wk, wv, wo, gate_w, up_w, down_w = rest[8 * layer : 8 * (layer + 1)]
        keys, values = rest[8 * layers + 2 * layer : 8 * layers + 2 * (layer + 1)]
        y = x / np.sqrt(np.mean(x * x) + np.float32(1e-5)) * gain
        q = (wq @ y).reshape(heads, -1)
        keys[context - 1], values[context - 1] = wk @ y, wv @ y
        split = keys.reshape(context, heads, -1)
        s = np.einsum("hd,thd->ht", q, split) / np.sqrt(np.float32(q.shape[1]))
        s = np.exp(s - s.max(axis=1, keepdims=True))
        s /= s.sum(axis=1, keepdims=True)
        mixed = np.einsum("ht,thd->hd", s, values.reshape(context, heads, -1)).reshape(-1)
        x += wo @ mixed
        y = x / np.sqrt(np.mean(x * x) + np.float32(1e-5)) * gain
        gate = gate_w @ y
        x += down_w @ (up_w @ y * (gate / (np.float32(1) + np.exp(-gate))))


def decode_inputs(layers: int) -> tuple[str, ...]:
    return tuple(f"{name}_{k}" for k in range(layers) for name in ("gain", *WEIGHTS))


LAYERS = 2

PROGRAMS = (
    CorpusProgram(
        name="attention",
        description="scaled dot products, softmax, weighted values; one head, float32",
        source="Vaswani et al., Attention is all you need, 2017, section 3.2.1",
        axes=("n", "dims"),
        sizes={"tiny": (6, 4), "in cache": (256, 32), "out of cache": (3072, 16)},
        arrays=attention_arrays,
        inputs=("q", "k", "v"),
        outputs=("out",),
        forms=(
            Form("rows", "a work-item a row or an element", submit_attention_rows),
            Form("groups", "one linear id; softmax by work-groups", submit_attention_groups),
        ),
        reference=attention_numpy,
        tolerance=1e-4,
    ),
    CorpusProgram(
        name="decode_step",
        description="a token through two transformer layers with key and value caches, float32",
        source="Touvron et al., LLaMA, 2023: RMS norm, attention with a cache, gated SiLU",
        axes=("layers", "width", "hidden", "heads", "context"),
        sizes={
            "tiny": (LAYERS, 8, 12, 2, 3),
            "in cache": (LAYERS, 128, 256, 4, 32),
            "out of cache": (LAYERS, 1536, 4096, 16, 128),
        },
        arrays=decode_arrays,
        inputs=decode_inputs(LAYERS),
        outputs=("x",),
        forms=(
            Form("rows", "a work-item a row of each matrix", submit_decode(False)),
            Form("groups", "NdRange, a work-group a row of each matrix", submit_decode(True)),
        ),
        reference=decode_numpy,
        tolerance=1e-3,
    ),
)
