"""A Llama model on a device: its buffers, and the list of kernels that is one decode step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.kernels import add, silu_gate, store_value

from . import kernels
from .config import LlamaConfig

GROUP = 64
"""Work-items of a work-group; on a GPU, whose work-groups have many threads, GPU_GROUP."""
GPU_GROUP = 128


class Llama:
    """A model with its key and value caches.

    ``weights``: arrays or Buffers by Hugging Face's names, float32 or bfloat16.  ``capacity``: how
    many positions the caches hold.  ``group``: work-items of a work-group, a multiple of the heads'
    depth.  ``by_rows``: whether a work-group takes four rows of a product where it can, which hides
    a GPU's latency; None: on GPUs.
    """

    def __init__(
        self,
        config: LlamaConfig,
        weights: Mapping[str, Any],
        queue: fq.FusionQueue,
        capacity: int,
        group: int | None = None,
        by_rows: bool | None = None,
    ) -> None:
        self.config, self.queue, self.capacity = config, queue, capacity
        on_gpu = queue.device.filter_string.startswith("cuda")
        self.group = group or (GPU_GROUP if on_gpu else max(GROUP, config.head_dim))
        self.by_rows = on_gpu if by_rows is None else by_rows
        if self.group % config.head_dim:
            raise ValueError(f"work-groups of {self.group} are no multiple of {config.head_dim}")
        self.weights = {
            name: w if isinstance(w, fq.Buffer) else fq.Buffer(w) for name, w in weights.items()
        }
        depth, cached = config.head_dim, config.num_key_value_heads
        self.frequencies = fq.Buffer(config.frequencies())
        self.tokens = fq.Buffer(capacity + 1, np.int64)
        self.keys = [
            fq.Buffer((cached, depth, capacity), np.float32)
            for _ in range(config.num_hidden_layers)
        ]
        self.values = [
            fq.Buffer((cached, capacity, depth), np.float32)
            for _ in range(config.num_hidden_layers)
        ]
        self.logits = fq.Buffer(config.vocab_size, np.float32)

        def vector(n: int) -> fq.Buffer:
            return fq.Buffer(n, np.float32)

        self.x, self.y, self.change = (vector(config.hidden_size) for _ in range(3))
        self.query, self.mixed = (vector(config.num_attention_heads * depth) for _ in range(2))
        self.key, self.value = (vector(cached * depth) for _ in range(2))
        self.scores = fq.Buffer((config.num_attention_heads, capacity), np.float32)
        self.gate, self.up = (vector(config.intermediate_size) for _ in range(2))
        groups = -(-config.vocab_size // self.group)
        self.largest, self.places = vector(groups), fq.Buffer(groups, np.int64)

    def _product(self, weight: str, x: fq.Buffer, out: fq.Buffer) -> None:
        a = self.weights[weight]
        rows = a.shape[0]
        by_rows = self.by_rows and rows % kernels.ROWS == 0
        kernel = kernels.matrix_vector_by_rows if by_rows else kernels.matrix_vector
        groups = rows // kernels.ROWS if by_rows else rows
        space = fq.NdRange((groups, self.group), (1, self.group))
        self.queue.submit(kernel, space, a, x, out)

    def _norm(self, weight: str) -> None:
        epsilon = np.float32(self.config.rms_norm_eps)
        self.queue.submit(
            kernels.rms_norm, fq.NdRange(self.group, self.group),
            epsilon, self.x, self.weights[weight], self.y,
        )  # fmt: skip

    def _add_product(self, weight: str, x: fq.Buffer) -> None:
        self._product(weight, x, self.change)
        self.queue.submit(add, self.config.hidden_size, self.x, self.change, self.x)

    def _attention(self, layer: int, position: int) -> None:
        config, submit = self.config, self.queue.submit
        keys, values = self.keys[layer], self.values[layer]
        heads, cached, depth = (
            config.num_attention_heads, config.num_key_value_heads, config.head_dim
        )  # fmt: skip
        submit(kernels.rotate, (heads, depth // 2), position, self.frequencies, self.query)
        submit(
            kernels.store_rotated_key, (cached, depth // 2),
            position, self.frequencies, self.key, keys,
        )  # fmt: skip
        submit(store_value, (cached, depth), position, self.value, values)
        by_head = fq.NdRange((heads, self.group), (1, self.group))
        scale = np.float32(depth**-0.5)
        submit(kernels.scores, by_head, position, scale, self.query, keys, self.scores)
        submit(kernels.softmax, by_head, position, self.scores)
        parts = fq.LocalAccessor(self.group, np.float32)
        submit(kernels.mix_values, by_head, position, self.scores, values, parts, self.mixed)

    def submit_step(self, position: int, prompt: int) -> fq.Event:
        """Submit the kernels that turn the token at ``position`` into the logits and, beyond the
        first ``prompt`` tokens, into the token at the next position."""
        config, submit = self.config, self.queue.submit
        table = self.weights["model.embed_tokens.weight"]
        submit(kernels.embed, config.hidden_size, position, self.tokens, table, self.x)
        for layer in range(config.num_hidden_layers):
            at = f"model.layers.{layer}."
            self._norm(at + "input_layernorm.weight")
            self._product(at + "self_attn.q_proj.weight", self.y, self.query)
            self._product(at + "self_attn.k_proj.weight", self.y, self.key)
            self._product(at + "self_attn.v_proj.weight", self.y, self.value)
            self._attention(layer, position)
            self._add_product(at + "self_attn.o_proj.weight", self.mixed)
            self._norm(at + "post_attention_layernorm.weight")
            self._product(at + "mlp.gate_proj.weight", self.y, self.gate)
            self._product(at + "mlp.up_proj.weight", self.y, self.up)
            submit(silu_gate, config.intermediate_size, self.gate, self.up, self.up)
            self._add_product(at + "mlp.down_proj.weight", self.up)
        self._norm("model.norm.weight")
        tied = config.tie_word_embeddings
        self._product(
            "model.embed_tokens.weight" if tied else "lm_head.weight", self.y, self.logits
        )
        groups = self.largest.shape[0]
        submit(
            kernels.largest_of_groups, fq.NdRange(groups * self.group, self.group),
            self.logits, self.largest, self.places,
        )  # fmt: skip
        return submit(
            kernels.choose_token, fq.NdRange(self.group, self.group),
            position, prompt, self.largest, self.places, self.tokens,
        )  # fmt: skip

    def fused_step(self, position: int, prompt: int, **options: Any) -> fq.Fusion:
        """One decode step as a fused list; ``replay(position=…)`` of it is any other step."""
        with fq.fusion(self.queue, **options) as step:
            self.submit_step(position, prompt)
        return step

    def generate(self, prompt: Sequence[int], count: int, **options: Any) -> list[int]:
        """``count`` tokens after ``prompt``, each the most likely one; ``options`` as of
        ``fusionq.fusion``.

        All steps but the first are replays of it with another ``position``, and each writes the
        token that the next one reads, so that the host waits only once, for the last.
        """
        end = len(prompt) + count
        if not prompt or end > self.capacity + 1:
            raise ValueError(
                f"a prompt and {count} tokens more need 1 to {self.capacity + 1} places"
            )
        tokens = np.zeros(self.capacity + 1, np.int64)
        tokens[: len(prompt)] = prompt
        self.tokens.write(tokens)
        step = self.fused_step(0, len(prompt), **options)
        for position in range(1, end - 1):
            step.replay(position=position)
        self.report = step.report
        return [int(token) for token in self.tokens.numpy()[len(prompt) : end]]
