"""Lists whose strategy is chosen by the times of their runs: on the reference backend, with a
background that builds at once and times that the tests make up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.assumptions import ASSUMED
from fusionq.cache.disk import disk_store
from fusionq.cache.learned import all_learned
from fusionq.cache.plan_cache import PLANS
from fusionq.execution import (
    adaptive,
    bind_ahead,
    candidate_plans,
    first_plan,
    list_record,
    run_timer,
    trial_cost,
)
from fusionq.execution.candidate_plans import NOT_REQUESTED
from fusionq.execution.candidates import superfluous
from fusionq.execution.compile import built_plan, planned
from fusionq.execution.run_times import Sample, Told
from fusionq.submission.run import PreparedRun
from tests.unit.execution.programs import neighbours, scale

LARGEST_GROUP = 128
"""In place of 1,024: small lists, which the interpreter runs sooner, then need several."""
N = 140
"""More than a work-group: what depends on neighbours does not join."""
STEPS = 3


class Immediate:
    """Candidates that are planned and built in this process, when it is looked whether they are
    there."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refusing: dict[str, str] = {}
        self.works = True
        self.is_busy = False
        self.binds = True

    def __call__(self, backend, submissions, options, name, beside, arguments):  # type: ignore[no-untyped-def]
        self.asked.append(name)
        options = options._replace(strategy=name)
        return Made(self, backend, submissions, options, beside, arguments)


class Made:
    built, run, reason, slowdown = None, None, None, None
    is_unserved = False

    def __init__(self, background, backend, submissions, options, beside, arguments) -> None:  # type: ignore[no-untyped-def]
        self.background, self.what = background, (backend, submissions, options)
        self.beside, self.arguments = beside, arguments

    def poll(self) -> bool:
        if not self.background.works:
            return False
        strategy = self.what[2].strategy
        self.reason = self.background.refusing.get(strategy)
        if self.reason is not None:
            self.is_unserved = self.reason == NOT_REQUESTED
        else:
            built, _ = built_plan(*self.what, {}, may_fall_back=False)
            if strategy in ("overlap", "megakernel") and built.plan.strategy != strategy:
                self.reason = built.plan.fallback
            elif self.beside:
                others = {name: self.planned(name) for name in self.beside}
                self.reason = superfluous(built.plan, others, self.beside[0])
            if self.reason is None:
                self.built = built
                if self.background.binds:
                    self.run = self.arguments.bound(built, "strict")
        return True

    def planned(self, name: str):  # type: ignore[no-untyped-def]
        backend, submissions, options = self.what
        return planned(backend, submissions, options._replace(strategy=name))


class Times(dict[str, float]):
    """Seconds by candidate; what ran, in order."""

    def __init__(self, **seconds: float) -> None:
        super().__init__(seconds)
        self.ran: list[str] = []


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch, disk_cache: Path) -> Iterator[Immediate]:
    background = Immediate()
    monkeypatch.setenv("FUSIONQ_ADAPT", "1")
    monkeypatch.setenv("FUSIONQ_PLANNING_SECONDS", "1")
    monkeypatch.setattr(adaptive, "unavailable", lambda backend: None)
    monkeypatch.setattr(candidate_plans, "CandidatePlan", background)
    monkeypatch.setattr(list_record, "WORTH_LEARNING", 1e-9)
    monkeypatch.setattr(trial_cost, "SHARE", 1e9)  # preparing takes more than made-up runs
    monkeypatch.setattr(first_plan, "STEP", 1e9)  # nothing is planned where the user waits
    monkeypatch.setattr(adaptive, "is_busy", lambda: background.is_busy)
    group = replace(ASSUMED["largest_barrier_group"], cpu=LARGEST_GROUP)
    monkeypatch.setitem(ASSUMED, "largest_barrier_group", group)
    list_record.RECORDS.clear()
    PLANS.clear()
    yield background
    list_record.RECORDS.clear()


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    times = Times(auto=2.0, sequence=2.0, unfused=3.0, fused=2.0, megakernel=1.0)

    def launch(launch, depends, before, told: Told):  # type: ignore[no-untyped-def]
        times.ran.append(told._name)  # type: ignore[attr-defined]
        told.took(times[times.ran[-1]])
        return launch(depends)

    class MadeUp(Sample):
        def launch(self, launch, depends, before):  # type: ignore[no-untyped-def]
            launched = launch(depends)
            self.left -= 1
            times.ran.append(self._told._name)  # type: ignore[union-attr]
            self.took(times[times.ran[-1]])
            return launched

    monkeypatch.setattr(run_timer, "timed_launch", launch)
    monkeypatch.setattr(list_record, "Sample", MadeUp)
    return times


class Program:
    """A stencil's steps on its own buffers; every run's result is checked."""

    def __init__(self, n: int = N, target: str = "reference", **options: object) -> None:
        self.queue = fq.FusionQueue(target)
        self.n, self.options = n, options
        self.a, self.b = (fq.Buffer(np.zeros(n, np.float32)) for _ in range(2))
        self.host = [np.zeros(n, np.float32), np.zeros(n, np.float32)]

    def steps(self) -> None:
        a, b = self.a, self.b
        for _ in range(STEPS):
            self.queue.submit(neighbours, self.n, a, b)
            a, b = b, a

    def run(self) -> fq.Fusion:
        self.begin()
        with fq.fusion(self.queue, **self.options) as fusion:  # type: ignore[arg-type]
            self.steps()
        self.check(fusion)
        return fusion

    def begin(self) -> None:
        start = np.random.default_rng(0).integers(0, 9, self.n).astype(np.float32)
        self.a.write(start)
        self.b.write(start)
        self.host = [start.copy(), start.copy()]

    def check(self, fusion: fq.Fusion) -> None:
        fusion.event.wait()
        a, b = self.host
        for _ in range(STEPS):
            b[1:-1] = a[:-2] + a[2:]
            a, b = b, a
        assert np.array_equal(self.a.numpy(), self.host[0])
        assert np.array_equal(self.b.numpy(), self.host[1])


def chosen_of(program: Program, most: int = 30) -> str:
    """What is chosen at last."""
    (record,) = list_record.RECORDS._records.values()
    for _ in range(most):
        if record.trials.chosen is not None:
            break
        program.run()
    assert record.trials.chosen is not None
    return record.trials.chosen


def bound_where_wanted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The strategies of the plans whose launches were bound when a run was wanted."""
    prepared: list[str] = []
    bind = adaptive.bind

    def counted(backend, run, pending, fp):  # type: ignore[no-untyped-def]
        prepared.append(run.built.plan.strategy)
        bind(backend, run, pending, fp)

    monkeypatch.setattr(adaptive, "bind", counted)
    return prepared


def test_a_list_seen_once_asks_for_nothing(background: Immediate, times: Times) -> None:
    report = Program().run().report
    assert not background.asked and not times.ran
    assert report.fallback == adaptive.UNTIL_WORTH


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
    for _ in range(6):
        program.run()
    assert chosen_of(program) == "unfused"


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
    chosen_of(program)
    times["megakernel"] = 9e-5
    for _ in range(adaptive.SAMPLED + 25):
        program.run()
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
    while record.trials.chosen is not None:
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
    bind = adaptive.bind

    def without_memory(backend, run, pending, fp):  # type: ignore[no-untyped-def]
        if run.built.plan.strategy == "megakernel":
            raise fq.DeviceError("there is no memory")
        bind(backend, run, pending, fp)

    monkeypatch.setattr(adaptive, "bind", without_memory)
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
    assert report.strategy == "unfused" and report.fallback == adaptive.UNTIL_WORTH
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


class Joined(Program):
    """What joins whatever is around it."""

    def steps(self) -> None:
        self.queue.submit(scale, self.n, self.a, self.b, np.float32(2))
        self.queue.submit(scale, self.n, self.b, self.b, np.float32(3))

    def check(self, fusion: fq.Fusion) -> None:
        fusion.event.wait()
        assert np.array_equal(self.b.numpy(), 6 * self.host[0])


@pytest.mark.slow
def test_replays_are_sampled(
    background: Immediate, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive, "SAMPLED", 5)
    program = Program()
    program.run()
    times.update(unfused=2e-5, megakernel=1e-5)
    chosen_of(program)
    fusion = program.run()
    assert fusion.report.strategy == "megakernel"
    times["megakernel"] = 9e-5
    for _ in range(45):
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
    assert program.run().report.fallback == adaptive.UNTIL_WORTH
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
    program = Program()
    program.run()
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
    for _ in range(8):
        program.run()
    assert chosen_of(program, 60) == "megakernel"


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
