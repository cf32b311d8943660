"""Profiles of queues: what is recorded, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fusionq as fq
from fusionq.cache.plan_cache import PLANS
from fusionq.ir.nodes import If
from fusionq.ir.walk import rewrite_body
from fusionq.profiling import Instrumentation, Scope, count
from fusionq.profiling import recorder as recorder_module
from tests.unit.profiling import kernels as k
from tests.unit.profiling.lists import N, chain, flipped


# ------------------------------------------------------------------ nothing else changes
def test_the_result_is_the_same_and_nobody_notices(sycl_queue: fq.FusionQueue) -> None:
    run, out, promoted = chain(sycl_queue)
    source = run().report.device_source
    expected = out.numpy().copy()
    out.write(np.zeros(N, np.float32))
    with fq.profile(sycl_queue) as p:
        f = run()
    assert np.array_equal(out.numpy(), expected)
    assert "records" in f.report.device_source
    assert p.works[0].compared is None, "it was compared with its unfused form"
    assert not any(t.is_allocated for t in promoted)
    assert run().report.device_source == source
    assert "records" not in source


def test_instrumented_programs_have_their_own_key(sycl_queue: fq.FusionQueue) -> None:
    run, _, _ = chain(sycl_queue, 12_345)
    with fq.profile(sycl_queue, compare=False):
        profiled = run()
    plain = run()
    kernels = [f._list.run.built.plan.stages[0].kernel for f in (profiled, plain)]
    assert kernels[0] != kernels[1]
    programs = [f._list.run.built.programs[0] for f in (profiled, plain)]
    assert programs[0] is not programs[1]
    domain = sycl_queue._state.launcher.backend.program_domain
    assert all(
        PLANS.program((domain, kernel, "strict")) is program
        for kernel, program in zip(kernels, programs, strict=True)
    )


def test_replays_follow_the_profile(sycl_queue: fq.FusionQueue) -> None:
    run, _, _ = chain(sycl_queue)
    before = run()
    with fq.profile(sycl_queue, compare=False) as p:
        before.replay().wait()
        inside = run()
    assert len(p.timeline.launches) == 2
    inside.replay().wait()
    assert "records" not in inside.report.device_source
    assert len(p.timeline.launches) == 2


def test_scalars_may_change(sycl_queue: fq.FusionQueue) -> None:
    a, out = fq.Buffer(np.arange(8, dtype=np.float32)), fq.Buffer(8, np.float32)
    results = []
    with fq.profile(sycl_queue) as p:
        for factor in (2.0, 3.0, 3.0):
            sycl_queue.submit(k.scale, 8, a, factor, out).wait()
            results.append(out.numpy()[7])
    assert results == [14, 21, 21]
    assert len(p.timeline.launches) == 3


def test_an_empty_list_is_no_problem(sycl_queue: fq.FusionQueue) -> None:
    with fq.profile(sycl_queue) as p, pytest.warns(fq.FusionAborted), fq.fusion(sycl_queue):
        pass
    assert p.timeline.launches == ()
    assert "nothing ran" in p.summary()


def test_memory_of_others(sycl_queue: fq.FusionQueue) -> None:
    """NumPy arrays, and lists that write in place, are compared on copies."""
    a = np.arange(1000, dtype=np.float32)
    with fq.profile(sycl_queue) as p:
        with fq.fusion(sycl_queue):
            sycl_queue.submit(k.scale, 1000, a, 2.0, a)
            sycl_queue.submit(k.scale, 998, a[1:-1], 3.0, a[1:-1])
        sycl_queue.wait()
    expected = np.arange(1000) * 2.0
    expected[1:-1] *= 3
    assert np.array_equal(a, expected)
    assert p.works[0].compared is None or "ran unfused" in p.works[0].compared


def test_what_cannot_be_built_with_records_runs_without(
    sycl_queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out, _ = chain(sycl_queue, 4321)

    def refuse(*_arguments):
        raise fq.DeviceError("the compiler had a bad day")

    monkeypatch.setattr(recorder_module, "programs_of", refuse)
    with fq.profile(sycl_queue) as p:
        run()
        run()
    assert out.numpy().any()
    assert p.timeline.launches == ()
    assert "bad day" in p.summary()


def test_lists_that_end_by_themselves(sycl_queue: fq.FusionQueue) -> None:
    """They run one by one, are measured so, and can be replayed with and without a profile."""
    a, t, out = (fq.Buffer(np.ones(64, np.float32)) for _ in range(3))
    with fq.profile(sycl_queue) as p:
        with pytest.warns(fq.FusionAborted), fq.fusion(sycl_queue) as f:
            sycl_queue.submit(k.mul, 64, a, a, t)
            sycl_queue.submit(k.sub, 64, t, a, out)
            out.numpy()
        assert f.report.strategy == "unfused"
        f.replay().wait()
    f.replay().wait()
    assert (out.numpy() == 0).all()
    assert [len(launch.submissions) for launch in p.timeline.launches] == [1] * 4


def test_a_failure_in_the_block_ends_the_profile(sycl_queue: fq.FusionQueue) -> None:
    run, _, _ = chain(sycl_queue)
    with pytest.raises(ZeroDivisionError), fq.profile(sycl_queue, compare=False) as p:
        run()
        raise ZeroDivisionError
    assert len(p.timeline.launches) == 1
    assert sycl_queue._state.launcher.profiler is None


def test_the_innermost_profile_counts(sycl_queue: fq.FusionQueue) -> None:
    run, _, _ = chain(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as outer:
        with fq.profile(sycl_queue, compare=False) as inner:
            run()
        run()
        run()
    assert [len(p.timeline.launches) for p in (inner, outer)] == [1, 2]


def test_all_queues(sycl_queue: fq.FusionQueue) -> None:
    with fq.profile(compare=False) as p, fq.FusionQueue() as new:
        for queue in (sycl_queue, new):
            chain(queue)[0]()
    assert len(p.timeline.launches) == 2


def test_results_come_after_the_block(sycl_queue: fq.FusionQueue) -> None:
    with fq.profile(sycl_queue) as p, pytest.raises(fq.FusionStateError, match="behind"):
        _ = p.timeline
    with pytest.raises(fq.FusionStateError, match="once"), p:
        pass


@pytest.mark.parametrize(
    "options",
    [
        {"overflow": "bounce"},
        {"occurrences": 0},
        {"every": 0},
        {"buffer_bytes": 0},
        {"passes": [print]},
    ],
)
def test_options_are_checked(options) -> None:
    with pytest.raises(fq.ArgumentError):
        fq.profile(None, **options)


# --------------------------------------------------------------------- what is recorded
def test_every_group_is_recorded(sycl_queue: fq.FusionQueue) -> None:
    run, _, _ = chain(sycl_queue)
    with fq.profile(sycl_queue, compare=False) as p:
        run()
        run()
    timeline = p.timeline
    assert [r.kind for r in timeline.regions] == ["stage"]
    assert timeline.regions[0].submissions == (0, 1, 2, 3)
    assert len(timeline.launches) == 2
    for number, launch in enumerate(timeline.launches):
        mine = timeline.intervals[timeline.intervals["launch"] == number]
        assert sorted(mine["instance"]) == list(range(launch.groups))
        assert (mine["end"] > mine["start"]).all()
        assert launch.submitted_ns <= mine["start"].min() == launch.start_ns
    assert timeline.launches[0].end_ns <= timeline.launches[1].start_ns
    assert (p.accounting.table.sum(axis=1) == p.accounting.window_ns).all()


def test_stages_end_at_barriers(sycl_queue: fq.FusionQueue) -> None:
    run, out = flipped(sycl_queue)
    with fq.profile(sycl_queue) as p:
        run()
    assert out.numpy()[0] == 63
    timeline = p.timeline
    names = {r.name: r.kind for r in timeline.regions if r.submissions != () or r.kind != "stage"}
    assert names["0: copy_tile"] == names["1: flip_tile"] == "stage"
    assert names["barrier before 1: flip_tile"] == "barrier"
    by_name = {
        n: np.sort(timeline.intervals[timeline.intervals["region"] == i], order="instance")
        for i, n in enumerate(str(r) for r in timeline.regions)
    }
    copy, flip = by_name["0: copy_tile"], by_name["1: flip_tile"]
    barrier = by_name["barrier before 1: flip_tile"]
    # One clock read ends one and begins the next.
    assert (copy["end"] == barrier["start"]).all()
    assert (barrier["end"] == flip["start"]).all()
    (comparison,) = p.comparisons
    assert comparison.fused.launches == 1
    assert comparison.unfused.launches == 2
    assert comparison.fused.barrier_ns > 0 == comparison.unfused.barrier_ns


def test_two_dimensions(sycl_queue: fq.FusionQueue) -> None:
    a, out = fq.Buffer(np.zeros((33, 70))), fq.Buffer((33, 70), np.float64)
    with fq.profile(sycl_queue, compare=False) as p:
        sycl_queue.submit(k.rows, (33, 70), a, out)
    (launch,) = p.timeline.launches
    assert sorted(p.timeline.intervals["instance"]) == list(range(launch.groups))
    assert (out.numpy() == 1).all()


@pytest.mark.parametrize("local", [3, 7, 48, 77])
def test_odd_work_groups(sycl_queue: fq.FusionQueue, local: int) -> None:
    run, out = flipped(sycl_queue, local * 5, local)
    with fq.profile(sycl_queue, compare=False) as p:
        run()
    expected = np.arange(local * 5).reshape(5, local)[:, ::-1].ravel()
    assert np.array_equal(out.numpy(), expected)
    assert len(p.timeline.of_kinds("stage")) == 10
    assert len(p.timeline.of_kinds("barrier")) == 5


def test_regions_and_marks(sycl_queue: fq.FusionQueue) -> None:
    a, out = fq.Buffer(np.ones(512, np.float32)), fq.Buffer(512, np.float32)
    with fq.profile(sycl_queue, compare=False) as p:
        sycl_queue.submit(k.turns, 512, a, 5, out)
    timeline = p.timeline
    groups = timeline.launches[0].groups
    turn = next(i for i, r in enumerate(timeline.regions) if r.name == "turn")
    assert timeline.regions[turn].sampled
    assert (timeline.intervals["region"] == turn).sum() == 5 * groups
    marks = timeline.of_kinds("mark")
    assert len(marks) == groups
    assert (marks["payload"] == 5).all()
    assert (marks["start"] == marks["end"]).all()
    assert timeline.dropped == {}


# ------------------------------------------------------------------------- passes of one's own
class CountDropped(Instrumentation):
    """How many work-items the guards of the ranges keep out."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    def instrument(self, kernel, scope):
        self.scopes.append(scope)

        def stmt(s):
            if isinstance(s, If) and not s.orelse:
                return (replace(s, orelse=(count("dropped"),)),)
            return (s,)

        return replace(kernel, body=rewrite_body(kernel.body, stmt=stmt))


def test_a_pass_of_ones_own(queue: fq.FusionQueue) -> None:
    """Also where there is no clock."""
    own = CountDropped()
    a, out = fq.Buffer(np.ones(1000, np.float32)), fq.Buffer(1000, np.float32)
    with fq.profile(queue, passes=[own], compare=False) as p:
        for _ in range(2):
            queue.submit(k.scale, 1000, a, 2.0, out)
    (scope,) = own.scopes
    stage = p.works[0].plan.stages[0]
    assert scope.stage.submissions == stage.submissions == (0,)
    assert scope.headings() == {"scale": 0}
    event = queue.submit(k.scale, 1000, a, 2.0, out)
    event.wait()
    # The launch is rounded up to whole work-groups.
    assert p.counters["dropped"] % 2 == 0
    assert 0 < p.counters["dropped"] // 2 < 4096
    if queue.device.kind == "reference":
        assert p.counters["dropped"] // 2 == -1000 % 256 or p.counters["dropped"] > 0


def test_counters_add_values(queue: fq.FusionQueue) -> None:
    class Weigh(Instrumentation):
        def instrument(self, kernel, scope):
            return replace(kernel, body=(count("three", 3), count("minus", -1), *kernel.body))

    a, out = fq.Buffer(np.ones((4, 64))), fq.Buffer((4, 64), np.float64)
    with fq.profile(queue, passes=[Weigh()], stages=False) as p:
        queue.submit(k.rows, (4, 64), a, out)
    assert p.counters["three"] == -3 * p.counters["minus"] > 0


def test_a_pass_must_leave_good_ir(sycl_queue: fq.FusionQueue) -> None:
    class Bad(Instrumentation):
        def instrument(self, kernel, scope):
            return replace(kernel, variables=(), body=(If(kernel.span, ()),))

    a, out = fq.Buffer(np.ones(8, np.float32)), fq.Buffer(8, np.float32)
    with (
        fq.profile(sycl_queue, passes=[Bad()]),
        pytest.raises(fq.FusionqError, match="well-formed"),
    ):
        sycl_queue.submit(k.scale, 8, a, 2.0, out)


# ----------------------------------------------------------------------------- without a clock
def test_without_a_clock_launches_are_timed_by_the_host() -> None:
    with fq.FusionQueue("reference") as queue:
        run, out, _ = chain(queue, 32)
        with fq.profile(queue) as p:
            run()
    assert out.numpy().any()
    assert p.timeline.clock is None
    assert "no clock" in p.timeline.no_clock
    own = p.timeline.launches
    assert [launch.source for launch in own] == ["host"]
    assert own[0].makespan_ns > 0
    assert p.comparisons == () or p.comparisons[0].fused.makespan_ns > 0
    assert "host-side timing of launches only" in p.summary()
    assert p.findings == () or p.findings[0].cost <= 1


@pytest.mark.parametrize(
    "shape", [(1,), (999,), (4097,), (12_345,), (1, 1), (7, 100), (300, 17), (65, 4099)]
)
def test_every_work_group_says_when_it_began_and_ended(
    sycl_queue: fq.FusionQueue, shape: tuple[int, ...]
) -> None:
    a, out = (fq.Buffer(np.ones(shape, np.float32)) for _ in range(2))
    with fq.profile(sycl_queue, compare=False, every=1) as p:
        if len(shape) == 1:
            sycl_queue.submit(k.scale, shape[0], a, 2.0, out)
        else:
            sycl_queue.submit(k.rows, shape, a, out)
    assert (out.numpy() == 2).all()
    (launch,) = p.timeline.launches
    stages = p.timeline.of_kinds("stage")
    assert sorted(stages["instance"]) == list(range(launch.groups))
    assert (stages["end"] >= stages["start"]).all()
    assert p.timeline.dropped == {}


@pytest.mark.parametrize("limit", [0, 1, 64, 100, 1000, 4096, 5000])
def test_a_guard_of_the_users_own(sycl_queue: fq.FusionQueue, limit: int) -> None:
    """Work-groups with no work-item inside it have nothing to say."""
    n, local = 4096, 64
    a, out = fq.Buffer(np.arange(n)), fq.Buffer(np.zeros(n, np.int64))
    bound = fq.Buffer(np.array([limit]))
    for kernel, given in ((k.copy_below, limit), (k.copy_below_first, bound)):
        out.write(np.zeros(n, np.int64))
        with fq.profile(sycl_queue, compare=False, every=1) as p:
            sycl_queue.submit(kernel, fq.NdRange((n,), (local,)), a, given, out)
        assert np.array_equal(out.numpy(), np.where(np.arange(n) < limit, np.arange(n), 0))
        stages = p.timeline.of_kinds("stage")
        inside = -(-min(limit, n) // local)
        assert set(range(inside)) <= set(stages["instance"]) <= set(range(n // local))
        assert len(stages) == len(set(stages["instance"]))
        assert (stages["end"] >= stages["start"]).all()
