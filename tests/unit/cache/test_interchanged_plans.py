"""Plans whose launches have their dimensions in another order, from disk."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.test_interchanged_launches import inside, numbers, shifted
from tests.unit.cache.conftest import forget


@pytest.mark.parametrize("strategy", ["megakernel", "sequence"])
def test_they_are_what_was_written(strategy: str) -> None:
    sycl_queue = fq.FusionQueue()
    if not sycl_queue._state.launcher.backend.target.device.jams_rows:
        pytest.skip("lanes of the device's launches have the last dimension")
    results, outcomes = [], []
    for _ in range(2):
        a, b = fq.Buffer(numbers(50, 61)), fq.Buffer(numbers(50, 61) + 1)
        with fq.fusion(sycl_queue, strategy=strategy) as f:  # type: ignore[arg-type]
            sycl_queue.submit(inside, (61, 50), a, b)
            sycl_queue.submit(shifted, (61, 50), b, a)
            sycl_queue.submit(inside, (61, 50), a, b)
        results.append(b.numpy().copy())
        outcomes.append(f.report.cache)
        assert f.report.plan.stages[0].order == ((1, 0) if strategy == "sequence" else ())
        forget(sycl_queue)
    assert outcomes == ["miss", "disk"]
    np.testing.assert_array_equal(*results)
