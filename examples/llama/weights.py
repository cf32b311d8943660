"""Weights of a Llama model by the names that Hugging Face's transformers gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt
from safetensors.numpy import load_file

from .config import LlamaConfig

Weights = dict[str, npt.NDArray[Any]]
"""Arrays by name; bfloat16 ones have the dtype of ml_dtypes."""


def shapes(config: LlamaConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name and the shape of each weight, in the order of use."""
    width, hidden = config.hidden_size, config.intermediate_size
    queries = config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    yield "model.embed_tokens.weight", (config.vocab_size, width)
    for layer in range(config.num_hidden_layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (width,)
        yield at + "self_attn.q_proj.weight", (queries, width)
        yield at + "self_attn.k_proj.weight", (keys, width)
        yield at + "self_attn.v_proj.weight", (keys, width)
        yield at + "self_attn.o_proj.weight", (width, queries)
        yield at + "post_attention_layernorm.weight", (width,)
        yield at + "mlp.gate_proj.weight", (hidden, width)
        yield at + "mlp.up_proj.weight", (hidden, width)
        yield at + "mlp.down_proj.weight", (width, hidden)
    yield "model.norm.weight", (width,)
    if not config.tie_word_embeddings:
        yield "lm_head.weight", (config.vocab_size, width)


def read_weights(folder: Path, config: LlamaConfig) -> Weights:
    """The weights in ``folder``: of ``model.safetensors``, or of the files that
    ``model.safetensors.index.json`` lists.

    ValueError for a weight that is missing or has another shape than ``config`` says.
    """
    index = folder / "model.safetensors.index.json"
    if index.exists():
        listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        files = [folder / name for name in sorted(set(listed))]
    else:
        files = [folder / "model.safetensors"]
    found: Weights = {}
    for file in files:
        found |= load_file(file)
    wanted = dict(shapes(config))
    for name, shape in wanted.items():
        if name not in found:
            raise ValueError(f"{folder}: there is no weight {name}")
        if found[name].shape != shape:
            raise ValueError(f"{folder}: {name} has the shape {found[name].shape}, not {shape}")
    return {name: found[name] for name in wanted}
