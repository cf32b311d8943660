"""The choice among candidates where others disturb their runs, or a candidate the others."""

from __future__ import annotations

import pytest

from fusionq.execution import samples, trials
from fusionq.execution.contender import Candidate
from fusionq.execution.trials import Trials
from tests.unit.execution.trial_runs import batches, begun, begun_in_batches, run


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
    """Such as launches without a plan, which the host makes one after the other."""
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
    assert ran == [1, *[samples.SEVERAL] * (1 + samples.MOST_DISTURBED)]


def test_what_is_slow_each_time_among_others_is_dropped() -> None:
    """Though it is as fast by itself."""
    made = begun_in_batches("fused")
    while made.chosen is None:
        name, runs = made.next()
        made.add(name, 3e-3 if runs > 1 and name == "fused" else 1e-4, runs)
    assert made.chosen == "sequence"
    alone = several = 1
    assert made.contenders["fused"].timed == alone + several + samples.MOST_DISTURBED


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
    while not made.reopened:
        made.sample(held_up[turns % 5])
        turns += 1
        assert turns < 20
    turns = 0
    while made.chosen == "megakernel":
        name, is_timed = made.next()
        made.costs.taken += 1
        if not is_timed:
            continue
        made.add(name, held_up[turns % 5] if name == "megakernel" else quiet[name])
        turns += name == "megakernel"
        assert turns < 40
    assert made.chosen == "fused"
