"""Arguments that are new at each call: what is known of a submission serves others like it, and
nothing else."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import fusionq as fq
from fusionq.submission import admission
from fusionq.submission.known import KnownSubmission


@fq.kernel
def scaled(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def shifted(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i + 1]


@fq.kernel
def taken(item: fq.Item, a, start, out):
    i = item.get_id(0)
    out[i] = a[start + i]


@pytest.fixture
def checks(monkeypatch):
    """How many submissions were checked from the start."""
    calls = []
    original = admission._checked_kernel

    def counted(*args):
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(admission, "_checked_kernel", counted)
    return calls


def submit(queue, kernel, size, *args):
    """One line of the program for all submissions of a test."""
    return queue.submit(kernel, size, *args)


@fq.kernel
def copied(item: fq.Item, a, out):
    i = item.get_id(0)
    out[i] = a[i]


def test_sizes_that_are_no_longer_equal_are_checked_again(queue):
    """The first check speaks of one size: that of the range and of both arrays."""

    def arrays(*sizes):
        return [fq.Buffer(np.ones(size, np.float32)) for size in sizes]

    submit(queue, copied, 8, *arrays(8, 8)).wait()
    for sizes in ((4, 4), (8, 4), (4, 8)):
        with pytest.raises(fq.ArgumentError, match=r"element \[4\]"):
            submit(queue, copied, 8, *arrays(*sizes))
    whole = fq.Buffer(np.ones(8, np.float32))
    with pytest.raises(fq.ArgumentError, match=r"element \[4\]"), fq.fusion(queue):
        submit(queue, copied, 8, *arrays(8, 8))
        submit(queue, copied, 8, whole[:4], whole[4:])
    submit(queue, copied, 4, *arrays(8, 6)).wait()
    with pytest.raises(fq.ArgumentError, match=r"element \[6\]"):
        submit(queue, copied, 7, *arrays(8, 6))


def test_new_buffers_sizes_and_views_are_not_checked_again(queue, checks):
    source = np.arange(400, dtype=np.float32)
    for size in range(90, 120):
        out = fq.Buffer(size, np.float32)
        submit(queue, scaled, size, fq.Buffer(source[:size]), np.float32(size), out)
        assert np.array_equal(out.numpy(), source[:size] * np.float32(size))
    assert len(checks) == 1
    kept = []
    for start in range(30):
        out = np.zeros(50, np.float32)
        submit(queue, scaled, 50, source[start : start + 50], np.float32(2), out)
        queue.wait()
        kept.append(out)  # so that the next one lies elsewhere
        assert np.array_equal(out, source[start : start + 50] * np.float32(2))
    assert len(checks) == 2


def test_temporaries_leave_nothing_in_the_tables(queue):
    cache = queue._state.launcher.cache
    for _ in range(200):
        with fq.fusion(queue):
            a, out = fq.Buffer(np.ones(64, np.float32)), fq.Buffer(64, np.float32)
            submit(queue, scaled, 64, a, np.float32(3), out)
            submit(queue, scaled, 64, out, np.float32(5), out)
        assert (out.numpy() == 15).all()
    del a, out
    gc.collect()
    cache.drop_stale()
    assert len(cache.known) <= 4
    assert len(cache.runs) <= 4


@pytest.mark.slow
def test_sizes_that_never_come_again_leave_nothing_among_the_runs(queue):
    """Though what is known of earlier ones is gone, and their addresses are others' now."""
    cache = queue._state.launcher.cache
    cache.templates._capacity = 4
    for n in range(1, 200):
        a, out = fq.Buffer(np.ones(n, np.float32)), fq.Buffer(n, np.float32)
        submit(queue, scaled, n, a, np.float32(3), out)
        assert (out.numpy() == 3).all()
        cache.known.clear()
    for _ in range(3):
        a, out = fq.Buffer(np.ones(9, np.float32)), fq.Buffer(9, np.float32)
        submit(queue, scaled, 9, a, np.float32(3), out)
    assert not cache.by_sizes._runs
    assert len(cache.resized._known) <= 8, "one for each order of magnitude"


def test_arrays_that_live_on_leave_nothing_in_the_tables_either(queue):
    cache = queue._state.launcher.cache
    alive = []
    for _ in range(30):
        a, out = np.ones(16), np.zeros(16)
        with fq.fusion(queue):
            submit(queue, scaled, 16, a, 2.0, out)
            submit(queue, scaled, 16, out, 2.0, out)
        queue.wait()
        alive.append((a, out))
        assert (out == 4).all()
    assert len(cache.known) <= 2
    assert len(cache.runs) <= 1


def test_what_comes_again_is_remembered_from_the_second_time_on(queue):
    known = queue._state.launcher.cache.known
    pairs = [(fq.Buffer(np.ones(8)), fq.Buffer(8, np.float64)) for _ in range(3)]
    for times in range(4):
        for a, out in pairs:
            submit(queue, scaled, 8, a, 2.0, out)
        assert len(known) == (1 if times == 0 else 3)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (lambda a, out: (a[:9], out), "leaves|exceeds|outside|out of"),
        (lambda a, out: (a, np.broadcast_to(np.float32(1), 10)), "read-only"),
        (lambda a, out: (a[:, None], out), "a number is needed here"),
        (lambda a, out: (a.astype(np.complex64), out), "a complex number"),
        (lambda a, out: (a, np.ma.array(out)), "masked"),
    ],
)
def test_what_is_refused_is_refused_after_good_ones(queue, args, reason):
    a, out = np.arange(11, dtype=np.float32), np.zeros(10, np.float32)
    for _ in range(3):
        submit(queue, shifted, 10, a.copy(), out.copy())
    with pytest.raises((fq.ArgumentError, fq.KernelLanguageError), match=reason):
        submit(queue, shifted, 10, *args(a, out))
    queue.wait()


def test_integers_are_checked_with_new_arrays_too(queue):
    for start in range(4):
        a, out = fq.Buffer(np.arange(20.0)), fq.Buffer(10, np.float64)
        submit(queue, taken, 10, a, start, out)
        assert np.array_equal(out.numpy(), np.arange(20.0)[start : start + 10])
    with pytest.raises(fq.ArgumentError, match="start"):
        submit(queue, taken, 10, fq.Buffer(np.arange(20.0)), 11, fq.Buffer(10, np.float64))


def test_new_memory_that_is_shared_keeps_the_order(queue):
    """Plans for separate arrays do not serve arrays that overlap, nor the other way round."""
    rng = np.random.default_rng(5)
    for round_ in range(12):
        memory = rng.random(70).astype(np.float32)
        kinds = {
            0: (memory[:40], memory[20:60]),
            1: (memory[:40].copy(), memory[20:60].copy()),
            2: (memory[39::-1], memory[:40]),
            3: (memory[:40], memory[:40]),
        }
        a, out = kinds[round_ % 4]
        expected = memory.copy()
        offset = (a.ctypes.data - memory.ctypes.data) // 4
        inside = 0 <= offset < 70
        wa, wout = (
            (
                np.lib.stride_tricks.as_strided(expected[offset:], a.shape, a.strides),
                expected[20:60] if round_ % 4 == 0 else expected[:40],
            )
            if inside
            else (a.copy(), out.copy())
        )
        with fq.fusion(queue) as f:
            submit(queue, scaled, 40, a, np.float32(2), out)
            submit(queue, scaled, 40, out, np.float32(3), a)
        f.event.wait()
        if round_ % 4 in (0, 2):
            continue  # one kernel that reads what another work-item of it writes has no order
        wout[:] = wa * np.float32(2)
        wa[:] = wout * np.float32(3)
        assert np.array_equal(a, wa)
        assert np.array_equal(out, wout)


def test_empty_arrays_after_others(queue, checks):
    for size in (5, 7, 0, 3, 0):
        out = fq.Buffer(size, np.float64)
        submit(queue, scaled, size, fq.Buffer(np.ones(size)), 4.0, out)
        assert (out.numpy() == 4.0).all()
    assert len(checks) > 1


def test_flags_are_part_of_the_form(queue):
    for flag in (False, True, False, True):
        a = fq.Buffer(np.arange(30.0))
        between = fq.Buffer(30, np.float64, promote_private=flag)
        out = fq.Buffer(30, np.float64)
        with fq.fusion(queue) as f:
            submit(queue, scaled, 30, a, 2.0, between)
            submit(queue, scaled, 30, between, 3.0, out)
        assert np.array_equal(out.numpy(), np.arange(30.0) * 6)
        assert between.is_allocated is not flag
        assert bool(f.report.promotions) is flag


@pytest.fixture
def recorded(monkeypatch):
    """The submissions that were made from others, to be recorded."""
    made = []
    original = KnownSubmission._with

    def counted(entry, operands):
        made.append(operands)
        return original(entry, operands)

    monkeypatch.setattr(KnownSubmission, "_with", counted)
    return made


def temporaries(kind, size, start):
    """Arguments in memory of their own, and how to see the result."""
    a = np.arange(start, start + size, dtype=np.float32)
    if kind == "arrays":
        out = np.zeros(size, np.float32)
        return a, out, lambda: out
    out = fq.Buffer(size, np.float32)
    return fq.Buffer(a), out, out.numpy


@pytest.mark.parametrize("kind", ["buffers", "arrays"])
def test_a_launch_in_other_memory_is_recorded_nowhere(queue, recorded, kind):
    alive, known = [], queue._state.launcher.cache.known
    for k in range(12):
        a, out, seen = temporaries(kind, 40, k)
        event = submit(queue, scaled, 40, a, float(k), out)
        event.wait()
        assert np.array_equal(seen(), np.arange(k, k + 40, dtype=np.float32) * np.float32(k))
        alive.append((a, out))
        if k == 2:  # the launch of the first belongs to it, that of the second to all others
            recorded.clear()
            before = len(known)
    assert not recorded
    assert len(known) == before


def test_what_keeps_its_memory_is_remembered_beside_launches_in_other_memory(queue):
    pairs = [temporaries("buffers", 24, k) for k in range(8)]
    for _ in range(3):
        for k, (a, out, seen) in enumerate(pairs):
            submit(queue, scaled, 24, a, 2.0, out)
            assert np.array_equal(seen(), np.arange(k, k + 24, dtype=np.float32) * 2)
    assert len(queue._state.launcher.cache.known) == len(pairs)


def test_launches_in_other_memory_are_checked_as_others(queue):
    for start in range(5):
        a, out, seen = temporaries("arrays", 10, 3)
        submit(queue, taken, 6, a, start % 3, out)
        queue.wait()
        assert np.array_equal(seen()[:6], a[start % 3 :][:6])
    for start, reason in [(5, "start"), (2**70, "start")]:
        with pytest.raises(fq.ArgumentError, match=reason):
            submit(queue, taken, 6, *temporaries("arrays", 10, 3)[:1], start, out)
    with pytest.raises(fq.ArgumentError):
        submit(queue, taken, 6, a, start, {}, out)
    queue.close()
    with pytest.raises(fq.FusionStateError, match="closed"):
        submit(queue, taken, 6, *temporaries("arrays", 10, 3)[:1], 1, out)


def test_launches_in_other_memory_end_other_queues_fusion(queue, target):
    """What a list of another queue's writes is there before it is read."""
    for k in range(4):
        a, out, seen = temporaries("buffers", 16, k)
        submit(queue, scaled, 16, a, 2.0, out)
    other = fq.FusionQueue(target)
    a, out, seen = temporaries("buffers", 16, 1)
    other.start_fusion()
    submit(other, scaled, 16, a, 3.0, a)
    with pytest.warns(fq.FusionAborted):
        submit(queue, scaled, 16, a, 2.0, out)
    assert np.array_equal(seen(), np.arange(1, 17, dtype=np.float32) * 6)


def test_memory_of_launches_in_other_memory_is_kept_until_they_have_run(queue):
    results = []
    for k in range(30):
        a, out = np.full(5_000, k, np.float32), fq.Buffer(5_000, np.float32)
        submit(queue, scaled, 5_000, a, 2.0, out)
        del a
        results.append(out)
    gc.collect()
    for k, out in enumerate(results):
        assert (out.numpy() == 2 * k).all()
