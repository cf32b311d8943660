"""Time steps over buffers that take turns, several in a launch: always the unfused result."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.planning import overlap


@fq.kernel
def with_edges(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i] - a[i + 1]
    else:
        b[i] = a[i]


@fq.kernel
def inside(item: fq.Item, a, b):
    i = item.get_id(0)
    if i > 0 and i < a.shape[0] - 1:
        b[i] = a[i - 1] + a[i] - a[i + 1]


@fq.kernel
def where_odd(item: fq.Item, a, b):
    i = item.get_id(0)
    if i == 0 or i == a.shape[0] - 1:
        return
    if a[i] % 2 == 1:
        b[i] = a[i - 1] + a[i + 1]


@fq.kernel
def plane(item: fq.Item, a, b):
    i, j = item.get_id(0), item.get_id(1)
    if i > 0 and i < a.shape[0] - 1 and j > 0 and j < a.shape[1] - 1:
        b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4 * a[i, j]


@fq.kernel
def also_the_last(item: fq.Item, a, b, last):
    i = item.get_id(0)
    b[i] = a[max(i - 1, 0)] - a[i]
    if i == 0:
        last[0] = b[i]


@pytest.fixture(params=["inlined", "tiled"])
def queue(request, monkeypatch):
    monkeypatch.setenv("FUSIONQ_CACHE", "0")
    monkeypatch.setattr(PLANS, "_plans", OrderedDict())
    monkeypatch.setattr(overlap, "WAYS", (request.param,))
    with fq.FusionQueue("reference") as queue:
        yield queue


def in_turn(queue, kernel, steps, shape, strategy="overlap", require=False, **flags):
    """The report of ``steps`` time steps, and what the two buffers have then."""
    rng = np.random.default_rng(5)
    now = fq.Buffer(rng.integers(-9, 10, shape))
    then = fq.Buffer(rng.integers(-9, 10, shape), **flags)
    first = now, then
    with fq.fusion(queue, strategy=strategy, promote="internal", require=require) as f:
        for _ in range(steps):
            queue.submit(kernel, shape, now, then)
            now, then = then, now
    return f.report, [b.numpy().copy() for b in first]


def compared(queue, kernel, steps, shape, **flags):
    _, expected = in_turn(queue, kernel, steps, shape, "unfused")
    report, left = in_turn(queue, kernel, steps, shape, **flags)
    for one, other in zip(expected, left, strict=True):
        np.testing.assert_array_equal(other, one)
    return report


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", [with_edges, inside, where_odd])
@pytest.mark.parametrize(
    ("steps", "launches"), [(4, 2), pytest.param(8, 4, marks=pytest.mark.slow)]
)
def test_an_odd_number_of_steps_is_one_launch(queue, kernel, steps, launches, monkeypatch):
    """The last step is a launch of its own, since both buffers have what two steps wrote."""
    monkeypatch.setattr(overlap, "DEPTHS", (3,))
    report = compared(queue, kernel, steps, 1100)
    if kernel is where_odd:  # what a step leaves out is what any step before it may have written
        assert len(report.stages) == steps
        return
    assert len(report.stages) == launches
    assert not any(r.stored for r in report.plan.recomputed)
    assert {r.producer for r in report.plan.recomputed} == set(range(steps - 2)) - {2, 5}


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 4, 5])
def test_any_depth(queue, depth, monkeypatch):
    monkeypatch.setattr(overlap, "DEPTHS", (depth,))
    compared(queue, inside, 7, 1100)


def test_planes(queue, monkeypatch):
    monkeypatch.setattr(overlap, "DEPTHS", (3,))
    report = compared(queue, plane, 5, (40, 40))
    assert {r.producer for r in report.plan.recomputed} == {0, 1}


def test_a_step_that_writes_more(queue):
    def run(strategy):
        a, b, last = (fq.Buffer(np.arange(n)) for n in (1100, 1100, 1))
        with fq.fusion(queue, strategy=strategy) as f:
            for _ in range(4):
                queue.submit(also_the_last, 1100, a, b, last)
                a, b = b, a
        return f.report, [x.numpy().copy() for x in (a, b, last)]

    _, expected = run("unfused")
    report, left = run("overlap")
    for one, other in zip(expected, left, strict=True):
        np.testing.assert_array_equal(other, one)
    assert report.fallback is not None


def test_one_launch_that_is_required(queue):
    """Few work-items are one work-group, which takes any number of steps."""
    report, _ = in_turn(queue, inside, 5, 53, require=True)
    assert len(report.stages) == 1


@pytest.mark.slow
def test_what_one_launch_does_is_compiled_once(queue, monkeypatch):
    monkeypatch.setattr(overlap, "DEPTHS", (3,))
    report = compared(queue, with_edges, 8, 1100)
    kernels = {id(stage.kernel) for stage in report.plan.stages if len(stage.submissions) == 3}
    assert len(kernels) == 1
