"""What a plan takes by the cost model, of which a first run and the background ask."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions, Strategy
from fusionq.planning.planner import make_plan
from fusionq.planning.predicted import predicted_seconds
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES


@fq.kernel
def blur(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i + 1]


def predicted(count: int, n: int, strategy: Strategy) -> tuple[float, str | None]:
    """Seconds of a chain of stencils, and what planning says of its choice."""
    arrays = [np.empty(n, np.float32) for _ in range(count + 1)]
    listed = submissions(*((blur, n, a, b) for a, b in pairwise(arrays)))
    plan = make_plan(listed, FusionOptions(strategy=strategy), TWO_CORES, (), lambda: TWO_CORES)
    return predicted_seconds(listed, plan, TWO_CORES), plan.choice


@pytest.mark.parametrize("strategy", ["sequence", "megakernel"])
def test_more_takes_longer(strategy: Strategy) -> None:
    base, _ = predicted(4, 1 << 20, strategy)
    assert base < predicted(8, 1 << 20, strategy)[0] < 3 * base
    assert base < predicted(4, 1 << 23, strategy)[0]


@pytest.mark.slow
def test_it_is_what_auto_compares() -> None:
    _, choice = predicted(8, 1 << 16, "auto")
    assert choice is not None
    ((persistent, launches),) = re.findall(
        r"estimated (\d+) µs as one persistent kernel against (\d+) µs as a sequence", choice
    )
    for strategy, microseconds in (("megakernel", persistent), ("sequence", launches)):
        assert round(1e6 * predicted(8, 1 << 16, strategy)[0]) == int(microseconds)
