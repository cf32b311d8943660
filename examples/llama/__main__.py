"""Tokens of a Llama model: ``python -m examples.llama`` in the repository's root.

Without ``--model`` it is a tiny one with random weights, whose tokens are compared with NumPy's.
Tokens are numbers; a tokenizer is not part of this.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

import fusionq as fq

from . import reference
from .config import read_config
from .model import Llama
from .tiny import save_tiny
from .weights import read_weights


def main() -> None:
    """Read the model, decode, and say what the step became."""
    parser = argparse.ArgumentParser(prog="python -m examples.llama", description=__doc__)
    parser.add_argument("--model", type=Path, help="a folder with config.json and *.safetensors")
    parser.add_argument("--device", help="as of FusionQueue: cuda, opencl:cpu, reference")
    parser.add_argument("--strategy", default="auto", help="as of fusionq.fusion")
    parser.add_argument("--prompt", default="3,1,4", help="the tokens to begin with")
    parser.add_argument("--count", type=int, default=17, help="tokens to add")
    given = parser.parse_args()
    prompt = [int(token) for token in given.prompt.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        if given.model is None:
            save_tiny(Path(scratch))
        folder = given.model or Path(scratch)
        config = read_config(folder)
        weights = read_weights(folder, config)
    queue = fq.FusionQueue(given.device)
    model = Llama(config, weights, queue, len(prompt) + given.count)
    begun = perf_counter()
    tokens = model.generate(prompt, given.count, strategy=given.strategy)
    print(f"device: {queue.device.name}\n{tokens}")
    print(f"{model.report.headline}, {model.report.strategy}")
    if given.model is None:
        expected = reference.generate(config, weights, prompt, given.count)
        print("equal to NumPy's:", tokens == expected)
    print(f"{(perf_counter() - begun) * 1e3:.0f} ms with planning and building")


if __name__ == "__main__":
    main()
