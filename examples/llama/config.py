"""The shape of a Llama model, from the ``config.json`` that Hugging Face's transformers writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class LlamaConfig:
    """What ``config.json`` says; names as there."""

    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    rope_scaling: Mapping[str, Any] | None = None
    """None, or of the type "llama3"."""
    tie_word_embeddings: bool = False

    def frequencies(self) -> npt.NDArray[np.float32]:
        """The angle by which each pair of a head turns from one position to the next.

        With ``rope_scaling`` of the type "llama3", wavelengths beyond the original context are
        stretched by ``factor``, with a smooth transition.  Source: Llama 3.1's model card;
        transformers, ``modeling_rope_utils.py``.
        """
        pairs = np.arange(0, self.head_dim, 2, dtype=np.float32) / np.float32(self.head_dim)
        plain = (1.0 / np.float32(self.rope_theta) ** pairs).astype(np.float32)
        if self.rope_scaling is None:
            return plain
        factor, low, high = (
            float(self.rope_scaling[name])
            for name in ("factor", "low_freq_factor", "high_freq_factor")
        )
        turns = float(self.rope_scaling["original_max_position_embeddings"]) * plain / (2 * math.pi)
        kept = np.clip((turns - low) / (high - low), 0, 1)
        return (plain * (kept + (1 - kept) / factor)).astype(np.float32)


LLAMA_3_2_1B = LlamaConfig(
    num_hidden_layers=16,
    hidden_size=2048,
    intermediate_size=8192,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    vocab_size=128_256,
    rope_theta=500_000.0,
    rope_scaling={
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    tie_word_embeddings=True,
)  # fmt: skip


def read_config(folder: Path) -> LlamaConfig:
    """The configuration in ``folder``; ValueError, with what is not supported, for models whose
    decode step is another than this one."""
    file = folder / "config.json"
    given = json.loads(file.read_text(encoding="utf-8"))
    rope = given.get("rope_parameters") or given.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    refused = {
        "model_type": given.get("model_type") != "llama",
        "hidden_act": given.get("hidden_act", "silu") != "silu",
        "attention_bias": bool(given.get("attention_bias", False)),
        "mlp_bias": bool(given.get("mlp_bias", False)),
        "rope_scaling": kind not in ("default", "llama3"),
    }
    for name, is_other in refused.items():
        if is_other:
            value = kind if name == "rope_scaling" else given.get(name)
            raise ValueError(
                f"{file}: {name} is {value!r}; this example decodes models of the type 'llama' "
                "with hidden_act 'silu', without biases, with rope_scaling 'llama3' or none"
            )
    heads = given["num_attention_heads"]
    return LlamaConfig(
        num_hidden_layers=given["num_hidden_layers"],
        hidden_size=given["hidden_size"],
        intermediate_size=given["intermediate_size"],
        num_attention_heads=heads,
        num_key_value_heads=given.get("num_key_value_heads") or heads,
        head_dim=given.get("head_dim") or given["hidden_size"] // heads,
        vocab_size=given["vocab_size"],
        rms_norm_eps=given.get("rms_norm_eps", 1e-6),
        rope_theta=rope.get("rope_theta", given.get("rope_theta", 10_000.0)),
        rope_scaling=rope if kind == "llama3" else None,
        tie_word_embeddings=given.get("tie_word_embeddings", False),
    )
