"""Among launches, a persistent kernel and halos computed anew, ``auto`` takes what is predicted to
take least."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.planning.cost import Estimate, OverlapEstimate, with_persistent
from fusionq.planning.plan import Plan
from fusionq.planning.planner import make_plan
from tests.unit.lists import Flagged, submissions
from tests.unit.targets import TWO_CORES

N = 1 << 14


@fq.kernel
def blur(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i + 1]
    else:
        b[i] = a[i]


def chain(count: int, flagged: bool) -> Plan:
    """The plan of a chain of stencils over temporaries."""
    arrays: list[object] = [np.empty(N, np.float32) for _ in range(count + 1)]
    if flagged:
        arrays[1:-1] = [Flagged(array, private=True) for array in arrays[1:-1]]
    listed = submissions(*((blur, N, a, b) for a, b in pairwise(arrays)))
    return make_plan(listed, FusionOptions(), TWO_CORES, (), lambda: TWO_CORES)


def predicted(plan: Plan) -> dict[str, int]:
    """Microseconds by the model."""
    assert plan.choice is not None
    found = re.findall(r"estimated (\d+) µs (as one persistent|with halos)", plan.choice)
    return {way: int(number) for number, way in found}


def test_halos_are_computed_anew_where_that_takes_less_than_a_persistent_kernel() -> None:
    plan = chain(4, flagged=True)
    seconds = predicted(plan)
    assert seconds["with halos"] < seconds["as one persistent"]
    assert plan.strategy == "overlap"


def test_a_persistent_kernel_is_taken_where_it_takes_less() -> None:
    turns = [np.empty(1 << 10, np.float32) for _ in range(2)] * 17
    listed = submissions(*((blur, 1 << 10, a, b) for a, b in pairwise(turns)))
    plan = make_plan(listed, FusionOptions(), TWO_CORES, (), lambda: TWO_CORES)
    seconds = predicted(plan)
    assert seconds["as one persistent"] < seconds["with halos"]
    assert plan.strategy == "megakernel"


def test_launches_beside_persistent_kernels_count() -> None:
    replaced = [Estimate(4.0, 1.0), Estimate(2.0, 1.0)]
    assert with_persistent(replaced, OverlapEstimate(10.0, 5.0)) == 6.0
    assert with_persistent(replaced, OverlapEstimate(5.0, 1.0)) == 2.0
