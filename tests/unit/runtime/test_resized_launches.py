"""Launches that were bound to a list serve lists of its structure of sizes that were never seen,
and no others."""

from __future__ import annotations

import random

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import candidate_runs, prepare
from tests.unit.runtime.kernels import add, add2d, reverse, scale, shift


@fq.kernel
def powers(item: fq.Item, a, n, out):
    i = item.get_id(0)
    total = a[i]
    for _ in range(n):
        total = total * a[i]
    out[i] = total


@pytest.fixture
def bound(monkeypatch, queue):
    """The lists that were bound to a plan, where launches can be resized."""
    lists = []
    if not queue._state.launcher.backend.abilities.resizes:
        return lists
    original = prepare.bind

    def counted(backend, run, pending, fp):
        lists.append(len(pending.entries))
        original(backend, run, pending, fp)

    monkeypatch.setattr(prepare, "bind", counted)
    monkeypatch.setattr(candidate_runs, "bind", counted)
    return lists


def chain(queue, a, b, out, factor=2.0, **options):
    """One place in the program for all lists of a test."""
    n = out.shape[0]
    with fq.fusion(queue, **options) as f:
        between = fq.Buffer(n, np.float32, promote_private=True)
        queue.submit(scale, n, a, factor, between)
        queue.submit(add, n, between, b, out)
    return f


def inputs(n, start=0):
    return [np.arange(start, start + n, dtype=np.float32) % 17 for _ in range(2)]


@pytest.mark.parametrize(("strategy", "most"), [("auto", 12), ("fused", 2)])
def test_lists_of_new_sizes_are_not_bound_again(queue, bound, strategy, most):
    for n in range(65, 105):
        a, b = inputs(n, n)
        out = fq.Buffer(n, np.float32)
        f = chain(queue, fq.Buffer(a), fq.Buffer(b), out, float(n), strategy=strategy)
        assert np.array_equal(out.numpy(), a * np.float32(n) + b)
        assert [s.range for s in f.report.submissions] == [(n,), (n,)]
        assert f.report.submissions[0].arguments[1].value == n
        assert f.report.strategy == "fused"
    assert len(bound) <= most


def test_each_list_keeps_its_sizes_for_replays(queue, bound):
    kept = []
    for n in range(40, 60):
        (a, b), out = inputs(n), fq.Buffer(n, np.float32)
        buffers = fq.Buffer(a), fq.Buffer(b)
        kept.append((chain(queue, *buffers, out, strategy="fused"), *buffers, out, n))
    assert len(bound) <= 2
    for f, a, b, out, n in random.Random(2).sample(kept, len(kept)):
        a.write(np.full(n, n, np.float32))
        f.replay().wait()
        assert np.array_equal(out.numpy(), np.full(n, 2 * n, np.float32) + b.numpy())
        f.replay(factor=3.0).wait()
        assert np.array_equal(out.numpy(), np.full(n, 3 * n, np.float32) + b.numpy())


def test_events_are_enough_to_keep_a_list(queue):
    events, outs = [], []
    for n in range(200, 240):
        (a, b), out = inputs(n, n), fq.Buffer(n, np.float32)
        events.append(chain(queue, fq.Buffer(a), fq.Buffer(b), out).event)
        outs.append((a, b, out))
    for event in events:
        event.wait()
    for a, b, out in outs:
        assert np.array_equal(out.numpy(), a * np.float32(2) + b)


def test_submissions_outside_fusion_mode(queue, bound):
    for n in range(32, 64):
        a, out = fq.Buffer(np.arange(n, dtype=np.float32)), fq.Buffer(n, np.float32)
        queue.submit(scale, n, a, np.float32(n), out)
        assert np.array_equal(out.numpy(), a.numpy() * np.float32(n))
    assert len(bound) <= 3


def test_two_queues_have_launches_of_their_own(queue, target):
    with fq.FusionQueue(target) as other:
        for n in range(100, 130):
            (a, b), out = inputs(n, n), fq.Buffer(n, np.float32)
            chain(queue if n % 3 else other, fq.Buffer(a), fq.Buffer(b), out, float(n))
            again = fq.Buffer(n + 1, np.float32)
            chain(other, fq.Buffer(inputs(n + 1)[0]), fq.Buffer(n + 1, np.float32), again)
            assert np.array_equal(out.numpy(), a * np.float32(n) + b)
            assert np.array_equal(again.numpy(), inputs(n + 1)[0] * np.float32(2))


def test_sizes_and_scalars_for_which_a_plan_does_not_hold(queue):
    """A distance of which it is proved that the work-items that meet are one and the same, or not;
    and a loop's end that the kernel may have as a constant."""
    chance = random.Random(4)
    for n in chance.sample(range(1, 90), 50):
        distance, times = chance.choice((0, 0, 1, n // 2, n)), chance.randint(0, 3)
        a, out = np.arange(n, dtype=np.float32) % 3, fq.Buffer(n, np.float32)
        with fq.fusion(queue):
            between, moved = fq.Buffer(n, np.float32), fq.Buffer(n, np.float32)
            queue.submit(powers, n, fq.Buffer(a), times, between)
            queue.submit(shift, n, between, distance, moved)
            queue.submit(scale, n, moved, 2.0, out)
        expected = np.zeros(n, np.float32)
        expected[: n - distance] = (a ** (times + 1))[distance:]
        assert np.array_equal(out.numpy(), 2 * expected)


def test_empty_ranges_between_others(queue):
    for n in (8, 9, 0, 10, 1, 11, 0, 12):
        (a, b), out = inputs(n), fq.Buffer(n, np.float32)
        chain(queue, fq.Buffer(a), fq.Buffer(b), out)
        assert np.array_equal(out.numpy(), a * 2 + b)


def test_views_whose_distance_stays_overlap_by_their_size(queue):
    """From 40 elements on what one submission writes the other reads."""
    for n in (30, 31, 39, 40, 41, 45, 33, 60, 38, 59):
        store = np.arange(200, dtype=np.float32)
        held, out = fq.Buffer(store), fq.Buffer(n, np.float32)
        with fq.fusion(queue):
            queue.submit(scale, n, held[100 : 100 + n], 3.0, held[:n])
            queue.submit(reverse, n, held[40 : 40 + n], out)
        store[:n] = store[100 : 100 + n] * 3
        assert np.array_equal(out.numpy(), store[40 : 40 + n][::-1])
        assert np.array_equal(held.numpy(), store)


def test_rows_of_other_strides(queue, bound):
    chance = random.Random(7)
    for _ in range(30):
        rows, columns, more = chance.randint(2, 12), chance.randint(2, 40), chance.randint(0, 9)
        a = np.arange(rows * (columns + more), dtype=np.float32).reshape(rows, columns + more)
        part, out = a[:, :columns], np.zeros((rows, columns), np.float32)
        with fq.fusion(queue, strategy="fused"):
            between = fq.Buffer((rows, columns), np.float32)
            queue.submit(add2d, (rows, columns), part, part, between)
            queue.submit(add2d, (rows, columns), between, part, out)
        queue.wait()
        assert np.array_equal(out, part * np.float32(3))


def test_what_asks_for_more_comes_between(queue, every_program_compiled):
    """Checks, measured strategies and profiles have launches of their own."""
    for k, n in enumerate(range(50, 74)):
        (a, b), out = inputs(n, n), fq.Buffer(n, np.float32)
        buffers = fq.Buffer(a), fq.Buffer(b)
        if k % 4 == 1:
            chain(queue, *buffers, out, check=True)
        elif k == 6:
            chain(queue, *buffers, out, tune=True)
        elif k % 4 == 3:
            with fq.profile(queue):
                chain(queue, *buffers, out)
        else:
            chain(queue, *buffers, out)
        assert np.array_equal(out.numpy(), a * np.float32(2) + b)


def test_arrays_in_buffers_and_others_take_turns(queue):
    """Of a Buffer's memory a launch has to know which queue used it last."""
    chance = random.Random(11)
    for n in range(300, 340):
        (a, b), out = inputs(n, n), np.zeros(n, np.float32)
        given = [fq.Buffer(x) if chance.random() < 0.5 else x for x in (a, b)]
        result = fq.Buffer(out) if chance.random() < 0.5 else out
        chain(queue, *given, result).event.wait()
        expected = a * np.float32(2) + b
        assert np.array_equal(result if result is out else result.numpy(), expected)


def test_an_exception_in_between_runs_what_was_submitted(queue):
    for n in range(20, 50):
        (a, b), out = inputs(n, n), fq.Buffer(n, np.float32)
        buffers, between = (fq.Buffer(a), fq.Buffer(b)), fq.Buffer(n, np.float32)
        try:
            with fq.fusion(queue):
                queue.submit(scale, n, buffers[0], 2.0, between)
                if n % 5 == 0:
                    raise KeyError(n)
                queue.submit(add, n, between, buffers[1], out)
        except KeyError:
            assert np.array_equal(between.numpy(), a * np.float32(2))
            assert not out.numpy().any()
        else:
            assert np.array_equal(out.numpy(), a * np.float32(2) + b)


def test_one_beyond_an_array_is_refused_at_any_size(queue):
    for n in range(10, 30):
        (a, b), out = inputs(n), fq.Buffer(n, np.float32)
        chain(queue, fq.Buffer(a), fq.Buffer(b), out)
        with pytest.raises(fq.ArgumentError):
            queue.submit(scale, n + 1, fq.Buffer(a), 2.0, out)
        assert np.array_equal(out.numpy(), a * 2 + b)


def test_a_resized_launch_is_one_that_was_prepared(queue, monkeypatch):
    """Of a copy; what it was copied from stays as it is."""
    backend, prepared = queue._state.launcher.backend, []
    original = type(backend).prepare

    def remembered(self, program, arguments, shape):
        prepared.append((arguments, shape, original(self, program, arguments, shape)))
        return prepared[-1][2]

    monkeypatch.setattr(type(backend), "prepare", remembered)
    a, out = fq.Buffer(np.arange(900, dtype=np.float32)), fq.Buffer(900, np.float32)
    monkeypatch.setattr(queue._state.launcher.cache.resized, "keep", lambda *others: None)
    queue.submit(scale, 10, a[:10], 2.0, out[:10])
    queue.submit(scale, 700, a[100:800], 5.0, out[100:800])
    queue.wait()
    out.write(np.zeros(900, np.float32))
    if not backend.abilities.resizes:
        pytest.skip("its launches have the sizes that they were prepared for")
    (_, _, first), (arguments, shape, _) = prepared
    copy = backend.movable(first, {})
    assert copy.resize(arguments, shape)
    copy.launch().wait()
    first.launch().wait()
    expected = np.zeros(900, np.float32)
    expected[100:800] = np.arange(100, 800) * 5
    expected[:10] = np.arange(10) * 2
    assert np.array_equal(out.numpy(), expected)
