"""The choice among candidates, by times that the tests make up."""

from __future__ import annotations

import copy
from typing import get_args

import pytest

from fusionq.base.options import Strategy
from fusionq.execution import samples, trials
from fusionq.execution.contender import Candidate
from fusionq.execution.standing import CANDIDATES, PERSISTENT_LAST
from fusionq.execution.trials import Trials
from tests.unit.execution.trial_runs import OTHERS, begun, run


def test_the_order_is_always_the_same() -> None:
    made = Trials("sequence", OTHERS)
    assert made.awaited == ["megakernel", "fused", "unfused"]
    assert set(CANDIDATES) == set(PERSISTENT_LAST) == set(get_args(Strategy))


def test_each_is_tried_when_it_is_ready_and_the_best_runs_until_then() -> None:
    made = Trials("sequence", OTHERS)
    seconds = {"sequence": 1.0, "fused": 0.5, "unfused": 3.0, "megakernel": 9.0}
    assert made.waits and made.next() == ("sequence", False)
    made.ready("fused")
    assert not made.waits
    ran = []
    while not made.waits:
        name, is_timed = made.next()
        assert is_timed
        ran.append(name)
        made.add(name, seconds[name])
    assert ran == ["sequence", "fused", "sequence"], "one run that is clearly faster is enough"
    assert made.next() == ("fused", False) and made.chosen is None
    made.ready("unfused")
    assert [made.next()[0], made.add("fused", 0.5), made.next()[0]] == ["fused", None, "unfused"]
    made.add("unfused", 3.0)
    assert made.waits and made.contenders["unfused"].state == "slower", "at once"
    made.leave_out("megakernel", "it cannot be built")
    assert made.chosen == "fused"


@pytest.mark.parametrize("fastest", ["sequence", *OTHERS])
def test_the_fastest_is_chosen_and_the_slow_ones_run_once(fastest: Candidate) -> None:
    made = begun(*OTHERS)
    seconds = {name: 1.0 if name == fastest else 2.4 for name in CANDIDATES}
    ran = run(made, seconds)
    assert made.chosen == fastest
    assert made.next() == (fastest, False)
    slow = [name for name in ran[ran.index(fastest) :] if name != fastest]
    assert len(slow) == len(set(slow)), "what is known to be slower by then"
    assert max(map(ran.count, OTHERS)) <= len(OTHERS) * samples.RUNS


def test_only_what_may_win_by_a_little_runs_more_often() -> None:
    for seconds, runs in ((0.95, samples.MOST_RUNS), (0.85, samples.RUNS), (0.7, 1)):
        made = begun("fused")
        ran = run(made, {"sequence": 1.0, "fused": seconds})
        assert ran.count("fused") == runs and made.chosen == "fused"


@pytest.mark.parametrize(("seconds", "runs"), [(0.98, samples.MOST_RUNS), (1.03, samples.RUNS)])
def test_among_those_that_are_about_as_fast_the_best_stays(seconds: float, runs: int) -> None:
    made = begun("fused")
    ran = run(made, {"sequence": 1.0, "fused": seconds})
    assert ran.count("fused") == runs and made.chosen == "sequence"


def test_trials_cost_three_runs_of_what_ran_first_together() -> None:
    """But for the last one, of which nothing was known."""
    made = begun(*OTHERS)
    seconds = {"sequence": 1.0, "megakernel": 3.3, "fused": 1.9, "unfused": 1.9}
    ran = run(made, seconds)
    assert ran == ["sequence", "megakernel", "sequence", "fused"]
    assert made.costs.total == pytest.approx(2.3 + 0.9) and made.costs.is_spent
    assert made.chosen is None and made.next() == ("sequence", False)
    made.costs.taken = 400.0
    assert run(made, seconds) == ["sequence", "unfused"]


def test_what_the_list_has_taken_allows_more() -> None:
    made = begun(*OTHERS)
    made.costs.taken = 2000.0
    ran = run(made, {"sequence": 1.0, "megakernel": 3.3, "fused": 9.0, "unfused": 0.1})
    assert made.chosen == "unfused" and len(ran) == 7


def test_to_prepare_a_run_is_a_part_of_the_cost() -> None:
    made = begun("fused", "unfused")
    made.costs.usual = 1.0
    made.costs.prepared(2.75)
    ran = run(made, {"sequence": 1.0, "fused": 1.2, "unfused": 0.1})
    assert ran == ["sequence", "fused", "sequence", "unfused", "sequence"], "fused has one run"
    assert made.chosen == "unfused"


def test_what_would_cost_too_much_by_the_model_is_not_tried() -> None:
    made = Trials("sequence", OTHERS)
    for name, slowdown in zip(reversed(OTHERS), (1.9, 1.5, 9.0), strict=True):
        made.ready(name, slowdown)  # of which nothing was measured
    assert made.contenders["megakernel"].reason == "9.0 times as long by the cost model"
    made.costs.usual = 1.0
    made.costs.prepared(2.4)
    ran = run(made, {"sequence": 1.0, "fused": 0.1})
    assert "unfused" not in ran and "fused" in ran
    assert made.contenders["unfused"].reason == "trials may not cost more so far"
    assert made.chosen == "fused"


def test_what_is_behind_the_best_by_the_model_is_not_tried() -> None:
    """The best has been measured by then: the others would have to gain much more than the model
    says."""
    made = Trials("sequence", OTHERS)
    for name, slowdown in zip(OTHERS, (0.5, 0.8, None), strict=True):
        made.ready(name, slowdown)
    ran = run(made, {"sequence": 1.0, "megakernel": 0.3, "unfused": 1.4})
    assert made.chosen == "megakernel"
    assert "fused" not in ran and "unfused" in ran, "of which the model says nothing"
    reason = "1.6 times as long as megakernel by the model"
    assert made.contenders["fused"].reason == reason
    made.restart()
    assert made.contenders["fused"].state == "ready", "the best may be another one then"


@pytest.mark.parametrize(("best", "is_tried"), [(0.9, True), (0.7, False)])
def test_what_is_behind_by_the_model_is_tried_where_the_best_disappoints(
    best: float, is_tried: bool
) -> None:
    """That alone says nothing against it: all that joins may be slower than by the model."""
    made = Trials("sequence", OTHERS)
    for name, slowdown in zip(OTHERS, (0.4, 0.8, 4.0), strict=True):
        made.ready(name, slowdown)
    ran = run(made, {"sequence": 1.0, "megakernel": best, "fused": 0.6})
    assert ("fused" in ran) == is_tried
    assert made.chosen == ("fused" if is_tried else "megakernel")


def test_what_is_close_to_the_best_by_the_model_is_tried() -> None:
    made = Trials("sequence", OTHERS)
    for name, slowdown in zip(OTHERS, (0.5, 0.7, 1.4), strict=True):
        made.ready(name, slowdown)
    ran = run(made, {"sequence": 1.0, "megakernel": 0.5, "fused": 0.4})
    assert made.chosen == "fused" and "unfused" not in ran


def test_persistent_kernels_wait_for_a_while_where_others_keep_the_machine_busy() -> None:
    """Until the list has run for longer, a few times; then they are tried there."""
    made = begun("megakernel")
    made.contenders["megakernel"].is_persistent = True
    assert made.next() == ("sequence", True)
    made.add("sequence", 1e-5)
    rest = trials.BUSY_REST
    for _ in range(trials.MOST_BUSY):
        assert made.next(lambda: True) == ("sequence", False)
        for _ in range(100):
            assert made.waits and made.next(lambda: True) == ("sequence", False)
        made.costs.taken += rest
        rest *= 2
        assert made.compares and made.chosen is None
    calm = copy.deepcopy(made)
    assert calm.next(lambda: False) == ("megakernel", True)
    calm.add("megakernel", 1e-6)
    assert run(calm, {"megakernel": 1e-6, "sequence": 1e-5}) and calm.chosen == "megakernel"
    assert made.next(lambda: True) == ("megakernel", True)
    made.add("megakernel", 1e-4)
    run(made, {"megakernel": 1e-4, "sequence": 1e-5})
    assert made.chosen == "sequence"


def test_the_first_run_may_be_cold() -> None:
    made = begun("megakernel", "fused")
    cold = {
        "sequence": [1e-5] * 9, "fused": [samples.COLD_SECONDS, 5e-6, 5e-6], "megakernel": [1.0],
    }  # fmt: skip
    made.costs.taken = 200.0
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        made.add(name, cold[name].pop(0) if cold[name] else 5e-6)
    assert made.chosen == "fused"
    assert made.contenders["megakernel"].state == "slower"
    assert made.contenders["megakernel"].seconds == [1.0], "no first run takes that long"
    assert samples.COLD_SECONDS not in made.contenders["fused"].seconds


@pytest.mark.parametrize(
    ("is_persistent", "took", "chosen"),
    [
        (True, 8e-3, "fused"),
        (True, 1e-3, "fused"),
        (False, 8e-3, "fused"),
        (False, 1e-3, "sequence"),
    ],
)
def test_several_first_runs_may_wait_for_a_core(
    is_persistent: bool, took: float, chosen: Candidate
) -> None:
    """Those of persistent kernels for any time, others as long as systems take a core away."""
    made = begun("fused")
    made.costs.taken = 200.0
    made.contenders["fused"].is_persistent = is_persistent
    disturbed = [took] * samples.COLD_RUNS
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        made.add(name, 7e-5 if name == "sequence" else disturbed.pop() if disturbed else 4e-5)
    assert made.chosen == chosen
    assert len(disturbed) == (0 if chosen == "fused" else 1)


@pytest.mark.parametrize("is_persistent", [True, False])
def test_what_stays_slow_is_dropped(is_persistent: bool) -> None:
    made = begun("fused")
    made.costs.taken = 200.0
    made.contenders["fused"].is_persistent = is_persistent
    ran = run(made, {"sequence": 7e-5, "fused": 8e-3})
    assert made.chosen == "sequence" and ran.count("fused") == samples.COLD_RUNS + 1


def test_a_cold_run_that_costs_too_much_delays_the_next_and_does_not_end_the_trial() -> None:
    made = begun("fused")
    made.costs.taken = 0.1
    cold = {"sequence": [], "fused": [5e-3]}
    seconds = {"sequence": 7e-5, "fused": 4e-5}
    for _ in range(1000):
        if made.chosen is not None:
            break
        name, is_timed = made.next()
        took = cold[name].pop() if cold[name] and is_timed else seconds[name]
        made.costs.taken += took
        if is_timed:
            made.add(name, took)
        elif made.waits:
            made.costs.taken += 0.01
    assert made.chosen == "fused" and made.contenders["fused"].seconds == [4e-5]
    assert 0.4 < made.costs.taken < 0.8, "the cold run was a hundredth of that"


def test_one_sample_is_taken_at_a_time() -> None:
    made = begun("fused")
    seconds = {"fused": 1.0, "sequence": 2.0}
    while made.chosen is None:
        name, runs = made.next()
        assert runs == 1 and made.expects
        assert [made.next() for _ in range(3)] == [(made.best, 0)] * 3
        made.add("unfused", 9.0)
        made.add(name, seconds[name])
        made.add(name, 0.1)
    assert made.chosen == "fused" and made.contenders["fused"].seconds == [1.0]
    assert made.contenders["sequence"].seconds == [2.0, 2.0], "what nobody asked for counts not"
