"""Lists whose strategy is chosen by the times of their runs: on the reference backend, with a
background that builds at once and times that the tests make up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import (
    adaptive,
    later_comparisons,
    list_record,
    run_timer,
)
from tests.unit.execution.adaptive_lists import (
    STEPS,
    Immediate,
    Joined,
    N,
    Program,
    Times,
    bound_where_wanted,
    chosen_of,
    run_often,
)
from tests.unit.execution.programs import neighbours, scale


def test_a_list_seen_once_asks_for_nothing(background: Immediate, times: Times) -> None:
    report = Program().run().report
    assert not background.asked and not times.ran
    assert report.fallback == list_record.UNTIL_WORTH


@pytest.mark.parametrize("life", [0.0, 1.0])
def test_who_does_other_things_between_runs_goes_on_to_do_so(
    life: float, background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_record, "WORTH_LEARNING", 1e9)
    seconds = [0.0]
    monkeypatch.setattr(list_record, "clock", lambda: seconds[0])
    program = Program()
    for _ in range(list_record.WORTH_RUNS - 1):
        program.run()
        seconds[0] += life / list_record.WORTH_RUNS
    assert not background.asked
    run_often(program, 2 * list_record.WORTH_RUNS)
    assert not background.asked or life > list_record.WORTH_LIFE
    seconds[0] = life
    run_often(program, 2 * list_record.WORTH_RUNS)
    assert bool(background.asked) == (life > list_record.WORTH_LIFE)


def test_the_fastest_is_chosen_by_real_runs(background: Immediate, times: Times) -> None:
    program = Program()
    assert program.run().report.strategy == "unfused", "nothing joins, and nothing is waited for"
    assert chosen_of(program) == "megakernel"
    assert background.asked == ["auto", "megakernel", "overlap", "fused", "sequence"]
    tried = times.ran.index("megakernel")
    assert times.ran[tried - 1 : tried + 3] == ["unfused", "megakernel"] * 2
    fusion = program.run()
    assert fusion.report.strategy == "megakernel"
    choice = str(fusion.report.choice)
    assert "auto runs a persistent kernel, by the times of real runs" in choice
    assert "unfused 3,000,000 µs" in choice and "dropped" in choice
    assert "auto is left out: it is the same launches as unfused" in choice


def test_launches_one_by_one_get_a_plan_first_where_the_host_would_launch_all_at_once(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are one graph then while the others are built."""
    program = Program()
    backend = program.queue._state.launcher.backend
    abilities = replace(backend.abilities, launches_lists=True)
    monkeypatch.setattr(type(backend), "abilities", abilities)
    assert program.run().report.strategy == "unfused"
    assert chosen_of(program) == "megakernel"
    assert background.asked[:3] == ["unfused", "auto", "megakernel"]
    assert "megakernel" in times.ran and program.run().report.strategy == "megakernel"


@pytest.mark.parametrize("has_persistent_kernels", [True, False])
def test_persistent_kernels_are_tried_where_the_cost_model_never_chooses_them(
    has_persistent_kernels: bool,
    background: Immediate,
    times: Times,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = Program()
    backend = program.queue._state.launcher.backend
    device = replace(
        backend.target.device,
        chooses_persistent=False,
        persistent_kernels=has_persistent_kernels,
    )
    monkeypatch.setattr(backend, "target", replace(backend.target, device=device))
    program.run()
    assert chosen_of(program) == ("megakernel" if has_persistent_kernels else "unfused")
    assert background.asked[:4] == ["auto", "overlap", "fused", "sequence"]
    assert (background.asked[-1] == "megakernel") == has_persistent_kernels
    assert ("megakernel" in background.asked) == has_persistent_kernels
    left_out = "megakernel is left out: the device runs no persistent kernels"
    assert (left_out in str(program.run().report.choice)) != has_persistent_kernels


def test_what_was_chosen_costs_nothing_more(background: Immediate, times: Times) -> None:
    program = Program()
    program.run()
    times.update(unfused=2e-5, megakernel=1e-5)
    chosen_of(program)
    program.run()
    (run,) = program.queue._state.launcher.cache.runs.values()
    assert not run.is_trial and run.adaptive is not None and run.adaptive.untimed
    ran = len(times.ran)
    program.run()
    assert len(times.ran) == ran, "and no time is wanted"
    assert program.queue._state.launcher.cache.runs.popitem()[1] is run


def test_slow_lists_are_watched_always(background: Immediate, times: Times) -> None:
    program = Program()
    program.run()
    chosen_of(program)
    times["megakernel"] = 9.0
    run_often(program, 40)
    assert chosen_of(program) == "unfused"


def test_lists_of_milliseconds_are_timed_now_and_then(background: Immediate, times: Times) -> None:
    program = Program()
    program.run()
    times.update({name: seconds * 5e-3 for name, seconds in times.items()})
    assert chosen_of(program) == "megakernel"
    program.run()
    ran = len(times.ran)
    between = int(adaptive.UNTIMED / times["megakernel"])
    for _ in range(4 * (between + 1)):
        program.run()
    assert len(times.ran) - ran == 4 and between == 3


def test_what_is_prepared_for_a_trial_stays_so(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the next sample has to wait until the list has run for longer."""
    times.update({name: seconds * 1e-3 for name, seconds in times.items()})
    background.binds = False
    prepared = bound_where_wanted(monkeypatch)
    Joined(strategy="sequence").run()
    program = Joined()
    program.run()
    (record,) = list_record.RECORDS._records.values()
    while record.trials.challenger is None:
        program.run()
    for _ in range(3):
        record.trials.costs._spent = 1e30
        record.trials.contenders["unfused"].forget()
        for _ in range(4):
            program.run()
            assert record.trials.waits
        record.trials.costs._spent = 0.0
        program.run()
    assert chosen_of(program) == "sequence"
    assert prepared.count("unfused") == 1 and prepared.count("fused") <= 2


@pytest.mark.parametrize("is_changed", [False, True])
def test_what_the_background_has_bound_is_not_bound_again(
    is_changed: bool, background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But where the list has other buffers by then."""
    prepared = bound_where_wanted(monkeypatch)
    program = Program()
    program.run()
    (record,) = list_record.RECORDS._records.values()
    background.works = False
    while background.asked[-1:] != ["megakernel"]:
        background.works = record.making is not None
        program.run()
        background.works = False
    if is_changed:
        program.a, program.b = program.b, program.a
    background.works = True
    assert chosen_of(program) == "megakernel" and "megakernel" in times.ran
    assert ("megakernel" in prepared) == is_changed
    assert not record.trials.costs.total or is_changed, "preparing is no part of what trials cost"


def test_what_was_bound_gets_the_values_of_the_run(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = bound_where_wanted(monkeypatch)
    times.update(sequence=1.0, unfused=9.0)
    queue = fq.FusionQueue("reference")
    a, b, c = (fq.Buffer(np.full(N, 1, np.float32)) for _ in range(3))
    for turn in range(12):
        with fq.fusion(queue) as fusion:
            queue.submit(scale, N, a, b, turn + 1.5)
            queue.submit(scale, N, b, c, 3.0)
        fusion.event.wait()
        assert np.array_equal(c.numpy(), np.full(N, (turn + 1.5) * 3, np.float32))
    assert "auto" in times.ran and not prepared


def test_fast_lists_are_sampled(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program()
    program.run()
    times.update(unfused=2e-5, megakernel=1e-5)
    monkeypatch.setattr(adaptive, "SAMPLED", 2)
    monkeypatch.setattr(later_comparisons, "SOON", 0.0)
    chosen_of(program)
    times["megakernel"] = 9e-5
    run_often(program, 40)
    assert chosen_of(program) == "unfused"
    assert program.run().report.strategy == "unfused"


def test_replays_take_part_and_events_stay(background: Immediate, times: Times) -> None:
    program = Program()
    program.begin()
    with fq.fusion(program.queue) as fusion:
        a, b = program.a, program.b
        events = []
        for _ in range(STEPS):
            events.append(program.queue.submit(neighbours, N, a, b))
            a, b = b, a
    program.check(fusion)
    strategies = set()
    for _ in range(20):
        program.begin()
        fusion.replay().wait()
        program.check(fusion)
        strategies.add(fusion.report.strategy)
        assert all(event.is_complete for event in events)
    assert fusion.report.strategy == "megakernel" and strategies == {"unfused", "megakernel"}


@pytest.mark.slow
def test_temporaries_take_part(background: Immediate, times: Times) -> None:
    for _ in range(25):
        report = Program().run().report
    assert report.strategy == "megakernel"
    assert len(list_record.RECORDS._records) == 1


def test_runs_without_a_wait_between_them_are_compared_in_batches(
    background: Immediate, times: Times
) -> None:
    """The last of a sample is waited for at its launch; nobody else has to."""
    times.update({name: seconds * 3e-5 for name, seconds in times.items()})
    program = Program()
    program.run()
    (record,) = list_record.RECORDS._records.values()
    record.is_unseen = True  # as after a sample that nobody waited for
    assert chosen_of(program, 100) == "megakernel"
    assert record.trials.in_batches
    tried = times.ran.index("megakernel")
    batches = ["unfused"] * 3 + ["megakernel"] * 3
    assert times.ran[tried - 1 : tried + 7] == ["unfused", "megakernel", *batches]
    while not record.trials.reopened:
        record.trials.sample(1.0)
        record.poll()


def test_two_runs_show_the_rhythm_before_the_first_sample(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all lists of the record together, which may have other arguments each time."""
    told: list[int] = []
    took = run_timer.RunTimer.took

    def counted(self, seconds: float) -> None:  # type: ignore[no-untyped-def]
        if self._record.listened:
            told.append(self._runs)
        took(self, seconds)

    monkeypatch.setattr(run_timer.RunTimer, "took", counted)
    while not any(told):
        Program().run()
    assert told == [0] * adaptive.LISTENED + [1]


def test_other_sizes_are_not_compared(background: Immediate, times: Times) -> None:
    program = Program()
    program.run(), program.run()
    other = Program(N + 1)
    for _ in range(5):
        other.run()
    assert set(times.ran) <= {"unfused"}, "one size class, and another size: nothing is tried"
    assert chosen_of(program) == "megakernel"
    assert other.run().report.strategy == "megakernel", "which learns from it all the same"
    assert Program(4 * N).run().report.strategy == "unfused", "another class does not"


def test_a_size_that_never_comes_again_gives_way(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_record, "POLL_SECONDS", 0.0)
    Program().run()
    other = Program(N + 1)
    for _ in range(list_record.OTHER_SIZES + 2):
        other.run()
    assert chosen_of(other) == "megakernel"
    assert other.run().report.strategy == "megakernel"
