"""What becomes of a choice: runs that drift, what is kept, and whatever may happen."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusionq.cache import learned
from fusionq.cache.serialise import encode
from fusionq.execution import drift
from fusionq.execution.contender import Candidate
from fusionq.execution.learned_trials import learned_of, trials_of
from fusionq.execution.standing import CANDIDATES
from fusionq.execution.trials import Trials
from tests.unit.execution.trial_runs import OTHERS, begun, begun_in_batches, compared_again, run


# --------------------------------------------------------------------------------- drift
def test_times_that_stay_do_not_reopen() -> None:
    made = begun("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    for k in range(100):
        made.sample([1.0, 1.3, 0.8, 40.0][k % 4])
    assert made.chosen == "fused" and made.reopened == 0


@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_times_that_drift_are_looked_at_and_ever_more_rarely(factor: float) -> None:
    made = begun("fused")
    run(made, {"sequence": 1.2, "fused": 1.0})
    made.contenders["sequence"].again = 1e9
    seconds = 1.0
    samples = []
    for _ in range(3):
        assert made.chosen == "fused" and not made.compares_again()
        seconds *= factor
        count, before = 0, made.reopened
        while made.reopened == before:
            made.sample(seconds)
            count += 1
        samples.append(count)
        assert made.compares_again()
        compared_again(made, {"sequence": 1.2 * seconds, "fused": seconds})
        made.contenders["sequence"].again = 1e9
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
    assert made.reopened == 1


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
    assert made.reopened == 1


def test_what_a_run_by_itself_took_is_no_drift() -> None:
    """Such as of persistent kernels, whose workers wait for each other: 180 µs, 65 among others."""
    made = begun_in_batches("fused")
    while made.chosen is None:
        name, runs = made.next()
        took = {"sequence": 1.5e-4, "fused": 6.5e-5}[name]
        made.add(name, took + 1.15e-4 / max(runs, 1), runs)
    assert made.chosen == "fused"
    assert made.contenders["fused"].shortest == pytest.approx(6.5e-5)
    for seconds, reopened in ((1.8e-4, 0), (2.6e-4, 0), (2.8e-4, 1)):
        for _ in range(drift.DRIFTED):
            made.sample(seconds)
        assert made.reopened == reopened


def test_after_a_drift_what_was_slower_may_win() -> None:
    made = begun("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    while not made.reopened:
        made.sample(9.0)
    compared_again(made, {"sequence": 2.0, "fused": 9.0})
    assert made.chosen == "sequence" and made.later.changes == 1


# ------------------------------------------------------------------------------- records
def test_a_choice_is_kept() -> None:
    made = begun(*OTHERS)
    made.leave_out("megakernel", "it stalled")
    run(made, {"sequence": 2.0, "unfused": 3.0, "fused": 1.0})
    kept = learned_of(made, "a ×2", 1000, "a device")
    again = trials_of(learned._read(json.dumps(encode(kept)).encode()))  # type: ignore[arg-type]
    assert again.next() == ("fused", False)
    assert set(again.contenders["fused"].seconds) == {1.0}
    assert again.contenders["megakernel"].reason == "it stalled"
    assert learned_of(again, "a ×2", 1000, "a device") == kept


def test_times_without_a_choice_are_not_compared_with_others() -> None:
    made = begun("fused")
    assert made.next() == ("sequence", True)
    made.add("sequence", 1.0)
    assert made.contenders["sequence"].seconds
    again = trials_of(learned_of(made, "a", 1, "d"))
    assert again.chosen is None and not again.contenders["sequence"].seconds


@pytest.mark.parametrize(
    "damage",
    [
        {"chosen": "fused"},
        {"first": "fused"},
        {"reopened": -1},
        {"changes": -1},
        {"candidates": (learned.LearnedCandidate("sequence", "ready", "", (), -1),)},
        {"candidates": (learned.LearnedCandidate("sequence", "ready", "", (float("nan"),), 0),)},
        {"candidates": (learned.LearnedCandidate("sequence", "ready", "", (-1.0,), 0),)},
        {"candidates": (learned.LearnedCandidate("sequence", "ready", "", (), 0),) * 2},
        {"chosen": "sequence", "candidates": (
            learned.LearnedCandidate("sequence", "left out", "", (), 0),
        )},
    ],
)  # fmt: skip
def test_records_that_cannot_be_are_none(damage: dict[str, object]) -> None:
    right = {
        "kernels": "a", "work_items": 1, "device": "d", "first": "sequence", "chosen": None,
        "runs": 1, "reopened": 0, "changes": 0,
        "candidates": (learned.LearnedCandidate("sequence", "ready", "", (), 0),),
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
    chosen = made.chosen
    assert chosen is not None and made.contenders[chosen].state == "ready"
