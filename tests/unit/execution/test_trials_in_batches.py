"""The choice among candidates where a sample is several runs, which nothing waits for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fusionq.execution import repeated_comparisons, samples, trials
from fusionq.execution.contender import Candidate
from tests.unit.execution.trial_runs import batches, begun, begun_in_batches


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
