"""The variants of a case on an NVIDIA GPU, timed by the device's events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import fusionq as fq
from fusionq.benchmarks.baselines import gpu_arrays
from fusionq.benchmarks.baselines.cuda import cuda_copy, cuda_launches
from fusionq.benchmarks.case import Unavailable, Workload
from fusionq.benchmarks.timing import Sampler, Start
from fusionq.benchmarks.variants import (
    MissingVariant,
    Variant,
    own_variants,
    submit_chain,
    variants,
)

GRAPH = "unfused, CUDA graph"
CONTRACTED = 1e-5
"""Relative difference from NumPy's result that libraries may have which contract ``a * b + c``."""


def all_variants(
    workload: Workload, dpex_python: Path | None = None
) -> Iterator[Variant | MissingVariant]:
    """The variants of the workload's case on its queue's device, the unfused one first."""
    if not is_gpu(workload.queue):
        yield from variants(workload, dpex_python)
        return
    sampler = by_events(workload.queue)
    for variant in chain(own_variants(workload), _baselines(workload)):
        if isinstance(variant, Variant):
            variant = replace(variant, sampler=sampler(variant.start))
        yield variant


def is_gpu(queue: fq.FusionQueue) -> bool:
    """Whether the queue is on an NVIDIA GPU."""
    return queue.device.filter_string.startswith("cuda")


def by_events(queue: fq.FusionQueue) -> Callable[[Start], Sampler]:
    """Samplers of runs on the queue's stream, or on streams that wait for it and it for them."""
    from fusionq.backends.cuda.devices import device
    from fusionq.backends.cuda.runtime import checked, load_driver

    driver = load_driver()
    stream = driver.CUstream(queue.__cuda_stream__()[1])
    device(int(queue.device.filter_string.partition(":")[2])).make_current()
    begin, end = (checked("an event", driver.cuEventCreate(0)) for _ in range(2))

    def sampler(start: Start) -> Sampler:
        def sample(runs: int) -> float:
            checked("an event", driver.cuEventRecord(begin, stream))
            for _ in range(runs):
                start()
            checked("an event", driver.cuEventRecord(end, stream))
            checked("the end", driver.cuEventSynchronize(end))
            return float(checked("a time", driver.cuEventElapsedTime(begin, end))) * 1e-3

        return sample

    return sampler


def _baselines(workload: Workload) -> Iterator[Variant | MissingVariant]:
    yield Variant(GRAPH, "baseline", "unfused", _unfused_graph(workload))
    for baseline in workload.case.baselines:
        if baseline.raw is not None:
            name = baseline.name.replace("raw OpenCL", "CUDA C++ by hand")
            prepare = partial(cuda_launches, workload, baseline.raw)
            yield _available(name, baseline.traffic, prepare)
    close = partial(workload.check_close, CONTRACTED)
    for name, of_library in gpu_arrays.BASELINES.items():
        variant = _available(name, "promoted", partial(of_library, workload))
        yield replace(variant, check=close) if isinstance(variant, Variant) else variant
    yield Variant(
        "device copy of as many bytes", "baseline", "promoted", cuda_copy(workload),
        is_checked=False,
    )  # fmt: skip


def _unfused_graph(workload: Workload) -> Start:
    """fusionq's unfused kernels, replayed."""
    submit = submit_chain(workload, workload.buffers)
    with fq.fusion(workload.queue, strategy="unfused") as fusion:
        submit()
    return fusion.replay


def _available(name: str, traffic: Any, prepare: Callable[[], Any]) -> Variant | MissingVariant:
    try:
        start, finish = prepare()
    except Unavailable as reason:
        return MissingVariant(name, "baseline", str(reason))
    return Variant(name, "baseline", traffic, start, finish=finish)
