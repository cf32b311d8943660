"""The same model in NumPy: all positions at once, with a causal mask and without a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .config import LlamaConfig

Array = npt.NDArray[Any]


def logits(config: LlamaConfig, weights: Mapping[str, Array], tokens: Sequence[int]) -> Array:
    """What the model says after each of ``tokens``: ``(tokens, vocab_size)``, float32."""
    w = {name: np.asarray(value, np.float32) for name, value in weights.items()}
    n, depth = len(tokens), config.head_dim
    groups = config.num_attention_heads // config.num_key_value_heads
    angles = np.arange(n, dtype=np.float32)[:, np.newaxis] * config.frequencies()
    turn = np.exp(1j * angles)[:, np.newaxis, :]
    future = np.triu(np.full((n, n), -np.inf, np.float32), 1)

    def norm(x: Array, gain: Array) -> Array:
        return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + config.rms_norm_eps) * gain

    def heads(x: Array) -> Array:
        return x.reshape(n, -1, depth)

    def rotated(x: Array) -> Array:
        turned = (x[..., : depth // 2] + 1j * x[..., depth // 2 :]) * turn
        return np.concatenate([turned.real, turned.imag], axis=-1).astype(np.float32)

    x = w["model.embed_tokens.weight"][list(tokens)]
    for layer in range(config.num_hidden_layers):
        of = {k.split(".", 3)[3]: v for k, v in w.items() if k.startswith(f"model.layers.{layer}.")}
        y = norm(x, of["input_layernorm.weight"])
        q, k, v = (heads(y @ of[f"self_attn.{name}_proj.weight"].T) for name in "qkv")
        q, k, v = rotated(q), rotated(k).repeat(groups, 1), v.repeat(groups, 1)
        s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(np.float32(depth)) + future
        s = np.exp(s - s.max(axis=2, keepdims=True))
        s /= s.sum(axis=2, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", s, v).reshape(n, -1)
        x = x + mixed @ of["self_attn.o_proj.weight"].T
        y = norm(x, of["post_attention_layernorm.weight"])
        gate = y @ of["mlp.gate_proj.weight"].T
        gate = gate / (1 + np.exp(-gate)) * (y @ of["mlp.up_proj.weight"].T)
        x = x + gate @ of["mlp.down_proj.weight"].T
    x = norm(x, w["model.norm.weight"])
    return x @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def generate(
    config: LlamaConfig, weights: Mapping[str, Array], prompt: Sequence[int], count: int
) -> list[int]:
    """``count`` tokens after ``prompt``, each the first of the largest."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(np.argmax(logits(config, weights, tokens)[-1])))
    return tokens[len(prompt) :]
