"""What the host does for a fusion in the steady state, against raw launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fusionq as fq
from fusionq.benchmarks.baselines.cuda import cuda_launches
from fusionq.benchmarks.baselines.opencl import raw_launches
from fusionq.benchmarks.case import RawKernels, Unavailable, Workload
from fusionq.benchmarks.cases import seeds
from fusionq.benchmarks.gpu import is_gpu
from fusionq.benchmarks.new_arguments import new_arguments
from fusionq.benchmarks.results import Measurement, SpecialResult
from fusionq.benchmarks.variants import submit_chain

NAME = "host_cost"
DESCRIPTION = "host time in the steady state, the four-kernel example at 1,000 elements"
SIZE = 1_000
NEW_ARGUMENTS = 20
"""Rounds for one with new arguments, in which each kind of them is called 40 times."""
BATCH = 10
"""Calls in a row in one sample; then the queue drains."""


def run_host_cost(queue: fq.FusionQueue, rounds: int) -> SpecialResult:
    """Medians over interleaved rounds.  ``submit``: until the calls have returned.
    ``complete``: until the results are there, waiting after each call.  Then the same with
    arguments that are new at each call."""
    workload = Workload(seeds.CASE, SIZE, queue)
    try:
        four_raw = _raw(workload, RawKernels(seeds.OPENCL_UNFUSED, seeds.UNFUSED_LAUNCHES))
        fused = _raw(workload, RawKernels(seeds.OPENCL_FUSED, seeds.FUSED_LAUNCHES))
    except Unavailable as reason:
        return SpecialResult(NAME, DESCRIPTION, (), str(reason))
    chain = submit_chain(workload, workload.promoted_buffers())

    def fuse() -> fq.Event:
        with fq.fusion(queue) as fusion:
            chain()
        assert fusion.event is not None
        return fusion.event

    with fq.fusion(queue) as fusion:
        chain()
    calls = (four_raw, fuse, fused, fusion.replay)
    submit = _medians(calls, queue, rounds, wait_each=False)
    complete = _medians(calls, queue, rounds, wait_each=True)
    workload.spoil()
    fusion.replay().wait()
    workload.check(bit_for_bit=True)
    return SpecialResult(
        NAME,
        DESCRIPTION,
        (
            *_measurements("submit", submit),
            *_measurements("complete", complete),
            *new_arguments(queue, max(rounds // NEW_ARGUMENTS, 1)),
        ),
    )


def _raw(workload: Workload, kernels: RawKernels) -> Callable[[], Any]:
    """Starts hand-written kernels by prepared launches of the runtime below; gives what to wait
    for."""
    queue = workload.queue
    if is_gpu(queue):
        start, _ = cuda_launches(workload, kernels)

        def on_gpu() -> fq.FusionQueue:
            start()
            return queue

        return on_gpu
    *first, last = raw_launches(workload, kernels.source, kernels.launches)

    def on_sycl_device() -> Any:
        for launch in first:
            launch()
        return last()

    return on_sycl_device


def _measurements(what: str, medians: Sequence[float]) -> list[Measurement]:
    four_raw, fuse, raw, replay = medians
    return [
        Measurement(f"{what}_four_raw_launches_seconds", four_raw, "prepared, of the runtime"),
        Measurement(f"{what}_fusion_of_four_seconds", fuse, "whole with block, four submits"),
        Measurement(f"{what}_fusion_to_four_raw_ratio", fuse / four_raw),
        Measurement(f"{what}_one_raw_launch_seconds", raw, "hand-fused kernel"),
        Measurement(f"{what}_replay_seconds", replay),
        Measurement(f"{what}_replay_to_one_raw_ratio", replay / raw),
    ]


def _medians(
    calls: Sequence[Callable[[], Any]], queue: fq.FusionQueue, rounds: int, *, wait_each: bool
) -> list[float]:
    """Median seconds of each call, over ``rounds`` batches in changing order."""
    rng = np.random.default_rng(0)
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for index in rng.permutation(len(calls)):
            call = calls[index]
            start = time.perf_counter()
            for _ in range(BATCH):
                event = call()
                if wait_each:
                    event.wait()
            samples[index].append((time.perf_counter() - start) / BATCH)
            queue.wait()
            if queue.sycl_queue is not None:
                queue.sycl_queue.wait()
    return [float(np.median(s[1:])) for s in samples]
