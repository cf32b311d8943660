"""Launches that were bound to a list serve lists of its structure of sizes that were never seen,
and no others."""

from __future__ import annotations

import random

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import candidate_runs, prepare
from fusionq.submission.pending import SubmissionList
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


def test_a_copy_of_the_sizes_before_is_asked_about_its_scalars(queue):
    """Where the fusion before is kept, so that the launches are copied for a list of the same sizes
    whose scalars the plan does not hold for."""
    kept = []
    distances = [0, 2, 3, 4, 5, 0, 0, 3, 3, 0, 0, 5, 0, 0, 7, 7, 0]
    for k, distance in enumerate(distances * 3):
        n = 300 + (k + 1) // 2 % 5
        a, between = fq.Buffer(inputs(n, k)[0]), fq.Buffer(n, np.float32)
        out = fq.Buffer(np.full(n, -1, np.float32))
        with fq.fusion(queue, strategy="sequence") as f:
            queue.submit(scale, n, a, 2.0, between)
            queue.submit(shift, n, between, distance, out)
        kept.append(f)
        expected = np.full(n, -1, np.float32)
        expected[: n - distance] = a.numpy()[distance:] * np.float32(2)
        assert np.array_equal(out.numpy(), expected), (n, distance)
        assert len(f.report.stages) == 1 or distance, (n, distance)


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


@fq.kernel
def moved_on(item: fq.Item, a, start, out):
    i = item.get_id(0)
    out[i] = a[start + i] + start


def submit(queue, kernel, size, *args):
    """One line of the program for all submissions of a test."""
    return queue.submit(kernel, size, *args)


@pytest.fixture
def listed(monkeypatch):
    """The submissions by themselves that were made a list of, to be prepared."""
    made = []
    original = SubmissionList.of.__func__

    def counted(cls, entries, call):
        made.append(len(entries))
        return original(cls, entries, call)

    monkeypatch.setattr(SubmissionList, "of", classmethod(counted))
    return made


def test_a_submission_of_new_sizes_is_recorded_nowhere(queue, listed):
    if not queue._state.launcher.backend.abilities.resizes:
        pytest.skip("its launches have the sizes that they were prepared for")
    cache = queue._state.launcher.cache
    for k, n in enumerate(range(64, 120)):
        a, out = fq.Buffer(np.arange(n, dtype=np.float32)), fq.Buffer(n, np.float32)
        submit(queue, scale, n, a, np.float32(n), out)
        assert np.array_equal(out.numpy(), np.arange(n, dtype=np.float32) * np.float32(n))
        if k == 2:
            listed.clear()
            before = len(cache.known), [len(form.sized) for form in cache.templates._forms.values()]
    assert not listed
    assert before == (
        len(cache.known), [len(form.sized) for form in cache.templates._forms.values()]
    )  # fmt: skip


def test_what_is_refused_at_new_sizes(queue):
    """Sizes and integers of which no check has been made are checked."""
    chance = random.Random(8)
    refused = 0
    for _ in range(120):
        n, more, start = chance.randint(1, 40), chance.randint(0, 4), chance.randint(0, 6)
        a, out = np.arange(n + more, dtype=np.float32), fq.Buffer(n, np.float32)
        if start > more:
            with pytest.raises(fq.ArgumentError, match="start"):
                submit(queue, moved_on, n, fq.Buffer(a), start, out)
            refused += 1
            continue
        submit(queue, moved_on, n, fq.Buffer(a), start, out)
        assert np.array_equal(out.numpy(), a[start : start + n] + np.float32(start))
    assert 20 < refused < 100


def test_sizes_that_stand_in_another_order(queue):
    """Of the range and of two arrays, equal ones, larger ones, and none at all."""
    chance = random.Random(9)
    for _ in range(150):
        n = chance.randint(0, 20)
        of_a, of_out = n + chance.choice((0, 0, 1, -1, 7)), n + chance.choice((0, 0, 1, -1, 7))
        if min(of_a, of_out) < 0:
            continue
        a, out = fq.Buffer(np.arange(of_a, dtype=np.float32)), fq.Buffer(of_out, np.float32)
        if n > min(of_a, of_out):
            with pytest.raises(fq.ArgumentError):
                submit(queue, scale, n, a, 2.0, out)
            continue
        submit(queue, scale, n, a, 2.0, out)
        expected = np.zeros(of_out, np.float32)
        expected[:n] = np.arange(n) * 2
        assert np.array_equal(out.numpy(), expected)


def test_arrays_that_are_one_and_views_of_one(queue):
    """The same Buffer twice, two views of one that are apart, touch, overlap, run backwards, and
    separate ones take turns, at sizes of which most come once."""
    chance = random.Random(10)
    for _ in range(120):
        n = chance.randint(1, 30)
        store = np.arange(4 * n, dtype=np.float32)
        held = fq.Buffer(store)
        kind = chance.randrange(5)
        parts = {
            0: (slice(0, n), slice(0, n)),
            1: (slice(0, n), slice(n, 2 * n)),
            2: (slice(n, 2 * n), slice(3 * n, 4 * n)),
            3: (slice(2 * n, n, -1), slice(3 * n, 4 * n)),
            4: (slice(0, 2 * n, 2), slice(2 * n, 4 * n, 2)),
        }[kind]  # fmt: skip
        a, out = held[parts[0]], held[parts[1]]
        submit(queue, scale, n, a, np.float32(3), out)
        expected = store.copy()
        expected[parts[1]] = store[parts[0]] * np.float32(3)
        assert np.array_equal(held.numpy(), expected), kind
        shared = store.copy()
        submit(queue, scale, n, shared[parts[0]], np.float32(3), shared[parts[1]])
        queue.wait()
        assert np.array_equal(shared, expected), kind


def test_rows_of_other_strides_by_themselves(queue):
    chance = random.Random(12)
    for _ in range(60):
        rows, columns, more = chance.randint(1, 9), chance.randint(1, 30), chance.randint(0, 5)
        a = np.arange(rows * (columns + more), dtype=np.float32).reshape(rows, columns + more)
        part, out = a[:, :columns], np.zeros((rows, columns), np.float32)
        submit(queue, add2d, (rows, columns), part, part[::-1], out)
        queue.wait()
        assert np.array_equal(out, part + part[::-1])


def test_memory_that_cannot_be_had_at_a_new_size(queue, monkeypatch):
    backend = queue._state.launcher.backend
    for n in range(20, 30):
        a = fq.Buffer(np.arange(n, dtype=np.float32))
        out = fq.Buffer(n, np.float32)
        if n == 25:

            def refuse(nbytes: int, *others: object) -> None:
                raise fq.DeviceError("there is no memory")

            with monkeypatch.context() as patched:
                for name in ("allocate", "filled", "unfilled"):
                    patched.setattr(backend, name, refuse)
                with pytest.raises(fq.DeviceError, match=r"argument 'out'.*there is no memory"):
                    submit(queue, scale, n, a, 2.0, out)
        submit(queue, scale, n, a, 2.0, out)
        assert np.array_equal(out.numpy(), np.arange(n) * 2)


def test_buffers_go_from_one_device_to_another_and_back(queue):
    with fq.FusionQueue("reference") as other:
        held = [fq.Buffer(np.ones(n, np.float32)) for n in range(30, 50)]
        for _ in range(3):
            for turn in (queue, other):
                for buffer in held:
                    submit(turn, scale, buffer.shape[0], buffer, 2.0, buffer)
        for buffer in held:
            assert (buffer.numpy() == 64).all()


def test_sizes_and_what_else_a_list_of_one_is_for(queue):
    """A list of one that runs unfused has launches like those of a submission by itself."""
    reports = []
    for n in range(40, 70):
        a, out = fq.Buffer(np.arange(n, dtype=np.float32)), fq.Buffer(n, np.float32)
        if n % 3 == 0:
            with fq.fusion(queue, strategy="unfused") as f:
                submit(queue, scale, n, a, np.float32(n), out)
            reports.append((f, out, n))
        else:
            submit(queue, scale, n, a, np.float32(n), out)
        assert np.array_equal(out.numpy(), np.arange(n, dtype=np.float32) * np.float32(n))
    for f, out, n in reports:
        out.write(np.zeros(n, np.float32))
        f.replay().wait()
        assert np.array_equal(out.numpy(), np.arange(n, dtype=np.float32) * np.float32(n))
        assert [s.range for s in f.report.submissions] == [(n,)]


@fq.kernel
def mean_of_three(item: fq.Item, a, first, out):
    i = item.get_id(0)
    if i >= first and i > 0 and i < a.shape[0] - 1:
        out[i] = (a[i - 1] + a[i] + a[i + 1]) * np.float32(0.25)


@pytest.mark.slow
def test_persistent_kernels_of_new_sizes(queue):
    """Of one tile a stage by one worker, whose tiles wait for whole stages, or of more; stages of
    which nothing is stored are among them."""
    chance, strategies = random.Random(13), set()
    for n in [*chance.sample(range(1, 90), 12), 5_000, 64, 20_000, 63]:
        contents = [np.arange(n, dtype=np.float32) * k % 5 for k in (1, 3)]
        a, b = map(fq.Buffer, contents)
        with fq.fusion(queue, strategy="megakernel") as f:
            for k in range(4):
                first = chance.choice((0, 1, n // 2, n))
                source, target = (a, b) if k % 2 == 0 else (b, a)
                queue.submit(mean_of_three, n, source, first, target)
                now, then = contents if k % 2 == 0 else contents[::-1]
                mean = (now[:-2] + now[1:-1] + now[2:]) * np.float32(0.25)
                low = max(first, 1)
                then[low:-1] = mean[low - 1 :]
        assert np.array_equal(a.numpy(), contents[0])
        assert np.array_equal(b.numpy(), contents[1])
        strategies.add(f.report.strategy)
    assert "megakernel" in strategies
