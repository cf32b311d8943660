"""The example of a decode step: files as Hugging Face writes them, tokens, and one plan for all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors", reason="safetensors reads the weights of the example")

import fusionq as fq
from examples.llama import reference
from examples.llama.config import LLAMA_3_2_1B, read_config
from examples.llama.model import Llama
from examples.llama.tiny import TINY, save_tiny
from examples.llama.weights import read_weights
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.planning.planner import Planning
from tests.in_turn import is_whole
from tests.unit.runtime.conftest import has_sycl

PROMPT = [3, 1, 4]
SMALLEST = replace(TINY, num_hidden_layers=1, hidden_size=16, intermediate_size=16,
                   num_attention_heads=2, num_key_value_heads=1, vocab_size=24)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_tiny(tmp_path)
    return tmp_path


def test_files(folder: Path) -> None:
    assert read_config(folder) == TINY
    weights = read_weights(folder, TINY)
    assert {str(w.dtype) for w in weights.values()} == {"bfloat16"}
    assert weights["lm_head.weight"].shape == (96, 32)
    with pytest.raises(ValueError, match=r"there is no weight model\.layers\.2\.input_layernorm"):
        read_weights(folder, replace(TINY, num_hidden_layers=3))
    with pytest.raises(ValueError, match=r"has the shape \(96, 32\), not \(97, 32\)"):
        read_weights(folder, replace(TINY, vocab_size=97))


def test_files_in_parts(folder: Path) -> None:
    whole = read_weights(folder, TINY)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    listed = {"weight_map": dict.fromkeys(whole, "model-00001-of-00001.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(listed))
    assert read_weights(folder, TINY).keys() == whole.keys()


@pytest.mark.parametrize(
    "name, value", [("model_type", "mistral"), ("hidden_act", "gelu"), ("attention_bias", True)]
)
def test_other_models_are_refused(folder: Path, name: str, value: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))
    with pytest.raises(ValueError, match=f"config.json: {name} is {value!r}"):
        read_config(folder)


def test_frequencies_are_stretched() -> None:
    """Short wavelengths are kept, long ones stretched by the factor."""
    plain = replace(LLAMA_3_2_1B, rope_scaling=None).frequencies()
    stretched = LLAMA_3_2_1B.frequencies()
    assert np.array_equal(plain[:12], stretched[:12])
    np.testing.assert_allclose(plain[-12:] / stretched[-12:], 32, rtol=1e-6)
    assert np.all(np.diff(stretched) < 0)


@pytest.mark.slow
def test_one_plan_serves_all_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of the prompt; on the reference backend, by the persistent kernel."""
    save_tiny(tmp_path, SMALLEST)
    plans, builds, prepared = [], [], []

    def counted(of: type, name: str, calls: list[str]) -> None:
        original = getattr(of, name)

        def call(self, *args, **options):
            calls.append(name)
            return original(self, *args, **options)

        monkeypatch.setattr(of, name, call)

    counted(ReferenceBackend, "build", builds)
    counted(ReferenceBackend, "prepare", prepared)
    weights = read_weights(tmp_path, SMALLEST)
    model = Llama(SMALLEST, weights, fq.FusionQueue("reference"), 24, group=8)
    expected = reference.generate(SMALLEST, weights, PROMPT, 18)
    fq.set_disk_cache(enabled=False)
    try:
        counted(Planning, "__init__", plans)
        assert model.generate(PROMPT, 18, strategy="megakernel", require=True) == expected
    finally:
        fq.set_disk_cache()
    assert model.report.strategy == "megakernel" and len(model.report.stages) == 1
    assert len(plans) == len(builds) == len(prepared) == 1
    assert len(set(expected)) >= 3


@pytest.mark.slow
@pytest.mark.skipif(not has_sycl(), reason="no SYCL device")
@pytest.mark.parametrize(
    "strategy", [pytest.param("megakernel", marks=pytest.mark.slow), "unfused"]
)
def test_tokens_and_logits(tmp_path: Path, strategy: str) -> None:
    """Of a layer, of two in the profile ``nightly``: planning takes longer than all else."""
    config = TINY if is_whole() else replace(TINY, num_hidden_layers=1)
    save_tiny(tmp_path, config)
    weights = read_weights(tmp_path, config)
    model = Llama(config, weights, fq.FusionQueue(), 32, group=16, by_rows=True)
    expected = reference.generate(config, weights, PROMPT, 17)
    assert model.generate(PROMPT, 17, strategy=strategy) == expected
    assert model.report.strategy == strategy
    logits = reference.logits(config, weights, (PROMPT + expected)[:-1])[-1]
    np.testing.assert_allclose(model.logits.numpy(), logits, atol=1e-5)
