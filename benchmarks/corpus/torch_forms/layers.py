"""Products of matrices and layers of neural networks."""

from __future__ import annotations

from typing import Any

from fusionq.benchmarks.corpus.programs.inference import EPSILON
from fusionq.benchmarks.corpus.programs.products import ALPHA, BETA
from fusionq.benchmarks.corpus.torch_forms.form import Size, Tensor, TorchForm


def gemver(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    u1, v1, u2, v2, y, z, a, x, w = arrays
    a = a + torch.outer(u1, v1) + torch.outer(u2, v2)
    x = x + (BETA * (a.T @ y) + z)
    return a, x, w + ALPHA * (a @ x)


def atax(torch: Any, size: Size, a: Tensor, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    return (a.T @ (a @ x),)


def two_products(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    a, b, c, *_, d = arrays
    return (BETA * d + ALPHA * (a @ b) @ c,)


def mlp(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    x, w1, b1, w2, b2, w3, b3, *_ = arrays
    h = torch.relu(torch.addmm(b1, x, w1))
    h = torch.relu(torch.addmm(b2, h, w2))
    return (torch.addmm(b3, h, w3),)


def softmax(torch: Any, size: Size, x: Tensor, *_: Tensor) -> tuple[Tensor, ...]:
    return (torch.softmax(x, 1),)


def layer_norm(
    torch: Any, size: Size, x: Tensor, gain: Tensor, bias: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    return (torch.nn.functional.layer_norm(x, (size[1],), gain, bias, EPSILON) + x,)


def convolution(
    torch: Any, size: Size, x: Tensor, w: Tensor, bias: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    functional = torch.nn.functional
    return (functional.max_pool2d(torch.relu(functional.conv2d(x[None], w, bias)), 2)[0],)


def attention(
    torch: Any, size: Size, q: Tensor, k: Tensor, v: Tensor, *_: Tensor
) -> tuple[Tensor, ...]:
    attend = torch.nn.functional.scaled_dot_product_attention
    return (attend(q[None, None], k[None, None], v[None, None])[0, 0],)


def decode_step(torch: Any, size: Size, *arrays: Tensor) -> tuple[Tensor, ...]:
    layers, width, _hidden, heads, context = size
    functional = torch.nn.functional
    x, *rest = arrays
    for layer in range(layers):
        gain, wq, wk, wv, wo, gate_w, up_w, down_w = rest[8 * layer : 8 * (layer + 1)]
        keys, values = rest[8 * layers + 2 * layer : 8 * layers + 2 * (layer + 1)]
        y = functional.rms_norm(x, (width,), gain, 1e-5)
        q = (wq @ y).view(1, heads, 1, -1)
        keys[context - 1], values[context - 1] = wk @ y, wv @ y
        by_head = (f.view(1, context, heads, -1).transpose(1, 2) for f in (keys, values))
        mixed = functional.scaled_dot_product_attention(q, *by_head)
        x = x + wo @ mixed.reshape(-1)
        y = functional.rms_norm(x, (width,), gain, 1e-5)
        x = x + down_w @ (up_w @ y * functional.silu(gate_w @ y))
    return (x,)


FORMS = {
    "gemver": TorchForm(gemver),
    "atax": TorchForm(atax),
    "2mm": TorchForm(two_products),
    "mlp": TorchForm(mlp, products=True),
    "softmax": TorchForm(softmax),
    "layer_norm": TorchForm(layer_norm),
    "convolution": TorchForm(convolution, products=True),
    "attention": TorchForm(attention, products=True),
    "decode_step": TorchForm(decode_step, products=True),
}
