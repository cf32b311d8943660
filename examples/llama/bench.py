"""How long a decode step takes: ``python -m examples.llama.bench`` in the repository's root.

One model with random weights, the same kernels in every variant, interleaved.  The logits are
compared with those of the same model in NumPy, or on a GPU with those of transformers in float32,
before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.gpu import by_events, is_gpu
from fusionq.benchmarks.timing import Sampler, one_at_a_time, time_interleaved

from . import reference
from .config import LLAMA_3_2_1B, LlamaConfig
from .model import Llama
from .weights import shapes

SMALL = replace(
    LLAMA_3_2_1B, num_hidden_layers=4, hidden_size=512, intermediate_size=2048,
    num_attention_heads=8, num_key_value_heads=2, vocab_size=16_384,
)  # fmt: skip
"""What is timed where there is no GPU."""
TOLERANCE = 1e-3
"""Difference of logits, relative to the largest, that sums in another order may have."""


@fq.kernel
def fill_random(item: fq.Item, seed: Any, scale: Any, out: Any) -> None:
    """Numbers from ``-scale`` to ``scale``, by a hash of their place and ``seed``."""
    h = np.uint32(item.get_linear_id()) * np.uint32(2654435761) + np.uint32(seed)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(2246822519)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(3266489917)
    h = h ^ (h >> np.uint32(16))
    value = (np.float32(h) * np.float32(2.0**-31) - np.float32(1)) * scale
    if out.ndim == 2:
        out[item.get_id(0), item.get_id(1)] = fq.bfloat16(value)
    else:
        out[item.get_id(0)] = fq.bfloat16(np.float32(1) + value)


def random_weights(config: LlamaConfig, queue: fq.FusionQueue) -> dict[str, fq.Buffer]:
    """Weights in bfloat16, made on the device."""
    weights = {}
    for seed, (name, shape) in enumerate(shapes(config)):
        scale = np.float32((3 / shape[-1]) ** 0.5 if len(shape) == 2 else 0.5)
        weights[name] = fq.Buffer(shape, fq.bfloat16)
        queue.submit(fill_random, shape, 7919 * seed, scale, weights[name])
    return weights


def variants(
    model: Llama, position: int, tune: bool = False
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Ways to run the decode step at ``position``, each built when it is asked for; ``tune``: also
    the fastest of those that are measured."""
    gpu = is_gpu(model.queue)

    def launches() -> fq.Event:
        return model.submit_step(position, 1)

    yield "a launch a kernel", launches
    for name, strategy in (
        ("a launch a kernel, replayed", "unfused"),
        ("fused launches, replayed", "sequence"),
        ("one persistent kernel", "megakernel"),
        *([("the fastest of all measured", "auto")] if tune else []),
    ):
        begun = time.perf_counter()
        step = model.fused_step(position, 1, strategy=strategy, tune=strategy == "auto")
        step.event.wait()
        report = step.report
        seconds = {k: round(v, 3) for k, v in report.timings.items() if v >= 0.0005}
        print(f"{name}: {report.headline}, {report.strategy}; first result after "
              f"{time.perf_counter() - begun:.2f} s {seconds}", flush=True)  # fmt: skip
        if report.fallback:
            print(f"  {report.fallback}")
        if strategy == "auto":
            print(f"  {report.choice}")
        print("".join(f"  {s.workers} workers\n" for s in report.schedules if s), end="")
        is_graph = gpu and report.strategy != "megakernel"
        yield name + (" (CUDA graph)" if is_graph else ""), step.replay


def check(model: Llama, position: int, expected: Any) -> None:
    """That the logits are the expected ones."""
    found = np.array(model.logits.numpy())
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    same = int(found.argmax()) == int(expected.argmax())
    print(f"  logits differ by {error:.1e} of the largest; the token is {'' if same else 'not '}"
          "the same", flush=True)  # fmt: skip
    assert error < TOLERANCE, "the logits are wrong"


def main() -> None:
    """Build, check and time the variants."""
    parser = argparse.ArgumentParser(prog="python -m examples.llama.bench", description=__doc__)
    parser.add_argument("--device", help="as of FusionQueue: cuda, opencl:cpu, reference")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--torch", default="", help="eager,reduce-overhead,max-autotune")
    parser.add_argument("--transformers", action="store_true", help="compare the logits with it")
    parser.add_argument("--group", type=int)
    parser.add_argument("--tune", action="store_true", help="measure all ways to run the step")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    queue = fq.FusionQueue(given.device)
    gpu = is_gpu(queue)
    config = LLAMA_3_2_1B if gpu else SMALL
    config = replace(config, num_hidden_layers=given.layers or config.num_hidden_layers)
    position = given.context - 1
    print(f"device: {queue.device.name}; {config.num_hidden_layers} layers of "
          f"{config.hidden_size}, context {given.context}")  # fmt: skip
    weights = random_weights(config, queue)
    nbytes = sum(w.nbytes for w in weights.values())
    model = Llama(config, weights, queue, given.context, given.group)
    tokens = np.random.default_rng(1).integers(0, config.vocab_size, given.context + 1)
    model.tokens.write(tokens)
    begun = time.perf_counter()
    prefill = model.fused_step(0, given.context + 1, strategy="sequence")
    for at in range(1, given.context):
        prefill.replay(position=at)
    queue.wait()
    print(f"prefill, a token after the other: {time.perf_counter() - begun:.2f} s")
    if given.transformers:
        from .torch_model import transformers_logits

        expected = transformers_logits(config, weights, tokens[: given.context])
    elif gpu:
        expected = np.array(model.logits.numpy())
    else:
        arrays = {name: w.numpy() for name, w in weights.items()}
        expected = reference.logits(config, arrays, [int(t) for t in tokens[: given.context]])[-1]
    check(model, position, expected)
    starts: dict[str, Callable[[], Any]] = {}
    try:
        for name, start in variants(model, position, given.tune):
            model.logits.write(np.zeros(config.vocab_size, np.float32))
            start()
            queue.wait()
            check(model, position, expected)
            starts[name] = start
    except fq.FusionqError as error:
        print(f"not measured: {type(error).__name__}: {error}")
    sampler: Callable[[Callable[[], Any]], Sampler] = by_events(queue) if gpu else one_at_a_time
    results = timed(starts, sampler, given.rounds, nbytes)
    for mode in filter(None, given.torch.split(",")):
        from .torch_model import torch_step

        begun = time.perf_counter()
        name, start = torch_step(model, position, mode, expected)
        print(f"{name}: ready after {time.perf_counter() - begun:.1f} s", flush=True)
        starts[name] = start
        results = timed(starts, sampler, given.rounds, nbytes)
    if given.json:
        about = {"device": queue.device.name, "config": asdict(config), "context": given.context}
        given.json.write_text(json.dumps({**about, "seconds": results}, indent=1))


def timed(
    starts: dict[str, Callable[[], Any]],
    sampler: Callable[[Callable[[], Any]], Sampler],
    rounds: int,
    nbytes: int,
) -> dict[str, tuple[float, ...]]:
    """Print the medians of interleaved runs; the seconds by variant."""
    timings = time_interleaved([sampler(start) for start in starts.values()], rounds)
    print(f"{'variant':44} {'ms':>8} {'25 %':>8} {'75 %':>8} {'GB/s':>7}")
    for name, timing in zip(starts, timings, strict=True):
        low, middle, high = (1e3 * timing.quantile(q) for q in (0.25, 0.5, 0.75))
        print(f"{name:44} {middle:8.3f} {low:8.3f} {high:8.3f} {nbytes / middle / 1e6:7.0f}",
              flush=True)  # fmt: skip
    return {name: t.seconds for name, t in zip(starts, timings, strict=True)}


if __name__ == "__main__":
    main()
