"""What the host does for a fusion of four kernels whose arguments are new at each call, as
temporaries of a function are."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.baselines.new_arrays import contenders
from fusionq.benchmarks.case import Unavailable
from fusionq.benchmarks.cases.seeds import mul, sub
from fusionq.benchmarks.gpu import is_gpu
from fusionq.benchmarks.results import Measurement

SIZE = 1_000
ROUNDS_OF_EACH = 40
"""Calls of each kind in one round; the first are left out."""
STEPS = 16
"""Of a stencil."""
Arguments = tuple[list[Any], list[Any], Any, int]
"""Inputs, temporaries, the output, and work-items."""


@fq.kernel
def step(item: fq.Item, a: Any, b: Any) -> None:
    """A step of a 3-point stencil."""
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = (a[i - 1] + a[i] + a[i + 1]) / np.float32(3.0)


def new_arguments(queue: fq.FusionQueue, rounds: int) -> list[Measurement]:
    """Median seconds until the calls have returned, over ``rounds`` rounds in which the kinds of
    arguments take turns.  Making the arguments and waiting for the result are left out, but in the
    rows of a persistent kernel that say ``complete``."""
    calls = (rounds + 1) * ROUNDS_OF_EACH
    source = np.random.default_rng(3).random((4, SIZE + calls), dtype=np.float32)
    store = [fq.Buffer(row) for row in source]
    keep: list[Any] = []
    """The last arguments, so that the next ones lie elsewhere."""

    def buffers(number: int) -> Arguments:
        return _buffers(source, SIZE)

    def sizes(number: int) -> Arguments:
        return _buffers(source, SIZE + number)

    def arrays(number: int) -> Arguments:
        return [row[:SIZE].copy() for row in source], _empty(3), _empty(1)[0], SIZE

    def views(number: int) -> Arguments:
        parts = [row[number : number + SIZE] for row in source]
        return parts, _empty(3), _empty(1)[0], SIZE

    def parts(number: int) -> Arguments:
        inputs = [whole[number : number + SIZE] for whole in store]
        return inputs, *_buffers(source, SIZE)[1:]

    def block(arguments: Arguments) -> None:
        a, t, out, n = arguments
        with fq.fusion(queue):
            queue.submit(mul, n, a[0], a[1], t[0])
            queue.submit(sub, n, a[0], a[2], t[1])
            queue.submit(mul, n, t[1], a[3], t[2])
            queue.submit(sub, n, t[0], t[2], out)

    def plain(arguments: Arguments) -> None:
        a, _, out, n = arguments
        queue.submit(mul, n, a[0], a[1], out)

    def persistent(arguments: Arguments) -> fq.Fusion:
        a, _, out, n = arguments
        with fq.fusion(queue, strategy="megakernel") as fusion:
            for _ in range(STEPS // 2):
                queue.submit(step, n, a[0], out)
                queue.submit(step, n, out, a[0])
        return fusion

    kinds: dict[str, tuple[Callable[[int], Any], Callable[[Any], Any], str]] = {
        "fusion_of_four_new_buffers": (buffers, block, "whole with block, four submits"),
        "fusion_of_four_new_arrays": (arrays, block, "NumPy arrays"),
        "fusion_of_four_new_sizes": (sizes, block, "Buffers of sizes that were never seen"),
        "fusion_of_four_new_views": (views, block, "views of NumPy arrays at other offsets"),
        "fusion_of_four_new_parts": (parts, block, "views of Buffers at other offsets"),
        "submit_new_buffers": (buffers, plain, "one kernel, outside fusion mode"),
        "submit_new_arrays": (arrays, plain, "NumPy arrays"),
        "submit_new_views": (views, plain, "views of NumPy arrays at other offsets"),
        "submit_new_sizes": (sizes, plain, "Buffers of sizes that were never seen"),
        "persistent_kernel_new_sizes": (sizes, persistent, f"{STEPS} steps of a stencil"),
    }
    if is_gpu(queue):  # kernels there do not reach the host's arrays
        kinds = {name: kind for name, kind in kinds.items() if kind[0] not in (arrays, views)}
    missing: list[Measurement] = []
    rests: dict[str, float] = {}
    for contender, note, spins, bring_up in contenders(queue):
        name = f"{contender}_new_arrays"
        try:
            made, call = bring_up()
        except Unavailable as reason:
            missing.append(Measurement(f"{name}_seconds", None, str(reason)))
            continue

        def new(number: int, made: Any = made) -> Any:
            return made(arrays(number)[0])

        kinds[name] = new, call, note
        rests[name] = spins
    samples: dict[str, list[float]] = {name: [] for name in kinds}
    complete: list[float] = []
    replayed: list[float] = []
    numbers = {name: count() for name in kinds}
    for round_ in range(rounds + 1):
        for name, (make, call, _) in kinds.items():
            for _ in range(ROUNDS_OF_EACH):
                arguments = make(next(numbers[name]))
                keep.append(arguments)
                del keep[:-16]
                start = time.perf_counter()
                result = call(arguments)
                seconds = time.perf_counter() - start
                queue.wait()
                keep.append(result)
                if round_:
                    samples[name].append(seconds)
                if isinstance(result, fq.Fusion):
                    again = time.perf_counter()
                    result.replay().wait()
                    if round_:
                        complete.append(again - start)
                        replayed.append(time.perf_counter() - again)
            time.sleep(rests.get(name, 0.0))
    found = [
        Measurement(f"{name}_seconds", float(np.median(samples[name])), note)
        for name, (_, _, note) in kinds.items()
    ]
    first, again = float(np.median(complete)), float(np.median(replayed))
    found += [
        Measurement("persistent_kernel_new_sizes_complete_seconds", first, "with its run"),
        Measurement("persistent_kernel_replay_complete_seconds", again, "the run of the same"),
        Measurement("persistent_kernel_new_sizes_beyond_its_run_seconds", first - again),
    ]
    return found + missing


def _buffers(source: np.ndarray[Any, Any], size: int) -> Arguments:
    inputs = [fq.Buffer(row[:size]) for row in source]
    temporaries = [fq.Buffer(size, np.float32, promote_private=True) for _ in range(3)]
    return inputs, temporaries, fq.Buffer(size, np.float32), size


def _empty(count: int) -> list[np.ndarray[Any, Any]]:
    return [np.empty(SIZE, np.float32) for _ in range(count)]
