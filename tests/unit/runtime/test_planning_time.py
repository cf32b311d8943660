"""Planning that takes too long: the list runs unfused, and its next run goes on planning."""

from __future__ import annotations

import time
from collections import OrderedDict

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import device_costs, planning_time, reporting
from fusionq.execution.planning_time import (
    UNFINISHED,
    UNFUSED_RUNS,
    UnfinishedPlans,
    seconds_allowed,
)
from fusionq.planning import planner
from tests.unit.lists import submissions
from tests.unit.runtime.conftest import empty, floats
from tests.unit.runtime.kernels import add, copy, increment, scale, shift
from tests.unit.targets import REFERENCE

STOPPED = "planning is not done after"


@pytest.fixture(autouse=True)
def steps(monkeypatch):
    """A clock that a step of planning a list that is to be fused moves on by one second; planning
    may take a little more than three and a half.  Counts the steps."""
    PLANS.clear()
    UNFINISHED.clear()
    taken = [0]
    original = planner._plan_steps

    def counted(*arguments):
        inner = original(*arguments)
        while True:
            try:
                phase = next(inner)
            except StopIteration as end:
                return end.value
            taken[0] += arguments[0].options.strategy != "unfused"
            yield phase

    monkeypatch.setattr(planner, "_plan_steps", counted)
    monkeypatch.setattr(planning_time, "clock", lambda: float(taken[0]))
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "3.5")
    yield taken
    UNFINISHED.clear()


def chain(queue, a, tmp, out, strategy="fused", **options):
    with fq.fusion(queue, strategy=strategy, **options) as f:
        queue.submit(copy, 8, a, tmp)
        queue.submit(add, 8, tmp, a, tmp)
        queue.submit(add, 8, tmp, a, out)
    return f


def test_the_list_runs_unfused_until_there_is_a_plan(queue, steps):
    a, tmp, out = floats(), empty(), empty()
    strategies = []
    for _ in range(5):
        before = steps[0]
        f = chain(queue, a, tmp, out)
        assert steps[0] - before <= 4
        assert np.array_equal(out.numpy(), a.numpy() * 3)
        strategies.append(f.report.strategy)
        if strategies[-1] == "unfused":
            assert STOPPED in f.report.fallback
            assert STOPPED in str(f.report)
            assert f.report.cache == "miss"
            assert f.report.timings["analysis"] > 0
            assert len(f.report.dependences) > 0
        else:
            assert f.report.fallback is None
        out.write(np.zeros(8, np.float32))
    assert strategies[0] == "unfused" and strategies[-1] == "fused"
    assert strategies == sorted(strategies, reverse=True)
    total = steps[0]
    chain(queue, a, tmp, out)
    assert steps[0] == total  # the plan is kept


def test_by_auto_the_next_lists_wait_for_a_few_times_their_run(queue, steps, monkeypatch):
    """Where a step takes as long as three lists, one list in three goes on by a step."""
    a, tmp, out = floats(), empty(), empty()
    monkeypatch.setattr(planning_time, "unfused_seconds", lambda *_: 1 / 3 / UNFUSED_RUNS)
    taken, strategy = [], "unfused"
    while strategy == "unfused" and len(taken) < 99:
        before = steps[0]
        f = chain(queue, a, tmp, out, strategy="auto")
        assert np.array_equal(out.numpy(), a.numpy() * 3)
        out.write(np.zeros(8, np.float32))
        taken.append(steps[0] - before)
        strategy = f.report.strategy
    assert strategy == "fused"
    assert taken[0] == 4 and len(taken) > 6
    assert all(sum(taken[k : k + 3]) <= 1 for k in range(1, len(taken) - 3))
    assert sum(taken[1:]) >= (len(taken) - 1) // 3


def test_lists_that_are_to_run_unfused_wait_for_no_dependences(queue, monkeypatch):
    """Their launches need none; the report finds them when it is asked for."""
    compared = []
    original = planner.direct_dependences

    def counted(questions, *others):
        compared.append(len(questions.submissions))
        return original(questions, *others)

    monkeypatch.setattr(planner, "direct_dependences", counted)
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "0")
    monkeypatch.setattr(reporting, "_analysed_before", OrderedDict())
    a, tmp, out = floats(), empty(), empty()
    f = chain(queue, a, tmp, out, strategy="unfused")
    f.replay()
    again = chain(queue, a, tmp, out, strategy="unfused")
    assert np.array_equal(out.numpy(), a.numpy() * 3)
    assert 3 not in compared
    assert f.report.fallback is None and f.report.cache == "miss"
    assert again.report.cache == "memory"
    for report in (f.report, again.report):
        found = [(d.producer, d.consumer, d.kind, d.buffer) for d in report.dependences]
        assert (0, 1, "RAW", "tmp") in found and (1, 2, "RAW", "tmp") in found
    assert compared.count(3) == 1


def test_events_of_a_list_that_is_not_planned_are_those_of_its_submissions(queue):
    a, tmp, out = floats(), empty(), empty()
    with fq.fusion(queue) as f:
        first = queue.submit(copy, 8, a, tmp)
        second = queue.submit(add, 8, tmp, a, out)
    for event in (first, second, f.event):
        event.wait()
    assert np.array_equal(out.numpy(), a.numpy() * 2)


def test_a_replay_goes_on_planning_too(queue):
    a, tmp, out = floats(), empty(), empty()
    f = chain(queue, a, tmp, out)
    assert f.report.strategy == "unfused"
    for _ in range(5):
        out.write(np.zeros(8, np.float32))
        f.replay().wait()
        assert np.array_equal(out.numpy(), a.numpy() * 3)
    assert f.report.strategy == "fused"


def test_a_replay_with_another_scalar_that_is_not_planned(queue):
    a, tmp, out = floats(), empty(), empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, a, tmp)
        queue.submit(scale, 8, tmp, np.float32(2.0), out)
    f.replay(factor=np.float32(5.0)).wait()
    assert np.array_equal(out.numpy(), a.numpy() * 5)


def test_measuring_the_device_is_no_planning(queue, steps, monkeypatch):
    measured = []

    def measuring(backend):
        if not measured:
            time.sleep(0.02)
        measured.append(backend)
        steps[0] += 1000
        return backend.target

    monkeypatch.setattr(device_costs, "measured_target", measuring)
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "500")
    a, middle, out = floats(), empty(), empty()
    with fq.fusion(queue) as f:
        for _ in range(4):
            queue.submit(shift, 8, a, 1, middle)
            queue.submit(shift, 8, middle, 1, out)
    assert measured and steps[0] > 1000
    assert STOPPED not in str(f.report)
    assert f.report.timings["measuring the device"] > 0.02
    assert " · measuring the device " in str(f.report)


def test_require_tells_it(queue):
    a, tmp, out = floats(), empty(), empty()
    refused = 0
    for _ in range(8):
        out.write(np.zeros(8, np.float32))
        try:
            f = chain(queue, a, tmp, out, require=True)
        except fq.FusionRefused as error:
            assert STOPPED in str(error) and "require=True" in str(error)
            refused += 1
        else:
            assert f.report.strategy == "fused"
            break
        finally:
            assert np.array_equal(out.numpy(), a.numpy() * 3)
    assert 0 < refused < 8


def test_a_plan_that_was_begun_for_another_scalar_is_not_taken(queue):
    """What is asked for when there is a plan at last is another distance, for which it is wrong."""
    a, out = floats(64), empty(64)
    for distance in (8, 8, 8, 16, 16, 16, 16, 16):
        tmp = empty(64)
        tmp.write(np.zeros(64, np.float32))
        out.write(np.zeros(64, np.float32))
        with fq.fusion(queue, strategy="fused") as f:
            queue.submit(increment, 64, tmp)
            queue.submit(shift, 64, tmp, distance, out)
            queue.submit(add, 64, out, a, out)
        wanted = a.numpy().copy()
        wanted[: 64 - distance] += 1
        assert np.array_equal(out.numpy(), wanted)
    assert f.report.strategy != "unfused"


def test_events_stay_those_of_the_run_that_they_are_of(sycl_queue):
    queue = sycl_queue
    a, tmp, out = floats(), empty(), empty()
    with fq.fusion(queue, strategy="fused") as f:
        events = [queue.submit(add, 8, a, a, tmp), queue.submit(add, 8, tmp, a, out)]
    assert f.report.strategy == "unfused"
    before = [event.native for event in events]
    while f.report.strategy == "unfused":
        f.replay()
    assert f.report.strategy == "fused", "one stage, where two events are"
    assert [event.native for event in events] == before
    assert before[0] is not before[1]


def test_a_list_to_be_tuned_waits_for_its_plan(queue, monkeypatch):
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "0")
    f = chain(queue, floats(), empty(), empty(), strategy="auto", tune=True)
    assert f.report.fallback is None


def test_one_submission_waits_for_its_plan(queue, monkeypatch):
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "0")
    out = empty()
    with fq.fusion(queue) as f:
        queue.submit(copy, 8, floats(), out)
    assert f.report.fallback is None


def test_the_least_recent_are_forgotten(queue, monkeypatch):
    small = UnfinishedPlans(capacity=1)
    monkeypatch.setattr("fusionq.execution.compile.UNFINISHED", small)
    a, tmp, out = floats(), empty(), empty()
    for _ in range(4):
        for strategy in ("auto", "fused"):
            assert chain(queue, a, tmp, out, strategy=strategy).report.strategy == "unfused"
    assert len(small._stopped) == 1


def test_what_a_list_takes_unfused_allows_more(monkeypatch):
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "1")
    costs = REFERENCE.costs
    small, large = np.zeros(8, np.float32), np.zeros(1 << 26, np.float32)
    few = submissions(*[(copy, 8, small, small)] * 10)
    assert seconds_allowed(few, costs) == pytest.approx(1 + 20 * costs.launch_seconds)
    much = submissions((copy, 1 << 26, large, large))
    moved = 2 * large.nbytes / costs.memory_bandwidth
    assert seconds_allowed(much, costs) == pytest.approx(1 + 2 * moved)
    part = submissions((copy, 8, large, large))
    assert seconds_allowed(part, costs) == pytest.approx(1 + 2 * costs.launch_seconds)
    later = seconds_allowed(part, costs, goes_on=True)
    assert later == pytest.approx(2 * costs.launch_seconds)
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "inf")
    assert seconds_allowed(part, costs, goes_on=True) == np.inf


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
def test_a_bad_number_of_seconds_is_told(queue, monkeypatch, text):
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", text)
    a, tmp, out = floats(), empty(), empty()
    with pytest.raises(fq.ArgumentError, match=f"FUSIONQ_PLANNING_SECONDS='{text}' is no number"):
        chain(queue, a, tmp, out)
    assert np.array_equal(out.numpy(), a.numpy() * 3)
