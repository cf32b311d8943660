"""The local memory in which functions of work-groups combine floats counts as LocalAccessors do."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference.backend import REFERENCE_DEVICE
from fusionq.base.options import FusionOptions
from fusionq.passes.local_memory import launched_bytes
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import REFERENCE

MOST = REFERENCE_DEVICE.local_memory_bytes
GROUP = REFERENCE_DEVICE.max_work_group_size


@fq.kernel
def scans(item: fq.NdItem, a, b, turns):
    """In a loop, so that no two have one memory in turn."""
    i = item.get_global_id(0)
    group = item.get_group()
    x = a[i]
    for _turn in range(turns):
        x = fq.inclusive_scan_over_group(group, x, "add") / 8
        x = fq.inclusive_scan_over_group(group, x, "max") + x
        x = fq.exclusive_scan_over_group(group, x, "min") + x
    b[i] = x


@fq.kernel
def total(item: fq.NdItem, a, b):
    i = item.get_global_id(0)
    b[i] = a[i] + fq.reduce_over_group(item.get_group(), a[i], "add")


def arrays(n):
    return np.ones(n), np.zeros(n)


@pytest.mark.slow
def test_a_group_that_takes_more_than_there_is_is_refused_at_submit():
    a, b = (fq.Buffer(x) for x in arrays(GROUP))
    with fq.FusionQueue("reference") as queue:
        queue.submit(scans, fq.NdRange(GROUP, GROUP // 2), a, b, 1)
        taken = 3 * 2 * 8 * GROUP
        message = (
            f"kernel 'scans' takes {taken} bytes of local memory for each work-group (the values "
            f"of its group functions); reference interpreter has {MOST}. Pass smaller "
            "LocalAccessors, or an NdRange of smaller work-groups"
        )
        with pytest.raises(fq.ArgumentError, match=re.escape(message)):
            queue.submit(scans, fq.NdRange(GROUP, GROUP), a, b, 1)


def test_a_group_of_more_work_items_than_the_device_takes_is_refused_at_submit():
    a = fq.Buffer(2 * GROUP, np.float32)
    queue = fq.FusionQueue("reference")
    message = rf"test_local_bytes.py:\d+: kernel 'total' .* at most {GROUP}.* smaller local range"
    with pytest.raises(fq.ArgumentError, match=message):
        queue.submit(total, fq.NdRange(2 * GROUP, 2 * GROUP), a, a)


@pytest.mark.parametrize("ordered", ["ordered", "unordered"])
def test_a_device_with_functions_of_its_own_keeps_no_values(ordered):
    (submission,) = submissions((total, fq.NdRange(64, 32), *arrays(64)))
    device = REFERENCE_DEVICE
    assert launched_bytes(submission.ir, (32,), device) == 32 * 8
    assert launched_bytes(submission.ir, (32,), replace(device, float_groups=ordered)) == 0


def test_what_is_known_of_a_kernel_is_known_by_work_group():
    (submission,) = submissions((total, fq.NdRange(64, 32), *arrays(64)))
    taken = [launched_bytes(submission.ir, (n,), REFERENCE_DEVICE) for n in (32, 16, 32)]
    assert taken == [32 * 8, 16 * 8, 32 * 8]


@pytest.mark.parametrize(("local", "joined"), [(32 * 8 * 2, 2), (32 * 8 * 2 - 1, 1)])
def test_submissions_join_as_far_as_there_is_memory_for_their_functions(local, joined):
    device = replace(REFERENCE.device, local_memory_bytes=local)
    a, b = arrays(64)
    calls = [(total, fq.NdRange(64, 32), a, b), (total, fq.NdRange(64, 32), b, a)]
    options = FusionOptions(strategy="fused")
    plan = make_plan(submissions(*calls), options, replace(REFERENCE, device=device))
    assert len(plan.stages[0].submissions) == joined
    if joined == 1:
        assert "they take 512 bytes of local memory" in plan.stages[1].boundary
