"""Lists that learn from their runs: with a real worker process, on the device."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import list_record

pytestmark = pytest.mark.slow

N, STEPS = 20_000, 6


@fq.kernel
def step(item: fq.Item, a, b, weight):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i] + weight * (a[i - 1] - 2.0 * a[i] + a[i + 1])


def test_a_choice_is_made_and_every_run_gives_the_same_bits(
    disk_cache: Path,
) -> None:
    queue = fq.FusionQueue()
    start = np.random.default_rng(1).random(N, np.float32)

    def run(adapt: bool) -> tuple[fq.Fusion, np.ndarray]:
        with fq.fusion(queue, adapt=adapt) as fusion:
            a, b = first, second
            for _ in range(STEPS):
                queue.submit(step, N, a, b, np.float32(0.1))
                a, b = b, a
        fusion.event.wait()
        return fusion, first.numpy().copy()

    first, second = fq.Buffer(start), fq.Buffer(start)
    wanted = run(adapt=False)[1]
    strategies = set()
    end = time.monotonic() + 300
    while True:
        first.write(start)
        second.write(start)
        fusion, found = run(adapt=True)
        assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32))
        strategies.add(fusion.report.strategy)
        (record,) = list_record.RECORDS._records.values()
        if record.trials.chosen is not None:
            break
        assert time.monotonic() < end, fusion.report.choice
        time.sleep(0.1 if record.making else 0)
    first.write(start)
    second.write(start)
    fusion, found = run(adapt=True)
    assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32))
    assert "by the times of real runs" in str(fusion.report.choice)
    assert len(strategies) > 1, "others were tried"
    list_record.RECORDS.clear()
