"""The choice among candidates, by times that the tests make up."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusionq.base.options import Strategy
from fusionq.cache import learned
from fusionq.cache.serialise import encode
from fusionq.execution import drift, repeated_comparisons, samples, trials
from fusionq.execution.contender import Candidate
from fusionq.execution.trials import CANDIDATES, PERSISTENT_LAST, Trials

OTHERS: tuple[Candidate, ...] = ("megakernel", "fused", "unfused")


def begun(*awaited: Candidate) -> Trials:
    """Trials whose first run was by ``sequence``, when all that was awaited is ready."""
    begun = Trials("sequence", awaited)
    assert begun.next() == ("sequence", False)
    for name in begun.awaited:
        begun.ready(name)
    return begun


def run(made: Trials, seconds: Mapping[str, float], most: int = 200) -> list[Candidate]:
    """The candidates of which samples were taken until there was a choice, each with its time."""
    return [name for name, _ in batches(made, seconds, most)]


def batches(
    made: Trials, seconds: Mapping[str, float], most: int = 200
) -> list[tuple[Candidate, int]]:
    """The same with the numbers of runs."""
    ran: list[tuple[Candidate, int]] = []
    while made.chosen is None and not made.waits:
        name, runs = made.next()
        if made.leads:
            assert (name, runs) == (made.best, 0)
            continue
        assert runs
        ran.append((name, runs))
        made.add(name, seconds[name], runs)
        assert len(ran) < most
    return ran


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


@pytest.mark.parametrize(("model", "chosen"), [(0.7, "megakernel"), (1.2, "sequence")])
def test_a_persistent_kernel_is_compared_once_more_at_the_end(
    model: float, chosen: Candidate
) -> None:
    """Where it was slower than by the model, since something may have disturbed it."""
    made = Trials("sequence", ("megakernel",))
    made.contenders["megakernel"].is_persistent = True
    made.ready("megakernel", model)
    made.costs.taken = 200.0
    unlucky = [1.5]
    while made.chosen is None:
        name, _ = made.next()
        slow = name == "megakernel" and unlucky
        made.add(name, unlucky.pop() if slow else {"sequence": 1.0, "megakernel": 0.7}[name])
    assert made.chosen == chosen


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
    assert made.contenders["unfused"].reason == "trials may not cost more"
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
    made.reopen()
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
    assert made.chosen == "sequence" and ran.count("fused") == samples.COLD_RUNS + 1 + is_persistent


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


# ------------------------------------------------------------------------------- batches
def begun_in_batches(*awaited: Candidate) -> Trials:
    made = begun(*awaited)
    made.costs.taken = 200.0
    made.in_batches = True
    return made


def test_short_runs_without_a_wait_are_sampled_many_at_a_time() -> None:
    """After one of each by itself; where the samples differ clearly, one of each decides."""
    made = begun_in_batches("fused")
    ran = batches(made, {"sequence": 1e-4, "fused": 4e-5})
    assert ran == [("sequence", 1), ("fused", 1), ("sequence", 3), ("fused", 3)]
    assert made.chosen == "fused" and made.tried == 8


def test_short_samples_do_not_decide_by_what_varies_beside_them() -> None:
    """Four times as fast, but two runs of each differ by less than that."""
    made = begun_in_batches("fused")
    ran = batches(made, {"sequence": 3e-5, "fused": 7.5e-6})
    assert ran[-1] == ("fused", samples.MOST_LONG) and made.chosen == "fused"


BESIDE: Mapping[Candidate, float] = {"sequence": 2e-5, "fused": 8e-5}
"""Seconds of a sample that are beside its runs: about as much as those of a run."""


@pytest.mark.parametrize(
    ("seconds", "is_long", "chosen"),
    [
        (3e-5, False, "fused"),
        (7e-5, False, "fused"),
        (9e-5, True, "fused"),
        (9.8e-5, True, "sequence"),
        (1.2e-4, True, "sequence"),
        (1.3e-4, False, "sequence"),
    ],
)
def test_what_samples_take_beside_their_runs_does_not_count(
    seconds: float, is_long: bool, chosen: Candidate
) -> None:
    """Where several runs less one take clearly different times, one sample of each decides, else
    pairs of longer ones."""
    made = begun_in_batches("fused")
    runs_of: dict[Candidate, list[int]] = {"sequence": [], "fused": []}
    while made.chosen is None:
        name, runs = made.next()
        if runs:
            runs_of[name].append(runs)
            took = {"sequence": 1e-4, "fused": seconds}[name]
            made.add(name, took + BESIDE[name] / runs, runs)
    assert made.chosen == chosen
    assert made.contenders["fused"].shortest == pytest.approx(seconds)
    assert runs_of["sequence"] == runs_of["fused"]
    first, second, *longer = runs_of["fused"]
    assert (first, second) == (1, samples.SEVERAL) and len(longer) == is_long * samples.PAIRS
    for long in longer:
        assert second + samples.LONGER <= long <= samples.MOST_LONG
        assert long * seconds > samples.LONG_SECONDS / 2


def test_a_run_by_itself_that_was_held_up_makes_no_other_look_short() -> None:
    """What it took is subtracted; but no more than can be beside runs."""
    alone = 9e-4
    made = samples.among_others(1.2e-4, 3, [alone])
    assert made == pytest.approx(1.2e-4 - samples.BESIDE / 3)
    assert samples.among_others(1.2e-4, 3, [1.6e-4]) == pytest.approx(1e-4)
    assert samples.among_others(1.2e-4, 3, [alone, 1.6e-4]) == pytest.approx(1e-4)
    assert samples.among_others(1.2e-4, 1, [alone]) == 1.2e-4
    assert samples.among_others(1e-7, 8, [alone]) == samples.LEAST_SHARE * 1e-7, "not nothing"


@pytest.mark.parametrize(
    ("seconds", "chosen"), [(2e-4, "fused"), (4.5e-4, None), (7e-4, None), (1e-3, "sequence")]
)
def test_one_run_of_each_decides_where_what_is_beside_it_cannot_be_why(
    seconds: float, chosen: Candidate | None
) -> None:
    made = begun_in_batches("fused")
    for _ in range(trials.LEAD):
        made.next()
    for name, took in (("sequence", 5e-4), ("fused", seconds)):
        assert made.next() == (name, 1)
        made.add(name, took, 1)
    if chosen == "fused":
        assert made.chosen is None and made.next() == ("sequence", 1), "the first may be held up"
        made.add("sequence", 5e-4, 1)
    assert made.chosen == chosen


@pytest.mark.parametrize("late", [(1.3e-3,), (1.2e-4, 5.6e-4 / 4)])
def test_the_best_does_not_lose_its_place_to_one_sample_that_was_held_up(
    late: tuple[float, ...],
) -> None:
    """Neither its first run by itself, nor its first sample of several: no run of those takes
    longer than one by itself."""
    made = begun_in_batches("fused")
    of_best = list(late)
    while made.chosen is None:
        name, runs = made.next()
        if runs:
            took = {"sequence": 6e-5 + 5e-5 / runs, "fused": 1e-4 + 9e-5 / runs}[name]
            made.add(name, of_best.pop(0) if name == "sequence" and of_best else took, runs)
    assert made.chosen == "sequence" and not of_best


def test_what_is_known_of_the_best_holds_for_the_next_comparison() -> None:
    """If another run by itself says so, which may differ by a quarter, or by what varies beside
    it."""
    for again, is_anew in ((1.1e-4, False), (1.4e-4, False), (1.6e-4, True)):
        made = begun_in_batches("fused", "unfused")
        took: dict[Candidate, float] = {"sequence": 1e-4, "fused": 1.9e-4, "unfused": 2.3e-4}
        ran: list[tuple[Candidate, int]] = []
        while made.chosen is None:
            name, n = made.next()
            if n:
                if made.challenger == "unfused":
                    ran.append((name, n))
                    took["sequence"] = again
                made.add(name, took[name], n)
        assert ran[0] == ("sequence", 1) and ran[1][0] == "unfused"
        assert ("sequence" in [name for name, n in ran if n > 1]) == is_anew


@pytest.mark.parametrize(("seconds", "decides"), [(1.95e-4, False), (2.05e-4, True)])
def test_a_run_by_itself_decides_where_it_differs_by_a_tenth_of_a_millisecond(
    seconds: float, decides: bool
) -> None:
    made = begun_in_batches("fused")
    ran = batches(made, {"sequence": 1e-4, "fused": seconds})
    assert made.chosen == "sequence"
    assert all(runs == 1 for _, runs in ran) == decides


def test_long_runs_are_no_longer_samples() -> None:
    made = begun_in_batches("fused")
    took = 2 * samples.BY_ITSELF
    ran = batches(made, {"sequence": took, "fused": 1.01 * took})
    assert made.chosen == "sequence" and {runs for _, runs in ran} == {1}


def test_runs_without_a_wait_are_sampled_behind_others() -> None:
    """Of what comes behind a pause nothing is to be known."""
    made = begun_in_batches("fused", "unfused")
    leads = []
    while made.chosen is None:
        name, runs = made.next()
        leads.append(made.leads)
        made.add(name, {"sequence": 1e-4, "fused": 4e-5, "unfused": 9e-4}[name], runs)
    lead = [True] * trials.LEAD
    assert leads == [*lead, *[False] * 4, *lead, *[False] * 3], "of each comparison"
    assert not made.next()[1] and not made.leads
    made = begun("fused")
    assert made.next() == ("sequence", 1) and not made.leads, "where the program waits for each"


def test_long_runs_without_a_wait_are_sampled_one_by_one() -> None:
    made = begun_in_batches("fused")
    took = samples.BY_ITSELF
    ran = batches(made, {"sequence": 2 * took, "fused": took})
    assert ran == [("sequence", 1), ("fused", 1), ("sequence", 1)] and made.chosen == "fused"


@pytest.mark.parametrize("in_batches", [True, False])
@pytest.mark.parametrize(("took", "chosen"), [(3e-4, "fused"), (4.5e-4, "sequence")])
def test_what_lost_while_both_were_held_up_is_compared_once_more(
    in_batches: bool, took: float, chosen: Candidate
) -> None:
    """The best takes no more than two thirds of that later.  What was much slower all the same is
    not compared again."""
    made = begun("fused", "unfused")
    made.costs.taken, made.in_batches = 200.0, in_batches
    challengers: list[Candidate] = []
    while made.chosen is None:
        name, runs = made.next()
        if not challengers or challengers[-1] != made.challenger:
            assert made.challenger is not None
            challengers.append(made.challenger)
        seconds = {"sequence": 3.4e-4, "fused": took, "unfused": 5e-4}[name]
        if challengers == ["fused"]:
            seconds = {"sequence": 5.7e-4, "fused": 1.95 * took}[name]
        made.add(name, seconds, runs)
    assert made.chosen == chosen
    again: list[Candidate] = ["fused"] if chosen == "fused" else []
    assert challengers == ["fused", "unfused", *again]


@pytest.mark.parametrize("name", ["fused", "unfused"])
def test_what_lost_by_runs_that_contradict_one_by_itself_is_compared_once_more(
    name: Candidate,
) -> None:
    """But not each submission by itself, whose launches the host makes one after the other."""
    made = begun_in_batches(name)
    long: list[int] = []
    while made.chosen is None:
        ran, runs = made.next()
        held_up = ran == name and runs > 1 and not made.contenders[name].is_second
        made.add(ran, 3e-4 if held_up else {"sequence": 1e-4, name: 5e-5}[ran], runs)
        long += [runs] if held_up else []
    assert max(long) > samples.SEVERAL, "all short ones may be disturbed"
    assert made.chosen == ("fused" if name == "fused" else "sequence")


@pytest.mark.parametrize("in_batches", [True, False])
@pytest.mark.parametrize(("then", "later", "chosen", "compared"), [
    (1.1e-3, 1.1e-3, "sequence", 2),
    (1.1e-3, 8e-4, "unfused", 2),
    (9.2e-4, 9.2e-4, "unfused", 1),
])  # fmt: skip
def test_a_win_while_something_holds_up_the_best_is_repeated(
    in_batches: bool, then: float, later: float, chosen: Candidate, compared: int
) -> None:
    """But where the winner takes less than the best ever did."""
    assert _chosen(in_batches, 1.6e-3, then, 1e-3, later) == (chosen, compared)


@pytest.mark.parametrize("in_batches", [True, False])
@pytest.mark.parametrize(("later", "chosen"), [(1.2e-3, "unfused"), (1.7e-3, "sequence")])
def test_what_is_faster_beside_others_each_time_is_chosen(
    in_batches: bool, later: float, chosen: Candidate
) -> None:
    """The machine may be as it is now for long."""
    assert _chosen(in_batches, 1.6e-3, 1.1e-3, 1.6e-3, later) == (chosen, 2)


def _chosen(
    in_batches: bool, best_then: float, then: float, best_later: float, later: float
) -> tuple[Candidate | None, int]:
    """What is chosen between a best that was seen to take 1 ms, and a challenger; and how often
    they are compared: the first time, and later, they take so long."""
    made = begun("fused", "unfused")
    made.costs.taken, made.in_batches = 200.0, in_batches
    rested = 0
    while made.chosen is None:
        name, runs = made.next()
        made.costs.taken += 0.01
        rested += made.waits and not made.expects
        took = {"sequence": 1e-3, "fused": 1.6e-3, "unfused": later}
        if made.challenger == "unfused":
            took["sequence"] = best_later
            if made.contenders["unfused"].win == "none":
                took |= {"sequence": best_then, "unfused": then}
        if runs:
            made.add(name, took[name], runs)
    is_repeated = made.contenders["unfused"].win == "repeated"
    assert is_repeated == (rested >= 100 * repeated_comparisons.REST - 1)
    return made.chosen, 1 + is_repeated


def test_a_run_by_itself_that_was_held_up_makes_no_win_unproven() -> None:
    """What samples of several take less than that says that the best took little."""
    made = begun_in_batches("fused")
    while made.chosen is None:
        name, runs = made.next()
        made.costs.taken += 0.01
        if runs:
            alone = {"sequence": 1.9e-4, "fused": 1.2e-4}[name]
            made.add(name, alone if runs == 1 else {"sequence": 1e-4, "fused": 8.2e-5}[name], runs)
    assert made.chosen == "fused" and made.contenders["fused"].win == "none"


def test_what_lost_its_place_while_both_were_held_up_is_compared_once_more() -> None:
    """As what won takes far less by itself than it did then."""
    made = begun("fused", "unfused")
    made.costs.taken = 200.0
    pairs: list[tuple[Candidate, Candidate | None]] = []
    while made.chosen is None:
        if not pairs or pairs[-1] != (made.best, made.challenger):
            pairs.append((made.best, made.challenger))
        name, runs = made.next()
        took = {"sequence": 9e-4, "fused": 1e-3, "unfused": 1.5e-3}[name]
        if len(pairs) == 1:
            took = {"sequence": 2e-3, "fused": 1.8e-3}[name]
        made.add(name, took, runs)
    assert pairs == [("sequence", "fused"), ("fused", "unfused"), ("fused", "sequence")]
    assert made.chosen == "sequence"


def test_what_is_twice_as_slow_by_itself_has_no_sample_of_several_runs() -> None:
    made = begun_in_batches("fused", "unfused")
    made.contenders["fused"].is_persistent = True
    ran = batches(made, {"sequence": 1e-4, "fused": 2.1e-4, "unfused": 9e-5})
    assert ran.count(("fused", 1)) == samples.COLD_RUNS + 2 and ("fused", 3) not in ran
    assert made.chosen == "unfused" and made.contenders["fused"].state == "slower"
    assert 1.1e-4 * 4 < made.costs.total < 8e-4


@pytest.mark.parametrize("disturbed", ["sequence", "fused"])
def test_runs_that_contradict_one_by_itself_do_not_count(disturbed: Candidate) -> None:
    made = begun_in_batches("fused")
    left = samples.MOST_DISTURBED
    while made.chosen is None:
        name, runs = made.next()
        seconds = {"sequence": 1e-4, "fused": 7e-5}[name]
        if runs > 1 and name == disturbed and left:
            left -= 1
            seconds = 3e-3
        made.add(name, seconds, runs)
    assert made.chosen == "fused" and not left
    assert max(made.contenders["fused"].seconds) == 7e-5


@pytest.mark.parametrize("first", [[4e-3], [4e-3, 5e-3]])
def test_the_best_does_not_lose_its_place_to_a_first_run_that_was_held_up(
    first: list[float],
) -> None:
    """By which a sample would be one run; nor is another one compared that was held up, too."""
    made = begun_in_batches("fused")
    held_up = {"sequence": first[:1], "fused": first[1:]}
    ran = []
    while made.chosen is None:
        name, runs = made.next()
        ran.append((name, runs))
        took = {"sequence": 1e-4, "fused": 1.6e-4}[name]
        made.add(name, held_up[name].pop() if held_up[name] else took, runs)
    assert made.chosen == "sequence" and ran[-1] == ("fused", 3)
    assert made.contenders["fused"].seconds == [pytest.approx(1.6e-4)]


def test_the_best_does_not_lose_its_place_to_what_disturbs_it() -> None:
    made = begun_in_batches("fused", "unfused")
    left = [9e-3] * samples.MOST_DISTURBED
    while made.chosen is None:
        name, runs = made.next()
        took = {"sequence": 1e-4, "fused": 7e-5, "unfused": 9e-5}[name]
        is_late = name == "fused" and made.challenger == "unfused" and left
        made.add(name, left.pop() if is_late else took, runs)
    assert made.chosen == "fused" and not left


@pytest.mark.parametrize("name", ["sequence", "fused"])
def test_a_sample_is_disturbed_by_others_of_its_kind(name: Candidate) -> None:
    """However short: on GPUs, whose events tell what runs take, one by itself takes no longer than
    one among others."""
    made = begun("fused", "unfused")
    contender = made.contenders[name]
    contender.fastest, contender.fastest_alone = 1e-5, 3e-5
    assert samples.is_disturbed(contender, 2.1e-5, 4) and contender.disturbed == 1
    assert not samples.is_disturbed(contender, 1.9e-5, 4)
    assert not samples.is_disturbed(contender, 5.9e-5, 1), "by itself"
    assert samples.is_disturbed(contender, 6.1e-5, 1) and contender.disturbed == 2
    assert not samples.is_disturbed(contender, 9.0, 1), "so often, and no more"


def test_short_runs_that_are_waited_for_may_be_disturbed() -> None:
    """The best is not dropped for three times what it took before, though that is 20 µs."""
    made = begun("fused", "unfused")
    late = [3.5e-5] * samples.MOST_DISTURBED
    while made.chosen is None:
        name, _ = made.next()
        took = {"sequence": 2e-5, "fused": 1e-5, "unfused": 1.5e-5}[name]
        is_late = name == "fused" and made.challenger == "unfused" and late
        made.add(name, late.pop() if is_late else took)
    assert made.chosen == "fused" and not late
    assert made.contenders["fused"].seconds == [1e-5]


def test_what_takes_longer_among_others_is_disturbed_no_more() -> None:
    """Such as launches without a plan, which the host makes one after the other: the samples that
    contradict one by itself come once, and longer ones not again."""
    made = Trials("unfused", ("fused",))
    made.ready("fused")
    made.costs.taken, made.in_batches = 200.0, True
    ran: list[int] = []
    while made.chosen is None:
        name, runs = made.next()
        if runs and name == "unfused":
            ran.append(runs)
        if runs:
            took = {"unfused": 6e-5 if runs == 1 else 1e-4, "fused": 9e-5}[name]
            made.add(name, took, runs)
    assert made.contenders["unfused"].timed == len(ran)
    assert ran[0] == 1 and ran[-1] > ran[1] and len(ran) == 4 + samples.MOST_DISTURBED


def test_what_is_slow_each_time_among_others_is_dropped() -> None:
    """Though it is as fast by itself, so that it is compared once more."""
    made = begun_in_batches("fused")
    while made.chosen is None:
        name, runs = made.next()
        made.add(name, 3e-3 if runs > 1 and name == "fused" else 1e-4, runs)
    assert made.chosen == "sequence"
    alone = several = longer = 1
    once = alone + several + longer
    assert made.contenders["fused"].timed == once + samples.MOST_DISTURBED + once


def test_times_in_another_rhythm_are_not_compared() -> None:
    made = begun("fused")
    made.costs.taken = 200.0
    assert made.next() == ("sequence", 1)
    made.add("sequence", 9e-5)
    made.in_batches = True
    assert batches(made, {"sequence": 1e-4, "fused": 7e-5})[0] == ("sequence", 1)
    assert made.chosen == "fused"
    made.in_batches = False
    assert made.chosen == "fused" and made.contenders["fused"].seconds, "what was chosen stays so"


def test_a_result_that_never_comes_is_left_out() -> None:
    made = begun("fused")
    for _ in range(20 * trials.MOST_AWAITED):
        if made.chosen is not None:
            break
        made.next()
    assert made.chosen == "sequence", "nothing speaks for the other"


def test_the_shortest_of_its_runs_counts() -> None:
    made = begun("fused")
    made.costs.taken = 1e9
    disturbed = iter([1.2, 1.0, 9.0] + [1.0] * 9)
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        made.add(name, 1.1 if name == "sequence" else next(disturbed))
    assert made.chosen == "fused"


def test_what_cannot_be_timed_is_not_chosen() -> None:
    made = begun("fused")
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        if name == "sequence":
            made.add(name, 1.0)
        else:
            made.missed(name)
    assert made.chosen == "sequence"
    assert made.contenders["fused"].misses == trials.MOST_MISSES


@pytest.mark.parametrize(
    "slowdown, chosen", [(0.5, "fused"), (1.9, "sequence"), (None, "sequence")]
)
def test_without_times_the_model_chooses(slowdown: float | None, chosen: Candidate) -> None:
    made = Trials("sequence", ["fused"])
    made.ready("fused", slowdown)
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        made.missed(name)
    assert made.chosen == chosen and made.runs <= 2 * trials.MOST_MISSES


def test_what_is_left_out_does_not_run() -> None:
    made = begun("megakernel", "fused")
    made.leave_out("megakernel", "it stalled")
    assert "megakernel" not in run(made, {"sequence": 2.0, "fused": 1.0})
    made.leave_out("fused", "no memory")
    assert made.chosen == "sequence"
    made.leave_out("sequence", "no memory either")
    assert made.is_over and made.present == "sequence", "somebody has to say why nothing runs"


def test_a_chosen_candidate_that_is_gone_is_awaited() -> None:
    made = begun("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    made.await_again("fused")
    assert made.next() == ("sequence", False)
    made.ready("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    assert made.chosen == "fused"


def test_what_is_there_before_the_first_is_the_best_until_then() -> None:
    made = Trials("unfused", ["fused"])
    made.await_again("unfused")
    assert made.waits and made.awaited == ["unfused", "fused"]
    made.ready("fused")
    assert made.best == "fused" and made.waits
    made.ready("unfused")
    run(made, {"unfused": 2.0, "fused": 1.0})
    assert made.chosen == "fused"


# --------------------------------------------------------------------------------- drift
def test_times_that_stay_do_not_reopen() -> None:
    made = begun("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    for k in range(100):
        made.sample([1.0, 1.3, 0.8, 40.0][k % 4])
    assert made.chosen == "fused" and made.reopened == 0


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_times_that_drift_reopen_and_ever_more_rarely(factor: float) -> None:
    made = begun("fused")
    seconds = 1.0
    samples = []
    for _ in range(3):
        run(made, {"sequence": 1.2 * seconds, "fused": seconds})
        assert made.chosen == "fused"
        seconds *= factor
        count = 0
        while made.chosen is not None:
            made.sample(seconds)
            count += 1
        samples.append(count)
    assert samples == [drift.DRIFTED, 2 * drift.DRIFTED, 4 * drift.DRIFTED]


def test_a_first_run_that_decided_is_no_measure_of_later_ones() -> None:
    made = begun("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    assert made.chosen == "fused" and made.contenders["fused"].timed == 1
    for _ in range(20):
        made.sample(0.5)
    assert made.chosen == "fused" and made.contenders["fused"].seconds == [0.5]
    for _ in range(drift.DRIFTED):
        made.sample(1.0)
    assert made.chosen is None


def test_what_a_challenger_takes_is_added_up_over_its_runs() -> None:
    """A first run that takes longer is outweighed by others that do not; one that is slower on the
    whole costs that, whatever came before."""
    made = begun("fused", "unfused")
    made.costs.usual = 1.0
    took = {"sequence": [1.0] * 3, "fused": [1.05, 0.9, 0.9, 0.9], "unfused": [1.3, 1.3]}
    while made.chosen is None:
        name, _ = made.next()
        made.add(name, took[name].pop(0) if took[name] else 0.9)
    assert made.chosen == "fused" and made.costs.total == pytest.approx(0.4)


@pytest.mark.parametrize(("unplanned", "might"), [(0.0, False), (0.5, True)])
def test_what_the_host_takes_without_a_plan_is_no_reason_against_unfused(
    unplanned: float, might: bool
) -> None:
    made = Trials("unfused", ["fused"])
    made.unplanned = unplanned
    made.ready("fused")
    run(made, {"unfused": 1.6, "fused": 1.0})
    assert made.chosen == "fused" and made.might_stay_unfused == might


def test_to_wait_for_samples_is_a_part_of_the_cost() -> None:
    made = begun_in_batches("fused")
    while made.chosen is None:
        name, runs = made.next()
        made.add(name, {"sequence": 1e-4, "fused": 5e-5}[name] + 3e-5 / max(runs, 1), runs)
    assert made.chosen == "fused" and made.costs.total == pytest.approx(4 * 3e-5)


def test_a_short_run_by_itself_takes_longer_and_is_no_drift() -> None:
    made = begun_in_batches("fused")
    run(made, {"sequence": 4e-5, "fused": 3e-5})
    for _ in range(20):
        made.sample(3e-5 + drift.ALONE)
    assert made.chosen == "fused"
    for _ in range(drift.DRIFTED):
        made.sample(5e-5 + drift.ALONE)
    assert made.chosen is None


def test_what_a_run_by_itself_took_is_no_drift() -> None:
    """Such as of persistent kernels, whose workers wait for each other: 180 µs, 65 among others."""
    made = begun_in_batches("fused")
    while made.chosen is None:
        name, runs = made.next()
        took = {"sequence": 1.5e-4, "fused": 6.5e-5}[name]
        made.add(name, took + 1.15e-4 / max(runs, 1), runs)
    assert made.chosen == "fused"
    assert made.contenders["fused"].shortest == pytest.approx(6.5e-5)
    for seconds, is_chosen in ((1.8e-4, True), (2.6e-4, True), (2.8e-4, False)):
        for _ in range(drift.DRIFTED):
            made.sample(seconds)
        assert (made.chosen is not None) == is_chosen


def test_after_a_drift_what_was_slower_may_win() -> None:
    made = begun("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    while made.chosen is not None:
        made.sample(9.0)
    run(made, {"sequence": 2.0, "fused": 9.0})
    assert made.chosen == "sequence"


# ------------------------------------------------------------------------------- records
def test_a_choice_is_kept() -> None:
    made = begun(*OTHERS)
    made.leave_out("megakernel", "it stalled")
    run(made, {"sequence": 2.0, "unfused": 3.0, "fused": 1.0})
    kept = made.learned("a ×2", 1000, "a device")
    again = Trials.of(learned._read(json.dumps(encode(kept)).encode()))  # type: ignore[arg-type]
    assert again.next() == ("fused", False)
    assert set(again.contenders["fused"].seconds) == {1.0}
    assert again.contenders["megakernel"].reason == "it stalled"
    assert again.learned("a ×2", 1000, "a device") == kept


def test_times_without_a_choice_are_not_compared_with_others() -> None:
    made = begun("fused")
    assert made.next() == ("sequence", True)
    made.add("sequence", 1.0)
    assert made.contenders["sequence"].seconds
    again = Trials.of(made.learned("a", 1, "d"))
    assert again.chosen is None and not again.contenders["sequence"].seconds


@pytest.mark.parametrize(
    "damage",
    [
        {"chosen": "fused"},
        {"first": "fused"},
        {"reopened": -1},
        {"candidates": (learned.LearnedCandidate("sequence", "ready", "", (float("nan"),)),)},
        {"candidates": (learned.LearnedCandidate("sequence", "ready", "", (-1.0,)),)},
        {"candidates": (learned.LearnedCandidate("sequence", "ready", "", ()),) * 2},
        {"chosen": "sequence", "candidates": (
            learned.LearnedCandidate("sequence", "left out", "", ()),
        )},
    ],
)  # fmt: skip
def test_records_that_cannot_be_are_none(damage: dict[str, object]) -> None:
    right = {
        "kernels": "a", "work_items": 1, "device": "d", "first": "sequence", "chosen": None,
        "runs": 1, "reopened": 0,
        "candidates": (learned.LearnedCandidate("sequence", "ready", "", ()),),
    }  # fmt: skip
    assert learned._read(_written(right)) is not None
    assert learned._read(_written({**right, **damage})) is None
    assert learned._read(b"[]") is None


def _written(fields: Mapping[str, object]) -> bytes:
    return json.dumps(encode(learned.Learned(**fields))).encode()  # type: ignore[arg-type]


# ------------------------------------------------------------------------ anything goes
@given(st.data())
def test_whatever_happens_something_runs_and_a_choice_is_made(data: st.DataObject) -> None:
    awaited = data.draw(st.lists(st.sampled_from(OTHERS), unique=True))
    made = Trials("sequence", awaited)
    event = st.sampled_from(["next", "next", "next", "add", "missed", "ready", "left", "sample"])
    outstanding: list[Candidate] = []
    for what in data.draw(st.lists(event, max_size=60)):
        name = data.draw(st.sampled_from(["sequence", *awaited]))
        if what == "next":
            runs, is_timed = made.next()
            assert made.contenders[runs].state != "awaited"
            if is_timed:
                outstanding.append(runs)
                assert made.contenders[runs].state == "ready"
            assert made.contenders[runs].state != "left out"
        elif what in ("add", "missed") and outstanding:
            name = outstanding.pop()
            seconds = data.draw(st.floats(1e-6, 10))
            made.add(name, seconds) if what == "add" else made.missed(name)
        elif what == "ready":
            made.ready(name)
        elif what == "left" and name != "sequence":
            made.leave_out(name, "of no use")
        elif what == "sample":
            made.sample(data.draw(st.floats(1e-6, 10)))
    for name in awaited:
        made.ready(name)
    for name in outstanding:
        made.add(name, 1.0)
    made.costs.taken = 1e9
    for _ in range(len(CANDIDATES)):
        run(made, dict.fromkeys(CANDIDATES, 1.0))
        made.costs.taken += repeated_comparisons.REST
    chosen = made.chosen
    assert chosen is not None and made.contenders[chosen].state == "ready"


@pytest.mark.parametrize("first", range(10))
def test_a_persistent_kernel_whose_workers_are_held_up_beside_others_does_not_win(
    first: int,
) -> None:
    """By its shortest run it would: every third one takes half of what the best does."""
    made = begun("megakernel")
    megakernel = made.contenders["megakernel"]
    megakernel.is_persistent, made.costs.taken = True, 1e3
    took, turns = (8e-3, 2e-2, 3.5e-4, 1.2e-2, 5e-3, 6e-3, 4e-4, 9e-3, 4e-3, 3.6e-4), first
    while made.chosen is None:
        name, is_timed = made.next(lambda: True)
        if not is_timed:
            made.costs.taken += 1
            continue
        made.add(name, 7e-4 if name == "sequence" else took[turns % len(took)])
        turns += name != "sequence"
        assert turns - first < 30
    assert made.chosen == "sequence"
    assert megakernel.timed <= trials.BUSY_RUNS + 4, "once more at the end included"


def test_a_persistent_kernel_that_is_not_held_up_wins_beside_others() -> None:
    made = begun("megakernel")
    made.contenders["megakernel"].is_persistent, made.costs.taken = True, 1e3
    held_up = [9e-3, 9e-3]
    while made.chosen is None:
        name, is_timed = made.next(lambda: True)
        if not is_timed:
            made.costs.taken += 1
        elif name == "sequence":
            made.add(name, 7e-4)
        else:
            made.add(name, held_up.pop() if held_up else 3.5e-4)
    assert made.chosen == "megakernel"


def test_a_persistent_kernel_that_is_held_up_later_loses_its_place() -> None:
    """Other processes came: most of its runs take far longer, though not one after the other."""
    made = begun("megakernel", "fused")
    made.contenders["megakernel"].is_persistent, made.costs.taken = True, 1e3
    quiet = {"sequence": 7e-4, "megakernel": 3e-4, "fused": 6e-4}
    run(made, quiet)
    assert made.chosen == "megakernel"
    for _ in range(50):
        made.sample(3.1e-4)
    assert made.chosen == "megakernel", "nothing has changed"
    held_up, turns = (8e-3, 3e-4, 1e-2, 2e-2, 3.2e-4), 0
    while made.chosen is not None:
        made.sample(held_up[turns % 5])
        turns += 1
        assert turns < 20
    while made.chosen is None:
        name, is_timed = made.next()
        if not is_timed:
            made.costs.taken += 1
            continue
        made.add(name, held_up[turns % 5] if name == "megakernel" else quiet[name])
        turns += name == "megakernel"
        assert turns < 40
    assert made.chosen == "fused"
