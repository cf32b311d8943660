"""The choice among candidates where a sample is several runs, which nothing waits for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fusionq.execution import samples, trials
from fusionq.execution.contender import Candidate
from tests.unit.execution.trial_runs import batches, begun, begun_in_batches


def test_short_runs_without_a_wait_are_sampled_many_at_a_time() -> None:
    """After one of each by itself; where the samples differ clearly, one of each decides."""
    made = begun_in_batches("fused")
    ran = batches(made, {"sequence": 1e-4, "fused": 4e-5})
    assert ran == [("sequence", 1), ("fused", 1), ("sequence", 3), ("fused", 3)]
    assert made.chosen == "fused" and made.tried == 8


BESIDE: Mapping[Candidate, float] = {"sequence": 2e-5, "fused": 8e-5}
"""Seconds of a sample that are beside its runs: about as much as those of a run."""


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        (3e-5, "fused"),
        (7e-5, "fused"),
        (9e-5, "sequence"),
        (9.8e-5, "sequence"),
        (1.2e-4, "sequence"),
        (1.3e-4, "sequence"),
    ],
)
def test_what_samples_take_beside_their_runs_does_not_count(
    seconds: float, chosen: Candidate
) -> None:
    """Several runs less one decide: one sample of each, unless what is beside them could be
    why."""
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
    assert runs_of["sequence"] == runs_of["fused"] == [1, samples.SEVERAL]


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


def test_the_best_does_not_lose_its_place_to_one_run_that_was_held_up() -> None:
    """Its first by itself: no run of several takes longer than one by itself."""
    made = begun_in_batches("fused")
    of_best = [1.3e-3]
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
    made = begun("fused")
    assert made.next() == ("sequence", 1) and not made.leads, "where the program waits for each"


def test_long_runs_without_a_wait_are_sampled_one_by_one() -> None:
    made = begun_in_batches("fused")
    took = samples.BY_ITSELF
    ran = batches(made, {"sequence": 2 * took, "fused": took})
    assert ran == [("sequence", 1), ("fused", 1), ("sequence", 1)] and made.chosen == "fused"


def test_what_is_twice_as_slow_by_itself_has_no_sample_of_several_runs() -> None:
    made = begun_in_batches("fused", "unfused")
    made.contenders["fused"].is_persistent = True
    ran = batches(made, {"sequence": 1e-4, "fused": 2.1e-4, "unfused": 9e-5})
    assert ran.count(("fused", 1)) == samples.COLD_RUNS + 1 and ("fused", 3) not in ran
    assert made.chosen == "unfused" and made.contenders["fused"].state == "slower"
    assert made.costs.total == pytest.approx(1.1e-4 * 4)
