"""The choice among candidates, by times that the tests make up."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusionq.cache import learned
from fusionq.cache.serialise import encode
from fusionq.execution import trials
from fusionq.execution.trials import CANDIDATES, Candidate, Trials

OTHERS: tuple[Candidate, ...] = ("unfused", "fused", "megakernel")


def begun(*awaited: Candidate) -> Trials:
    """Trials whose first run was by ``sequence``, when all that was awaited is ready."""
    begun = Trials("sequence", awaited)
    assert begun.next() == ("sequence", False)
    for name in awaited:
        begun.ready(name)
    return begun


def run(made: Trials, seconds: Mapping[str, float], most: int = 200) -> list[Candidate]:
    """The candidates that ran until there was a choice, each with its time."""
    ran: list[Candidate] = []
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        ran.append(name)
        made.add(name, seconds[name])
        assert len(ran) < most
    return ran


def test_the_first_runs_until_all_are_there_and_nothing_is_timed() -> None:
    made = Trials("sequence", OTHERS)
    for name in OTHERS:
        assert made.next() == ("sequence", False)
        assert made.chosen is None
        made.ready(name)
    assert made.next()[1]


@pytest.mark.parametrize(
    "slowdowns, order",
    [
        ((None, None, None), ["unfused", "fused", "megakernel"]),
        ((0.9, 0.8, 0.5), ["megakernel", "fused", "unfused"]),
    ],
)
def test_the_order_is_that_of_the_model(
    slowdowns: tuple[float | None, ...], order: list[Candidate]
) -> None:
    made = Trials("sequence", OTHERS)
    for name, slowdown in zip(OTHERS, slowdowns, strict=True):
        made.ready(name, slowdown)
    ran = run(made, dict.fromkeys(CANDIDATES, 1.0))
    all_of_them: list[Candidate] = ["sequence", *order]
    assert ran == [name for name in all_of_them for _ in range(2)] * 2
    assert made.cost == 0.0
    assert made.chosen == ("sequence" if slowdowns[0] is None else "megakernel"), "all are alike"


@pytest.mark.parametrize("fastest", ["sequence", *OTHERS])
def test_the_fastest_is_chosen_and_the_slow_ones_run_once(fastest: Candidate) -> None:
    made = begun(*OTHERS)
    seconds = {name: 1.0 if name == fastest else 2.4 for name in CANDIDATES}
    ran = run(made, seconds)
    assert made.chosen == fastest
    assert made.next() == (fastest, False)
    slow = [name for name in ran[ran.index(fastest) :] if name != fastest]
    assert len(slow) == len(set(slow)), "what is known to be slower by then"


def test_trials_cost_three_runs_of_what_ran_first_together() -> None:
    """But for the last one, of which nothing was known."""
    made = begun(*OTHERS)
    seconds = {"sequence": 1.0, "unfused": 1.9, "fused": 3.3, "megakernel": 0.5}
    ran = run(made, seconds)
    assert made.chosen == "sequence"
    assert "megakernel" not in ran and ran.count("unfused") == ran.count("fused") == 1
    assert made.cost == pytest.approx(0.9 + 2.3)


def test_what_would_cost_too_much_by_the_model_is_not_tried() -> None:
    made = Trials("sequence", OTHERS)
    for name, slowdown in zip(OTHERS, (2.0, 2.5, 9.0), strict=True):
        made.ready(name, slowdown)
    assert made.contenders["megakernel"].reason == "9.0 times as long by the cost model"
    ran = run(made, {"sequence": 1.0, "unfused": 2.9, "fused": 0.1})
    assert "fused" not in ran, "1.9 are spent, and 1.5 expected"
    assert made.chosen == "sequence"


def test_the_first_run_loads_the_program() -> None:
    made = begun("fused", "megakernel")
    cold = {
        "sequence": [1e-4] * 3, "fused": [trials.COLD_SECONDS, 1e-5, 1e-5], "megakernel": [1.0],
    }  # fmt: skip
    while made.chosen is None:
        name, _ = made.next()
        made.add(name, cold[name].pop(0))
    assert made.chosen == "fused"
    assert made.contenders["megakernel"].state == "slower"


def test_results_may_come_late() -> None:
    made = begun("fused")
    seconds = {"fused": 1.0, "sequence": 2.0}
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        fastest = made.fastest
        assert [made.next() for _ in range(3)] == [(fastest, False)] * 3
        made.add("fused" if name == "sequence" else "sequence", 9.0)
        made.add(name, seconds[name])
    assert made.chosen == "fused"
    assert made.contenders["sequence"].seconds[0] == 2.0, "what nobody waits for does not count"


def test_a_result_that_never_comes_is_given_up() -> None:
    made = begun("fused")
    for _ in range(2 * trials.MOST_AWAITED):
        name, is_timed = made.next()
        if is_timed and name == "fused":
            break
    assert not is_timed and name == "sequence"
    assert made.next() == ("sequence", False)
    assert run_on(made) == "fused"


def run_on(made: Trials) -> Candidate:
    """What is chosen where ``fused`` is the faster one."""
    for _ in range(20 * trials.MOST_AWAITED):
        if made.chosen is not None:
            break
        name, is_timed = made.next()
        if is_timed:
            made.add(name, {"fused": 1.0, "sequence": 2.0}[name])
    assert made.chosen is not None
    return made.chosen


def test_the_shortest_of_its_runs_counts() -> None:
    made = begun("fused")
    disturbed = iter([1.2, 1.9, 1.0, 9.0])
    while made.chosen is None:
        name, _ = made.next()
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
    "slowdown, chosen", [(0.5, "fused"), (2.0, "sequence"), (None, "sequence")]
)
def test_without_times_the_model_chooses(slowdown: float | None, chosen: Candidate) -> None:
    made = Trials("sequence", ["fused"])
    made.ready("fused", slowdown)
    while made.chosen is None:
        name, is_timed = made.next()
        assert is_timed
        made.missed(name)
    assert made.chosen == chosen and made.runs == trials.MOST_MISSES


def test_what_is_left_out_does_not_run() -> None:
    made = begun("fused", "megakernel")
    made.leave_out("megakernel", "it stalled")
    assert "megakernel" not in run(made, {"sequence": 2.0, "fused": 1.0})
    made.leave_out("fused", "no memory")
    assert made.chosen == "sequence"
    made.leave_out("sequence", "no memory either")
    assert made.present == "sequence", "somebody has to say why nothing runs"


def test_a_chosen_candidate_that_is_gone_is_awaited() -> None:
    made = begun("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
    made.await_again("fused")
    assert made.next() == ("sequence", False)
    made.ready("fused")
    run(made, {"sequence": 2.0, "fused": 1.0})
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
        run(made, {"sequence": 2 * seconds, "fused": seconds})
        assert made.chosen == "fused"
        seconds *= factor
        count = 0
        while made.chosen is not None:
            made.sample(seconds)
            count += 1
        samples.append(count)
    assert samples == [trials.DRIFTED, 2 * trials.DRIFTED, 4 * trials.DRIFTED]


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
    assert again.contenders["fused"].seconds == [1.0]
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
    run(made, dict.fromkeys(CANDIDATES, 1.0))
    chosen = made.chosen
    assert chosen is not None and made.contenders[chosen].state == "ready"
