"""The example of a decode step on a GPU, against NumPy and transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors", reason="safetensors reads the weights of the example")

import fusionq as fq
from examples.llama import reference
from examples.llama.config import read_config
from examples.llama.model import Llama
from examples.llama.tiny import save_tiny
from examples.llama.weights import read_weights

PROMPT = [3, 1, 4]


@pytest.mark.parametrize("strategy", ["megakernel", "auto", "unfused"])
def test_tokens_and_logits(queue: fq.FusionQueue, tmp_path: Path, strategy: str) -> None:
    save_tiny(tmp_path)
    config = read_config(tmp_path)
    weights = read_weights(tmp_path, config)
    model = Llama(config, weights, queue, 32)
    expected = reference.generate(config, weights, PROMPT, 17)
    assert model.generate(PROMPT, 17, strategy=strategy) == expected
    logits = reference.logits(config, weights, (PROMPT + expected)[:-1])[-1]
    np.testing.assert_allclose(np.array(model.logits.numpy()), logits, atol=1e-5)


def test_transformers_reads_the_same_files(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    save_tiny(tmp_path)
    config = read_config(tmp_path)
    weights = read_weights(tmp_path, config)
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    tokens = PROMPT + reference.generate(config, weights, PROMPT, 17)
    with torch.no_grad():
        found = model(torch.tensor([tokens])).logits[0].numpy()
    np.testing.assert_allclose(reference.logits(config, weights, tokens), found, atol=1e-4)
    assert [int(t) for t in found[len(PROMPT) - 1 : -1].argmax(1)] == tokens[len(PROMPT) :]
