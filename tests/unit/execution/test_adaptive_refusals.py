"""Lists that learn where a candidate cannot be built or had, and what else decides what runs."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.disk import disk_store
from fusionq.cache.learned import all_learned
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import (
    adaptive,
    bind_ahead,
    candidate_runs,
    first_plan,
    later_comparisons,
    list_record,
)
from fusionq.execution.candidate_plans import NOT_REQUESTED
from fusionq.submission.run import PreparedRun
from tests.unit.execution.adaptive_lists import (
    STEPS,
    Immediate,
    Joined,
    N,
    Program,
    Times,
    chosen_of,
    run_often,
)
from tests.unit.execution.programs import scale


def test_a_candidate_that_is_not_built_is_left_out(background: Immediate, times: Times) -> None:
    background.refusing = {"megakernel": "the compiler crashed"}
    program = Program()
    program.run(), program.run()
    assert chosen_of(program) == "unfused"
    assert "megakernel is left out: the compiler crashed" in str(program.run().report.choice)


def test_a_candidate_without_memory_is_left_out(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program()
    program.run()
    bind = candidate_runs.bind

    def without_memory(backend, run, pending, fp):  # type: ignore[no-untyped-def]
        if run.built.plan.strategy == "megakernel":
            raise fq.DeviceError("there is no memory")
        bind(backend, run, pending, fp)

    monkeypatch.setattr(candidate_runs, "bind", without_memory)
    monkeypatch.setattr(bind_ahead, "bind", without_memory)
    assert chosen_of(program) == "unfused"
    assert "there is no memory" in str(program.run().report.choice)


def test_another_process_knows_and_the_record_names_it(background: Immediate, times: Times) -> None:
    program = Program()
    program.run()
    chosen_of(program)
    store = disk_store()
    assert store is not None
    found = [x for x in all_learned(store) if x.kernels == f"neighbours ×{STEPS}"]
    assert [(x.chosen, x.work_items, x.first) for x in found] == [("megakernel", N, "unfused")]
    list_record.RECORDS.clear()  # as in another process
    asked = len(background.asked)
    again = Program()
    ran = len(times.ran)
    assert again.run().report.strategy == "megakernel"
    assert again.run().report.strategy == "megakernel"
    assert len(background.asked) == asked and set(times.ran[ran:]) <= {"megakernel"}


@pytest.mark.parametrize(
    "options",
    [
        {"adapt": False}, {"fp": "fast"}, {"strategy": "fused"}, {"strategy": "unfused"},
        {"tune": True},
    ],
)  # fmt: skip
def test_what_was_asked_for_by_name_runs(
    background: Immediate, times: Times, options: dict[str, object]
) -> None:
    program = Program(**options)
    for _ in range(4):
        report = program.run().report
    assert not background.asked and not times.ran
    assert "real runs" not in str(report.choice)


@pytest.mark.parametrize("value", ["0", "off"])
def test_it_is_off_by_the_environment(
    background: Immediate, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("FUSIONQ_ADAPT", value)
    program = Program()
    for _ in range(4):
        program.run()
    assert not background.asked and not list_record.RECORDS._records


def test_a_word_that_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONQ_ADAPT", "never")
    with pytest.raises(fq.ArgumentError, match="FUSIONQ_ADAPT='never' is neither on nor off"):
        Program().run()


def test_a_list_that_was_tuned_stays_so(background: Immediate, times: Times) -> None:
    program = Program()
    program.run(), program.run()
    with fq.fusion(program.queue, tune=True):
        program.steps()
    ran = len(times.ran)
    for _ in range(4):
        report = program.run().report
    assert len(times.ran) == ran and "measured" in str(report.choice)


def test_promoted_buffers_are_never_allocated_for_a_trial(
    background: Immediate, times: Times
) -> None:
    queue = fq.FusionQueue("reference")
    a, b = (fq.Buffer(np.arange(N, dtype=np.float32)) for _ in range(2))
    temporary = fq.Buffer(N, np.float32, promote_private=True)

    @fq.kernel
    def twice(item: fq.Item, x, y):
        i = item.get_id(0)
        y[i] = x[i] * 2

    for k in range(20):
        with fq.fusion(queue, strategy="auto" if k else "sequence") as fusion:
            queue.submit(twice, N, a, temporary)
            queue.submit(twice, N, temporary, b)
        assert np.array_equal(b.numpy(), 4 * np.arange(N))
    assert not temporary.is_allocated
    assert fusion.report.strategy == "fused" and background.asked == ["unfused"]
    assert "need not even be allocated" in str(fusion.report.choice)


def test_what_is_built_already_runs_first(background: Immediate, times: Times) -> None:
    Joined(strategy="sequence").run()
    report = Joined().run().report
    assert report.strategy == "fused" and not background.asked
    program = Joined()
    assert chosen_of(program) == "sequence" and background.asked == ["unfused"]
    assert program.run().report.strategy == "fused"


@pytest.mark.parametrize(("step", "plans"), [(0.0, 1), (1e9, 0)])
def test_another_process_does_not_plan_to_find_out_that_a_list_runs_unfused(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch, step: float, plans: int
) -> None:
    monkeypatch.setattr(first_plan, "STEP", step)
    monkeypatch.setattr(list_record, "WORTH_LEARNING", 1e9)
    asked = []
    planned_in_time = first_plan.planned_in_time

    def counted(*arguments, **options):  # type: ignore[no-untyped-def]
        asked.append(arguments)
        return planned_in_time(*arguments, **options)

    monkeypatch.setattr(first_plan, "planned_in_time", counted)
    for _ in range(3):
        list_record.RECORDS.clear()  # as in another process
        PLANS.clear()
        assert Program().run().report.strategy == "unfused"
    assert len(asked) == plans
    store = disk_store()
    assert store is not None and [x.is_new for x in all_learned(store)] == [True]
    list_record.RECORDS.clear()
    PLANS.clear()
    Program(strategy="sequence").run()  # from then on it is built
    Program().run()
    assert list_record.RECORDS.latest is not None
    assert list_record.RECORDS.latest.trials.first == "sequence"


def test_nothing_is_planned_where_the_user_waits(background: Immediate, times: Times) -> None:
    program = Joined()
    report = program.run().report
    assert report.strategy == "unfused" and report.fallback == list_record.UNTIL_WORTH
    assert not background.asked
    program.run(), program.run()
    assert background.asked[0] == "auto"
    assert chosen_of(program) == "auto"
    assert program.run().report.strategy == "fused"


def test_while_the_background_builds_runs_ask_ever_more_rarely(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    background.works = False
    times.update(unfused=1e-6)
    program = Joined()
    next_run, looks = adaptive.AdaptiveList.next_run, []

    def looked(self, *arguments):  # type: ignore[no-untyped-def]
        looks.append(self)
        return next_run(self, *arguments)

    monkeypatch.setattr(adaptive.AdaptiveList, "next_run", looked)
    for _ in range(64):
        program.run()
    (record,) = list_record.RECORDS._records.values()
    assert record.trials.waits and background.asked == ["auto"]
    assert len(looks) < 12 and 32 <= record.runs <= 64


def test_replays_go_from_unfused_to_what_is_chosen(background: Immediate, times: Times) -> None:
    program = Joined()
    program.begin()
    program.steps()
    program.queue.wait()
    fusion = program.run()
    for _ in range(20):
        program.begin()
        fusion.replay().wait()
        program.check(fusion)
    assert fusion.report.strategy == "fused"


@pytest.mark.slow
def test_replays_are_sampled(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive, "SAMPLED", 5)
    monkeypatch.setattr(later_comparisons, "SOON", 0.0)
    program = Program()
    program.run()
    times.update(unfused=2e-5, megakernel=1e-5)
    chosen_of(program)
    fusion = program.run()
    assert fusion.report.strategy == "megakernel"
    times["megakernel"] = 9e-5
    for _ in range(90):
        program.begin()
        fusion.replay().wait()
        program.check(fusion)
    assert fusion.report.strategy == "unfused"


def test_a_run_that_fails_keeps_nobody_waiting(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program()
    program.run(), program.run()
    launch = PreparedRun.launch

    def fails(*arguments: object) -> object:
        monkeypatch.setattr(PreparedRun, "launch", launch)
        raise fq.DeviceError("the device is busy")

    monkeypatch.setattr(PreparedRun, "launch", fails)
    with pytest.raises(fq.DeviceError, match="busy"):
        for _ in range(3):
            program.run()
    assert chosen_of(program) == "megakernel"


def test_where_nothing_can_be_built_the_model_chooses(background: Immediate, times: Times) -> None:
    background.refusing = {"auto": NOT_REQUESTED}
    program = Joined()
    assert program.run().report.fallback == list_record.UNTIL_WORTH
    for _ in range(12):
        report = program.run().report
    assert report.strategy == "fused" and report.fallback is None
    assert "real runs" not in str(report.choice)


def test_what_crashes_the_worker_is_built_nowhere(background: Immediate, times: Times) -> None:
    every = ["auto", "sequence", "unfused", "fused", "overlap", "megakernel"]
    background.refusing = dict.fromkeys(every, "the worker process crashed")
    program = Joined()
    program.run()
    assert chosen_of(program) == "unfused"
    report = program.run().report
    assert report.strategy == "unfused"
    assert "auto is left out: the worker process crashed" in str(report.fallback)


def test_unfused_is_compared_with_a_plan_too_where_it_is_close(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(self: Times, name: str) -> float:
        without_plan = {**self, "unfused": 1.1}
        return 0.5 if name == "unfused" and name in background.asked else without_plan[name]

    monkeypatch.setattr(Times, "__getitem__", seconds)
    monkeypatch.setattr(later_comparisons, "SHARE", 1e9)
    program = Program()
    program.run()
    assert chosen_of(program) == "megakernel"
    run_often(program, 40)
    assert chosen_of(program) == "unfused" and background.asked[-1] == "unfused"
    report = program.run().report
    assert report.strategy == "unfused" and report.fallback is None
    assert "by the times of real runs" in str(report.choice)


def test_persistent_kernels_are_tried_on_a_busy_machine_in_the_end(
    background: Immediate, times: Times
) -> None:
    background.is_busy = True
    times["megakernel"] = 5.0
    program = Program()
    program.run()
    assert chosen_of(program, 60) == "unfused" and "megakernel" in times.ran
    times["unfused"], times["megakernel"] = 1.5, 0.5  # which is seen, and all are compared again
    run_often(program, 60)
    assert chosen_of(program) == "megakernel"


def test_lists_in_other_memory_stay_there(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits for what is made in the background, a list serves others of its sizes."""
    monkeypatch.setattr(list_record, "WORTH_LEARNING", 1e9)
    queue = fq.FusionQueue("reference")
    for turn in range(5):
        a, b, c = (fq.Buffer(np.full(N, turn, np.float32)) for _ in range(3))
        with fq.fusion(queue, strategy="auto" if turn else "sequence") as fusion:
            queue.submit(scale, N, a, b, 2.0)
            queue.submit(scale, N, b, c, 3.0)
        for _ in range(3):
            c.write(np.zeros(N, np.float32))
            fusion.replay()
            assert np.array_equal(c.numpy(), 6 * a.numpy())
