"""The same model in PyTorch: a decode step with static caches as a baseline, and transformers'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import fusionq as fq

from .config import LlamaConfig
from .model import Llama


def transformers_logits(
    config: LlamaConfig, weights: Mapping[str, fq.Buffer], tokens: Sequence[int]
) -> Any:
    """The logits after ``tokens`` of transformers' LlamaForCausalLM, in float32."""
    from transformers import LlamaConfig as Config
    from transformers import LlamaForCausalLM

    given = {k: v for k, v in asdict(config).items() if v is not None}
    with torch.device("meta"):
        model = LlamaForCausalLM(Config.from_dict(given | {"model_type": "llama"}))
    state = {name: torch.from_dlpack(w).float() for name, w in weights.items()}
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, assign=True, strict=False)
    device = next(iter(state.values())).device
    rotary = type(model.model.rotary_emb)(model.config, device=device)
    model.model.rotary_emb = rotary
    with torch.no_grad():
        ids = torch.tensor([[int(t) for t in tokens]], device=device)
        found = model(ids, use_cache=False).logits[0, -1].float().cpu().numpy()
    del model, state
    torch.cuda.empty_cache()
    return found


def torch_step(
    model: Llama, position: int, mode: str, expected: Any
) -> tuple[str, Callable[[], Any]]:
    """A decode step in bfloat16 with static caches, on the queue's stream: "eager", or a mode of
    ``torch.compile``."""
    config = model.config
    depth, cached = config.head_dim, config.num_key_value_heads
    stream = torch.cuda.ExternalStream(model.queue.__cuda_stream__()[1])
    w = {name: torch.from_dlpack(b) for name, b in model.weights.items()}
    device = next(iter(w.values())).device
    kv = [
        (torch.from_dlpack(k).transpose(1, 2).contiguous().bfloat16()[None],
         torch.from_dlpack(v).contiguous().bfloat16()[None])
        for k, v in zip(model.keys, model.values, strict=True)
    ]  # fmt: skip
    frequencies = torch.from_numpy(config.frequencies()).to(device)
    head = w["model.embed_tokens.weight" if config.tie_word_embeddings else "lm_head.weight"]
    place = torch.tensor([position], device=device)
    token = torch.from_dlpack(model.tokens)[position : position + 1].clone()
    visible = torch.arange(model.capacity, device=device)

    def norm(x: Any, gain: Any) -> Any:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps)
        return y.to(x.dtype) * gain

    def rotated(x: Any, c: Any, s: Any) -> Any:
        first, second = x.chunk(2, -1)
        return torch.cat((first * c - second * s, second * c + first * s), -1)

    def step(token: Any, place: Any) -> tuple[Any, Any]:
        x = F.embedding(token, w["model.embed_tokens.weight"])
        angle = place.float()[:, None] * frequencies
        c, s = angle.cos().bfloat16(), angle.sin().bfloat16()
        mask = (visible <= place)[None, None, None]
        for layer in range(config.num_hidden_layers):
            at = f"model.layers.{layer}."
            y = norm(x, w[at + "input_layernorm.weight"])
            q, k, v = (F.linear(y, w[at + f"self_attn.{n}_proj.weight"]) for n in "qkv")
            q = rotated(q.view(1, -1, 1, depth), c, s)
            k = rotated(k.view(1, cached, 1, depth), c, s)
            keys, values = kv[layer]
            keys.index_copy_(2, place, k)
            values.index_copy_(2, place, v.view(1, cached, 1, depth))
            mixed = F.scaled_dot_product_attention(q, keys, values, mask, enable_gqa=True)
            x = x + F.linear(mixed.view(1, -1), w[at + "self_attn.o_proj.weight"])
            y = norm(x, w[at + "post_attention_layernorm.weight"])
            gate = F.silu(F.linear(y, w[at + "mlp.gate_proj.weight"]))
            up = F.linear(y, w[at + "mlp.up_proj.weight"])
            x = x + F.linear(gate * up, w[at + "mlp.down_proj.weight"])
        logits = F.linear(norm(x, w["model.norm.weight"]), head)
        return logits, logits.argmax(-1)

    for tensor in (*w.values(), *(c for of_layer in kv for c in of_layer)):
        torch._dynamo.mark_static_address(tensor)  # else nothing becomes a CUDA graph
    run = step if mode == "eager" else torch.compile(step, mode=mode, fullgraph=True)

    def start() -> None:
        with torch.cuda.stream(stream), torch.no_grad():
            start.found = run(token, place)  # type: ignore[attr-defined]  # kept until the next

    for _ in range(4):
        start()
    stream.synchronize()
    found = start.found[0][0].float().cpu().numpy()  # type: ignore[attr-defined]
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    print(f"  PyTorch's logits in bfloat16 differ by {error:.1e} of the largest")
    name = "PyTorch, eager" if mode == "eager" else f"torch.compile, {mode}"
    return name, start
