"""Streams of memory: how many planes of arrays one launch for several submissions reads and writes,
and where a launch each is faster beyond the caches."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.questions import Questions
from fusionq.base.options import FusionOptions
from fusionq.planning.known_values import sizes_of
from fusionq.planning.memory_streams import LEAST_SHARE, MemoryStreams, planes
from fusionq.planning.planner import make_plan
from tests.unit.lists import submissions
from tests.unit.targets import TWO_CORES

N, M = 16, 64
SMALL = replace(TWO_CORES, cache_bytes=N * M * 8 * 4)
"""A target in whose caches four planes stay."""


@fq.kernel
def level(item: fq.Item, k, u, w, out):
    i = item.get_id(0)
    j = item.get_id(1)
    below = w[k, i, j] + w[k - 1, i, j] if k > 0 else 0.0
    out[k, i, j] = u[k, i, j] * below + u[k + 1, i, j]


@fq.kernel
def rows(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    if 0 < i < a.shape[0] - 1:
        b[i, j] = a[i - 1, j] + a[i, j] + a[i + 1, j]


@fq.kernel
def all_levels(item: fq.Item, u, out):
    i = item.get_id(0)
    j = item.get_id(1)
    total = 0.0
    for k in range(u.shape[0]):
        total += u[k, i, j]
    out[i, j] = total


@fq.kernel
def copied(item: fq.Item, a, b):
    i = item.get_id(0)
    j = item.get_id(1)
    b[i, j] = a[i, j]


def volumes(levels, count=3):
    return [np.zeros((levels, N, M)) for _ in range(count)]


def levels_of(levels):
    u, w, out = volumes(levels + 1)
    return submissions(*((level, (N, M), k, u, w, out) for k in range(levels)))


def streams_of(submitted, target=SMALL):
    streams = MemoryStreams(Questions(submitted), target)
    for s in range(len(submitted)):
        streams.add(s)
    return streams


def test_planes_are_arrays_with_what_is_the_same_for_all_work_items():
    (one,) = levels_of(1)
    found = planes(one.ir, sizes_of(one))
    assert found == dict.fromkeys(
        [(a, (k, None, None)) for a, k in (("u", 0), ("u", 1), ("w", 0), ("w", -1), ("out", 0))],
        True,
    )
    a, b = np.zeros((N, M)), np.zeros((N, M))
    (one,) = submissions((rows, (N, M), a, b))
    assert set(planes(one.ir, sizes_of(one))) == {("a", (None, None)), ("b", (None, None))}
    (u,) = volumes(5, 1)
    (one,) = submissions((all_levels, (N, M), u, b))
    found = planes(one.ir, sizes_of(one))
    assert sorted((array, known) for (array, _), known in found.items()) == [
        ("out", True), ("u", False)
    ]  # fmt: skip


def test_planes_that_several_submissions_touch_count_once():
    plane = N * M * 8
    streams = streams_of(levels_of(3))
    # u[0..3], w[-1..2], out[0..2]
    assert streams.count == 4 + 4 + 3
    assert streams.joined == pytest.approx(
        11 * plane / SMALL.costs.memory_bandwidth / np.sqrt(8 / 11)
    )
    # Five planes of the launch before do not stay in caches for four.
    assert streams.apart == pytest.approx(15 * plane / SMALL.costs.memory_bandwidth)
    kept = streams_of(levels_of(3), replace(SMALL, cache_bytes=5 * plane))
    assert kept.apart == pytest.approx(11 * plane / SMALL.costs.memory_bandwidth)
    assert kept.joined == streams.joined


def test_however_many_streams_there_are_memory_has_a_part_of_its_bandwidth():
    submitted = levels_of(200)
    streams = streams_of(submitted)
    seconds = streams.count * N * M * 8 / SMALL.costs.memory_bandwidth
    assert streams.joined == pytest.approx(seconds / LEAST_SHARE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_is_added_and_removed_leaves_what_was(seed):
    draw = random.Random(seed)
    submitted = levels_of(12)
    streams = MemoryStreams(Questions(submitted), SMALL)
    held: list[int] = []
    for _ in range(60):
        if held and draw.random() < 0.4:
            streams.remove_last()
            held.pop()
        else:
            s = draw.randrange(len(submitted))
            streams.add(s)
            held.append(s)
        anew = MemoryStreams(Questions(submitted), SMALL)
        for s in held:
            anew.add(s)
        assert (len(streams), streams.count) == (len(held), anew.count)
        assert streams.apart == pytest.approx(anew.apart)
        assert streams.joined == pytest.approx(anew.joined)


def planned(submitted, target, strategy="sequence"):
    return make_plan(submitted, FusionOptions(strategy=strategy), target)


@pytest.mark.slow
def test_submissions_of_many_planes_beyond_the_caches_stay_apart():
    submitted = levels_of(24)
    large = replace(SMALL, launch_operations=1, cache_bytes=6 * N * M * 8)
    plan = planned(submitted, large)
    most = max(len(stage.submissions) for stage in plan.stages)
    assert most <= 4
    assert "streams of memory" in (plan.stages[1].boundary or "")
    # In the cache they are one launch, and for as many as asked for.
    assert len(planned(submitted, replace(large, cache_bytes=1 << 30)).stages) == 1
    assert len(planned(submitted, large, "fused").stages) == 1


def test_a_plan_of_many_planes_in_the_caches_serves_no_sizes_beyond_them():
    def listed(n, m):
        u, w, out = (np.zeros((25, n, m)) for _ in range(3))
        return submissions(*((level, (n, m), k, u, w, out) for k in range(24)))

    target = replace(SMALL, launch_operations=1, cache_bytes=1 << 30)
    plan = planned(listed(N, M), target)
    assert len(plan.stages) == 1
    assert plan.validity.holds(listed(N, M))
    assert plan.validity.holds(listed(N - 2, M))
    assert not plan.validity.holds(listed(N * 8, M * 8))


def test_few_planes_join_whatever_the_caches_hold():
    arrays = [np.zeros((N, M)) for _ in range(9)]
    pairs = pairwise(arrays)
    submitted = submissions(*((copied, (N, M), a, b) for a, b in pairs))
    target = replace(SMALL, launch_operations=1, cache_bytes=N * M)
    plan = planned(submitted, target)
    assert len(plan.stages) == 1
