"""A tiny model with random weights, in the files that Hugging Face's transformers writes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from .config import LlamaConfig
from .weights import shapes

TINY = LlamaConfig(
    num_hidden_layers=2, hidden_size=32, intermediate_size=48, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, vocab_size=96, rope_theta=500_000.0,
    rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
)  # fmt: skip


def save_tiny(folder: Path, config: LlamaConfig = TINY, seed: int = 0) -> None:
    """Write ``config.json`` and ``model.safetensors``, in bfloat16, to ``folder``."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes(config):
        values = rng.standard_normal(shape, dtype=np.float32) * np.float32(shape[-1] ** -0.5)
        if len(shape) == 1:
            values = 1 + values
        weights[name] = values.astype(ml_dtypes.bfloat16)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    known = {"model_type": "llama", "hidden_act": "silu", "dtype": "bfloat16"}
    known |= {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 256}
    (folder / "config.json").write_text(json.dumps(known | asdict(config), indent=2))
