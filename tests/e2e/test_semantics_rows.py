"""Rows of the semantics that no unit test covers: scopes end to end, barriers, mismatches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fusionq as fq
from tests.e2e.kernels import (
    N,
    add_next,
    empty,
    gather,
    increment,
    increment_nd,
    numbers,
    preset,
    reverse_in_group,
    untouched,
    write_reversed,
)

MANY = 20_000
GROUPS = fq.NdRange(N, 16)


def run(queue, submissions, **options):
    with fq.fusion(queue, **options) as f:
        for kernel, space, *args in submissions:
            queue.submit(kernel, space, *args)
    return f.report


# ---------------------------------------------------------------------- scope by scope, once each
def test_scope_none_needs_nothing(queue):
    a, out = numbers(), empty()
    report = run(queue, [(increment, 32, a, out[:32]), (increment, 32, a[32:], out[32:])])
    assert report.strategy == "fused"
    assert report.stages[0].barriers == 0
    assert {d.scope for d in report.dependences} <= {"NONE"}
    assert np.array_equal(out.numpy(), np.arange(N) + 1)


def test_scope_item_needs_program_order(queue):
    a, middle, out = numbers(), empty(), empty()
    report = run(queue, [(increment, N, a, middle), (increment, N, middle, out)])
    assert [d.scope for d in report.dependences] == ["ITEM"]
    assert report.stages[0].barriers == 0
    assert np.array_equal(out.numpy(), np.arange(N) + 2)


def test_scope_group_needs_a_barrier(queue):
    a, middle, out = numbers(), empty(), empty()
    report = run(
        queue, [(increment_nd, GROUPS, a, middle), (reverse_in_group, GROUPS, middle, out)]
    )
    assert [d.scope for d in report.dependences] == ["ITEM"]
    assert report.stages[0].barriers == 0
    again = empty()
    report = run(
        queue, [(reverse_in_group, GROUPS, a, middle), (increment_nd, GROUPS, middle, again)]
    )
    assert [d.scope for d in report.dependences] == ["GROUP"]
    assert report.stages[0].barriers == 1
    expected = np.arange(N).reshape(-1, 16)[:, ::-1].ravel() + 2
    assert np.array_equal(out.numpy(), expected)
    assert np.array_equal(again.numpy(), expected)


def test_scope_global_needs_a_launch_boundary(queue):
    a, middle, out = numbers(MANY), empty(MANY), empty(MANY)
    report = run(queue, [(write_reversed, MANY, a, middle), (increment, MANY, middle, out)])
    assert [d.scope for d in report.dependences] == ["GLOBAL"]
    assert len(report.stages) == 2
    assert np.array_equal(out.numpy(), np.arange(MANY)[::-1] + 1)


def test_scope_unknown_is_a_launch_boundary_too(queue):
    a, middle, out = numbers(MANY), empty(MANY), empty(MANY)
    places = fq.Buffer(np.roll(np.arange(MANY), 5))
    report = run(queue, [(increment, MANY, a, middle), (gather, MANY, middle, places, out)])
    assert [d.scope for d in report.dependences] == ["UNKNOWN"]
    assert len(report.stages) == 2
    assert np.array_equal(out.numpy(), np.roll(np.arange(MANY), 5) + 1)


def test_scope_unknown_is_a_barrier_where_one_work_group_does_all(queue):
    a, middle, out = numbers(), empty(), empty()
    places = fq.Buffer(np.roll(np.arange(N), 5))
    submissions = [(increment, N, a, middle), (gather, N, middle, places, out)]
    report = run(queue, submissions, strategy="fused")
    assert [d.scope for d in report.dependences] == ["GROUP"]
    (stage,) = report.stages
    assert stage.barriers == 1
    assert np.array_equal(out.numpy(), np.roll(np.arange(N), 5) + 1)


def test_scope_unknown_of_one_work_item_is_program_order(queue):
    a, middle, out = numbers(), empty(), empty()
    places = fq.Buffer(np.array([0, 3, 1]))
    report = run(queue, [(gather, 1, a, places, middle), (gather, 1, middle, places, out)])
    assert [d.scope for d in report.dependences] == ["ITEM"]
    assert [stage.barriers for stage in report.stages] == [0]
    assert out.numpy()[0] == a.numpy()[0]


def kinds(queue, submissions):
    return {(d.kind, d.scope) for d in run(queue, submissions).dependences}


def test_raw_war_and_waw_all_count(queue):
    a, x, y = numbers(MANY), empty(MANY), empty(MANY)
    assert kinds(queue, [(increment, MANY, a, x), (add_next, MANY, x, y)]) == {("RAW", "GLOBAL")}
    assert kinds(queue, [(add_next, MANY, x, y), (increment, MANY, a, x)]) == {("WAR", "GLOBAL")}
    assert kinds(queue, [(increment, MANY, a, x), (write_reversed, MANY, a, x)]) == {
        ("WAW", "GLOBAL")
    }


@fq.kernel
def first_half_only(item: fq.Item, a, out):
    i = item.get_id(0)
    if i >= item.get_range(0) // 2:
        return
    out[i] = a[i] + 1


def plus(x):
    return x + 1


@fq.kernel
def through_a_function(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = plus(a[i])


def test_guards_returns_and_functions_count(queue):
    a, x, y = numbers(MANY), empty(MANY), empty(MANY)
    half = MANY // 2
    report = run(
        queue,
        [(first_half_only, MANY, a, x), (through_a_function, half, x[half:], y[half:])],
    )
    # The kernel returns before it touches the half that the second one reads.
    assert report.strategy == "fused"
    assert {d.scope for d in report.dependences} <= {"NONE"}
    assert (y.numpy()[half:] == 1).all()


# --------------------------------------------------------------------------------- barriers
@pytest.mark.parametrize(
    ("barriers", "crossing", "expected"),
    [
        ("auto", False, 0),
        ("auto", True, 1),
        ("all", False, 1),
        ("all", True, 1),
        ("none", False, 0),
    ],
)
def test_the_barriers_option(queue, barriers, crossing, expected):
    a, middle, out = numbers(), empty(), empty()
    first = reverse_in_group if crossing else increment_nd
    report = run(
        queue,
        [(first, GROUPS, a, middle), (increment_nd, GROUPS, middle, out)],
        barriers=barriers,
    )
    assert report.strategy == "fused"
    assert report.stages[0].barriers == expected
    source = np.arange(N).reshape(-1, 16)[:, ::-1].ravel() if crossing else np.arange(N)
    assert np.array_equal(out.numpy(), source + 2)


def test_barriers_none_is_refused_where_it_is_wrong(queue):
    a, middle, out = numbers(), empty(), empty()
    report = run(
        queue,
        [(reverse_in_group, GROUPS, a, middle), (increment_nd, GROUPS, middle, out)],
        barriers="none",
    )
    assert report.strategy == "unfused"
    assert "barriers='none' allows no work-group barrier" in report.fallback
    assert np.array_equal(out.numpy(), np.arange(N).reshape(-1, 16)[:, ::-1].ravel() + 2)


# ------------------------------------------------------------------- mismatching accesses


MISMATCHES = {
    "another offset": lambda t: (t[:32], t[1:33]),
    "another extent": lambda t: (t[:40], t[:32]),
    "another step": lambda t: (t[:32], t[::2]),
    "the other direction": lambda t: (t[:32], t[31::-1]),
    "another shape": lambda t: (t[:32], fq.Buffer(t.numpy().reshape(8, 8), copy=False)[0:4, 0]),
    "another dtype": lambda t: (t[:32], fq.Buffer(t.numpy()[:32].view(np.uint64), copy=False)),
}


@pytest.mark.parametrize("flag", ["promote_private", "promote_local"])
@pytest.mark.parametrize("mismatch", MISMATCHES)
def test_mismatching_accesses_stay_in_memory(queue, mismatch, flag):
    results = []
    for strategy in ("auto", "unfused"):
        a, out = numbers(), fq.Buffer(np.full(N, -9))
        temporary = fq.Buffer(preset().numpy(), copy=False, **{flag: True})
        written, read = MISMATCHES[mismatch](temporary)
        with fq.fusion(queue, strategy=strategy) as f:
            queue.submit(increment, min(32, len(written)), a, written)
            queue.submit(increment, len(read), read, out)
        if strategy == "auto":
            assert {p.scope for p in f.report.promotions} == {"global"}, f.report
        results.append((temporary.numpy().copy(), out.numpy().copy()))
    for fused, unfused in zip(*results, strict=True):
        assert np.array_equal(fused, unfused)


def test_equal_views_made_twice_do_not_mismatch(queue):
    a, temporary, out = numbers(), preset(promote_private=True), empty()
    report = run(
        queue, [(increment, 32, a, temporary[8:40]), (increment, 32, temporary[8:40], out[:32])]
    )
    assert [p.scope for p in report.promotions] == ["private"]
    assert untouched(temporary)


# ---------------------------------------------------------------------- events, commands
def test_events_before_and_after_every_way_to_end(queue):
    for end in ("complete", "cancel", "abort"):
        a, middle, out = numbers(), empty(), empty()
        queue.start_fusion()
        one = queue.submit(increment, N, a, middle)
        two = queue.submit(increment, N, middle, out)
        assert not one.is_complete
        assert not two.is_complete
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fq.FusionAborted)
            if end == "complete":
                last = queue.complete_fusion()
            elif end == "cancel":
                last = queue.cancel_fusion()
            else:
                two.wait()
                last = queue.complete_fusion()
        assert last is not one
        assert last is not two
        for event in (one, two, last):
            event.wait()
            assert event.is_complete
        assert np.array_equal(out.numpy(), np.arange(N) + 2)


@pytest.mark.parametrize("depends", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        "memcpy from", "memcpy to", "host_task",
        "numpy", "write", "array protocol", "dlpack",
    ],
)  # fmt: skip
def test_commands_that_are_not_kernels(queue, command, depends):
    a, middle, out = numbers(), empty(), empty()
    other = numbers()
    used = out if depends else other
    commands = {
        "memcpy from": lambda: queue.memcpy(np.zeros(N, np.int64), used),
        "memcpy to": lambda: queue.memcpy(used, np.zeros(N, np.int64)),
        "host_task": lambda: queue.host_task(lambda array: array.fill(0), used),
        "numpy": lambda: used.numpy(),
        "write": lambda: used.write(np.zeros(N, np.int64)),
        "array protocol": lambda: np.asarray(used),
        "dlpack": lambda: np.from_dlpack(used),
    }
    queue.start_fusion()
    queue.submit(increment, N, a, middle)
    queue.submit(increment, N, middle, out)
    if depends:
        with pytest.warns(fq.FusionAborted):
            commands[command]()
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            commands[command]()
    assert queue.is_in_fusion_mode() != depends
    queue.complete_fusion().wait()
    writes = command in ("memcpy to", "fill", "host_task", "write")
    expected = np.zeros(N) if depends and writes else np.arange(N) + 2
    assert np.array_equal(out.numpy(), expected)


def test_a_list_of_numpy_arrays(queue):
    a, middle, out = np.arange(N), np.zeros(N, np.int64), np.zeros(N, np.int64)
    report = run(queue, [(increment, N, a, middle), (increment, N, middle, out)])
    queue.wait()
    assert report.strategy == "fused"
    assert [d.scope for d in report.dependences] == ["ITEM"]
    assert np.array_equal(out, np.arange(N) + 2)


def test_device_information(queue):
    info = queue.device
    assert info.name
    assert info.max_work_group_size >= 1
    assert info.local_memory_bytes > 0


def test_another_device_has_its_own_plans(sycl_queue):
    for _ in range(2):
        with fq.FusionQueue("reference") as other:
            for queue in (other, sycl_queue):
                a, middle, out = numbers(), preset(promote_private=True), empty()
                report = run(queue, [(increment, N, a, middle), (increment, N, middle, out)])
                assert report.strategy == "fused"
                assert np.array_equal(out.numpy(), np.arange(N) + 2)
                source = report.device_source
                assert ("__kernel" in source) == (queue is sycl_queue)
    assert report.cache == "memory"
