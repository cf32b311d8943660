"""Kernels by tiles say how large their sub-groups are where a work-group's work-items are lanes."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.options import FusionOptions
from fusionq.base.target import Target
from fusionq.planning import overlap
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.planning.plans import private
from tests.unit.planning.test_waiting_threads import GPU
from tests.unit.targets import TWO_CORES


@fq.kernel
def along(item: fq.Item, a, t):
    i = item.get_id(0)
    t[i] = a[i] * 2


@fq.kernel
def along_again(item: fq.Item, t, out):
    i = item.get_id(0)
    out[i] = t[max(i - 1, 0)] + t[i]


@fq.kernel
def across(item: fq.Item, a, t):
    i, j = item.get_id(0), item.get_id(1)
    t[i, j] = a[i, j] * 2


@fq.kernel
def across_again(item: fq.Item, t, out):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = t[max(i - 1, 0), j] + t[i, max(j - 1, 0)]


@pytest.mark.parametrize(("target", "says"), [(TWO_CORES, True), (GPU, False)])
@pytest.mark.parametrize("shape", [(5000,), (96, 130)])
def test_compilers_that_choose_may_take_fewer_lanes(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], target: Target, says: bool
) -> None:
    """They would do each part, with all its rows, for some lanes after the others."""
    first, second = (along, along_again) if len(shape) == 1 else (across, across_again)
    a, t, out = (np.zeros(shape, np.float32) for _ in range(3))
    t = private(t)
    monkeypatch.setattr(overlap, "WAYS", ("tiled",))
    listed = submissions((first, shape, a, t), (second, shape, t, out))
    (launch,) = make_plan(listed, FusionOptions(strategy="overlap"), target).stages
    assert launch.tiling is not None and launch.local_range is not None
    lanes = launch.local_range[-1]
    assert launch.kernel.sub_group_size == (lanes if says else None)
    assert not says or lanes == target.sub_group_size
