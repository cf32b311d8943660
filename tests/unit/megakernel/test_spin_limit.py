"""How long a wait in a persistent kernel may take before it counts as a stall."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusionq as fq
from fusionq.backends.base import ArrayBinding, Binding
from fusionq.base.options import FusionOptions
from fusionq.ir.nodes import ArrayParam
from fusionq.megakernel.launch import schedule_for, spin_limit
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.megakernel.cases import reverse
from tests.unit.targets import REFERENCE

TRIPS = 1_500_000


@fq.kernel
def repeated(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0)
    total = a[a.shape[0] - 1 - i]
    for _ in range(TRIPS):
        total += a[i]
    b[i] = total


@fq.kernel
def summed(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0)
    total = a[i]
    for k in range(a.shape[0]):
        total += a[k]
    b[i] = total


@fq.kernel
def until(item: fq.Item, a: Any, b: Any) -> None:
    i = item.get_id(0)
    wanted = a[a.shape[0] - 1 - i]
    while b[i] < wanted:
        b[i] += 1


def limit(kernel: fq.KernelFunction, size: int, steps: int = 4) -> int:
    """Of ``steps`` steps of a kernel over two arrays of ``size``, and as many work-items."""
    a, b = (np.zeros(16, np.int64) for _ in range(2))
    calls = [(kernel, 16, *((a, b) if k % 2 else (b, a))) for k in range(steps)]
    options = FusionOptions(strategy="megakernel", barriers="none")
    plan = make_plan(submissions(*calls), options, REFERENCE)
    assert plan.strategy == "megakernel"
    (stage,) = plan.stages
    bindings: dict[str, Binding] = {
        param.name: ArrayBinding(0, (size,), (1,)) if isinstance(param, ArrayParam) else size
        for param in stage.kernel.params
    }
    schedule = schedule_for(stage.kernel, bindings, REFERENCE)
    return spin_limit(stage.kernel, bindings, schedule, REFERENCE)


def test_a_short_launch_has_stalled_after_the_least_number_of_polls() -> None:
    assert limit(reverse, 40) == REFERENCE.least_spin_limit


def test_a_wait_may_take_as_long_as_all_operations_of_the_launch() -> None:
    least, most = REFERENCE.least_spin_limit, REFERENCE.spin_limit
    items = 4 * 40
    found = limit(repeated, 40)
    assert max(least, items * TRIPS) < found < most
    assert limit(repeated, 40, steps=2) == found / 2
    assert limit(summed, 1_000) == least
    assert max(least, 4 * 9_000 * 9_000) < limit(summed, 9_000) < most
    assert limit(summed, 1 << 30) == most


def test_a_loop_that_may_take_any_time_has_the_longest() -> None:
    assert limit(until, 40) == REFERENCE.spin_limit
