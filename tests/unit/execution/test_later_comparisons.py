"""What was chosen is compared once more, later in a list's life, by times that tests make up."""

from __future__ import annotations

from random import Random

import pytest

from fusionq.cache.learned import LearnedCandidate
from fusionq.execution import later_comparisons
from fusionq.execution.contender import Candidate
from fusionq.execution.learned_trials import learned_of, trials_of
from fusionq.execution.paired_comparison import (
    FEWEST,
    LONG,
    MOST_MISSES,
    MOST_RUNS,
    PairedComparison,
    sample_runs,
)
from fusionq.execution.trials import Trials
from tests.unit.execution.noisy_lists import NOISES, NoisyList, drawn, learn
from tests.unit.execution.trial_runs import begun, begun_in_batches, compared_again, run


def looked(made: PairedComparison, chosen: list[float], other: list[float]) -> str:
    """The verdict by such samples in turn, and a first one that tells nothing."""
    assert made.next() == (made.other, 1)
    made.add(made.other, 1.0, 1, 1e-3)
    for own, others in zip(chosen, other, strict=True):
        for name, seconds in ((made.chosen, own), (made.other, others)):
            if made.verdict == "open":
                assert made.next() == (name, made.runs)
                made.add(name, seconds, made.runs, 1e-3)
    return made.verdict


@pytest.mark.parametrize(
    ("chosen", "other", "verdict"),
    [
        ([1.0] * 5, [0.9] * 5, "won"),
        ([1.0] * 5, [0.9, 9.0, 0.9, 0.9, 0.9], "won"),
        ([1.0, 9.0, 1.0, 1.0, 1.0], [1.05] * 5, "lost"),
        ([1.0, 2.0, 2.0, 1.5, 1.0], [0.9, 1.8, 1.8, 1.4, 0.9], "won"),
        ([1.0] * 9, [0.99] * 9, "lost"),
        ([1.0] * 5, [0.9, 0.9, 1.1, 1.1, 1.1], "lost"),
        ([1.0] * 8, [0.9, 1.1, 0.9, 1.1, 0.9, 0.9, 0.9, 0.9], "won"),
        ([1.0] * 4, [1.1] * 4, "lost"),
        ([1.0] * 2, [1.3] * 2, "behind"),
        ([1.0] * 4, [1.2, 1.3, 1.3, 1.3], "behind"),
    ],
)
def test_the_pairs_decide(chosen: list[float], other: list[float], verdict: str) -> None:
    made = PairedComparison("unfused", "fused", 8)
    assert looked(made, chosen, other) == verdict
    assert len(made.quotients) == len(chosen), "and no sooner"


def test_what_is_held_up_most_of_the_time_loses_to_what_is_not() -> None:
    """Though two of its pairs of five are won, and its shortest is the shortest of all."""
    held_up = [8e-3, 3e-4, 1e-2, 2e-2, 3.2e-4]
    assert looked(PairedComparison("fused", "megakernel", 1), held_up, [6e-4] * 5) == "won"
    assert looked(PairedComparison("megakernel", "fused", 1), [6e-4] * 5, held_up[::-1]) == "lost"
    others = [9e-3, 1e-3, 9e-3, 1e-3, 9e-3]
    both = looked(PairedComparison("fused", "megakernel", 1), held_up, others)
    assert both == "lost", "others hold up both"


def test_a_look_without_times_ends() -> None:
    made = PairedComparison("unfused", "fused", 1)
    for _ in range(MOST_MISSES):
        assert made.verdict == "open"
        made.missed()
    assert made.verdict == "unknown" and made.behind == float("inf")


def test_samples_are_long_where_nobody_waits() -> None:
    """What is beside their runs is a few hundredths of them."""
    assert sample_runs(1e-4, False) == 1
    assert sample_runs(1e-4, True) == pytest.approx(LONG / 1e-4, abs=1)
    assert sample_runs(1e-6, True) == MOST_RUNS and sample_runs(1.0, True) == 3


def test_samples_become_longer_where_a_run_takes_less_than_was_known() -> None:
    made = PairedComparison("unfused", "fused", 3)
    made.add("unfused", 1.0, 1, 1e-3)
    for name, runs in (("fused", 3), ("unfused", 3), ("fused", 8), ("unfused", 8)):
        assert made.next() == (name, runs)
        made.add(name, LONG / 8, runs, 1e-3)
    single = PairedComparison("unfused", "fused", 1)
    single.add("unfused", 1.0, 1, 1e-3)
    for name in ("fused", "unfused", "fused"):
        assert single.next() == (name, 1), "where somebody waits for each"
        single.add(name, LONG / 8, 1, 1e-3)


def test_samples_between_whose_runs_others_come_become_shorter() -> None:
    made = PairedComparison("unfused", "fused", 12)
    made.add("unfused", 1.0, 1, 1e-3)
    for name in ("fused", "unfused", "fused"):
        assert made.next() == (name, 12)
        made.add(name, 1.0, 12, 1e-3)
    for runs in (6, 3, 3):
        made.missed()
        assert made.next() == ("fused", runs), "both of a pair have as many"
    assert len(made.quotients) == 1


# ------------------------------------------------------------------------- in a list's life
def chosen_wrongly() -> Trials:
    """``fused``, since something held up all others."""
    made = begun("fused", "unfused")
    made.costs.taken = 100.0
    run(made, {"sequence": 2e-3, "fused": 1e-3, "unfused": 9e-3})
    assert made.chosen == "fused" and made.best == "fused"
    made.costs.taken = 200.0
    return made


TRUE = {"sequence": 1.2e-3, "fused": 1e-3, "unfused": 8e-4}


def test_a_change_needs_two_wins_with_runs_between_them() -> None:
    made = chosen_wrongly()
    assert made.compares_again()
    ran = []
    while made.is_compared_again:
        name, runs = made.next()
        ran.append(name)
        made.add(name, TRUE[name], runs)
    assert ran == ["unfused", *["fused", "unfused"] * FEWEST]
    assert made.chosen == "fused" and made.contenders["unfused"].is_leading
    assert made.later.due("fused", False) == "sequence", "the other one has to rest"
    compared_again(made, TRUE)
    assert made.chosen == made.best == "unfused" and made.later.changes == 1
    assert not made.is_open
    states = {name: contender.state for name, contender in made.contenders.items()}
    assert states == {"sequence": "slower", "fused": "slower", "unfused": "ready"}
    assert made.contenders["unfused"].shortest == 8e-4
    assert made.contenders["fused"].behind == pytest.approx(1.25)


def test_a_win_that_is_not_repeated_changes_nothing() -> None:
    made = chosen_wrongly()
    assert made.compares_again()
    while made.is_compared_again:
        name, runs = made.next()
        made.add(name, TRUE[name], runs)
    assert made.contenders["unfused"].is_leading
    compared_again(made, {**TRUE, "unfused": 1.1e-3})
    assert made.chosen == "fused" and not made.contenders["unfused"].is_leading
    assert made.later.changes == 0


def test_distances_grow_the_most_for_what_is_far_behind() -> None:
    made = chosen_wrongly()
    true = {"sequence": 1.1e-3, "fused": 1e-3, "unfused": 2e-3}
    compared_again(made, true)
    again = {name: made.contenders[name].again for name in ("sequence", "unfused")}
    assert again["sequence"] == pytest.approx(200 * later_comparisons.GROWTH, rel=0.1)
    assert again["unfused"] == pytest.approx(200 * later_comparisons.FAR, rel=0.1)
    made.costs.taken = again["sequence"]
    assert set(compared_again(made, true)) == {"sequence", "fused"}
    assert made.contenders["sequence"].compared == 2


def test_looks_cost_a_part_of_the_time_that_the_list_runs() -> None:
    """Each begins when it can be paid, and ends when it has cost twice as much."""
    made = chosen_wrongly()
    made.costs.taken = 100.0 + 1e-2
    assert made.later.due("fused", False) is None
    made.costs.taken = 100.5
    assert made.compares_again()
    true = {"sequence": 1.1e-3, "fused": 1e-3, "unfused": 1.0}
    spent = 0.0
    while made.compares_again() or made.costs.taken < 500:
        name, runs = made.next()
        if runs:
            spent += max(runs * (true[name] - true["fused"]), 0.0)
            made.add(name, true[name], runs)
        made.costs.taken += true[name] * max(runs, 10)
        since = made.costs.taken - 100
        assert spent <= 2 * later_comparisons.SHARE * since + true["unfused"]
    assert made.contenders["sequence"].compared >= 2 and made.chosen == "fused"


def test_a_persistent_kernel_that_was_not_tried_by_the_model_is_looked_at() -> None:
    made = Trials("sequence", ("fused", "megakernel"))
    made.ready("fused", 0.5)
    made.ready("megakernel", 1.9)
    made.costs.taken = 10.0
    run(made, {"sequence": 1e-3, "fused": 6e-4})
    assert made.chosen == "fused" and made.contenders["megakernel"].timed == 0
    made.costs.taken = 20.0
    compared_again(made, {"sequence": 1e-3, "fused": 6e-4, "megakernel": 3e-4})
    assert made.chosen == "megakernel"


def test_another_rhythm_ends_a_look() -> None:
    made = begun_in_batches("fused")
    run(made, {"sequence": 2e-4, "fused": 1e-4})
    made.costs.taken = 300.0
    assert made.compares_again() and made.next()[1] == 1
    made.in_batches = False
    assert not made.is_compared_again
    made.add("sequence", 1e-6)
    assert made.compares_again() and made.next() == ("sequence", 1)
    made.add("sequence", 2e-4)
    assert made.next() == ("fused", 1)


def test_a_sample_that_never_comes_does_not_end_all_looks() -> None:
    made = chosen_wrongly()
    for _ in range(10_000):
        if not made.compares_again():
            break
        made.next()
    assert made.chosen == "fused" and not made.is_compared_again
    assert all(made.contenders[name].compared == 1 for name in ("sequence", "unfused"))


@pytest.mark.parametrize("name", ["unfused", "fused"])
def test_what_goes_away_ends_a_look(name: Candidate) -> None:
    made = chosen_wrongly()
    assert made.compares_again() and made.next()[0] == "unfused"
    made.leave_out(name, "it stalled")
    assert not made.is_compared_again and made.chosen is not None
    made.costs.taken = 400.0  # where that is another choice, looks may cost a part from then on
    made.add("unfused", 1e-9)
    compared_again(made, TRUE)
    assert made.chosen == ("fused" if name == "unfused" else "unfused")


def test_a_process_that_knows_the_choice_looks_again_later() -> None:
    """The more rarely, the more often that was done; by what it has made."""
    made = chosen_wrongly()
    true = {"sequence": 1.1e-3, "fused": 1e-3, "unfused": 2e-3}
    compared_again(made, true)
    made.costs.taken = 1e4
    compared_again(made, true)
    kept = learned_of(made, "a", 1, "d")
    assert LearnedCandidate("unfused", "slower", "", tuple([9e-3]), 2) in kept.candidates
    again = trials_of(kept)
    assert not again.compares_again() and again.wanted is None
    again.costs.taken = later_comparisons.FIRST * later_comparisons.GROWTH**2
    assert again.compares_again() and not again.is_compared_again and again.wanted == "unfused"
    again.ready("unfused")
    again.here |= {"fused", "sequence"}
    assert again.compares_again() and again.is_compared_again
    compared_again(again, {**TRUE, "unfused": 5e-4})
    assert again.chosen == "unfused" and again.later.changes == 1


# -------------------------------------------------------------------- on a noisy machine
def test_a_core_that_is_taken_away_makes_a_short_run_take_ten_times_as_long() -> None:
    made = drawn(Random(3), NOISES["noisy"])
    name = made.first
    took = sorted(made.took(name, 1) for _ in range(4000))
    assert took[len(took) // 2] < 2.5 * made.truth()[name]
    assert took[-1] > made.seconds[name] + 2e-3


@pytest.mark.parametrize(
    ("noise", "first", "later"),
    [("quiet", 0.15, 0.02), ("shared", 0.2, 0.04), ("noisy", 0.3, 0.08)],
)
def test_what_is_chosen_on_a_noisy_machine(noise: str, first: float, later: float) -> None:
    """The part of lists that run more than a twentieth longer than by their best candidate: when
    they have chosen, and later; and what that takes."""
    wrong, wrong_later, runs = 0, 0, []
    number = 40
    for seed in range(number):
        made = drawn(Random(seed), NOISES[noise])
        became = learn(made, 6.0)
        truth = made.truth()
        fast = {name for name, took in truth.items() if took <= min(truth.values()) / 0.95}
        assert became.chosen, "in all lists"
        wrong += became.chosen[0][1] not in fast
        wrong_later += became.chosen[-1][1] not in fast
        runs.append(became.runs)
        assert became.later < 2 * later_comparisons.SHARE * made.clock + max(truth.values())
        assert became.trials.later.count < 60, "ever more rarely"
    assert wrong <= first * number and wrong_later <= later * number
    assert sorted(runs)[number // 2] <= 12


def test_where_a_candidate_becomes_slower_another_one_is_chosen() -> None:
    seconds: dict[Candidate, float] = {"unfused": 1e-3, "fused": 8e-4, "megakernel": 4e-4}
    busy: dict[Candidate, float] = {"unfused": 1.5e-3, "fused": 1.2e-3, "megakernel": 5e-3}
    chosen = []
    for seed in range(10):
        made = NoisyList(dict(seconds), dict(seconds), "unfused", NOISES["shared"], Random(seed))
        made.changes = 3.0, dict(busy)
        became = learn(made, 8.0)
        chosen.append((became.at(3.0), became.chosen[-1][1]))
    assert chosen.count(("megakernel", "fused")) >= 9


