"""Launches that were prepared for a list serve lists that differ in memory only, and no others."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import fusionq as fq
from fusionq.execution import prepare as preparing


@fq.kernel
def scaled(item: fq.Item, a, factor, out):
    i = item.get_id(0)
    out[i] = a[i] * factor


@fq.kernel
def added(item: fq.Item, a, b, out):
    i = item.get_id(0)
    out[i] = a[i] + b[i]


@fq.kernel
def powers(item: fq.Item, a, n, out):
    i = item.get_id(0)
    total = a[i]
    for _ in range(n):
        total = total * a[i]
    out[i] = total


@pytest.fixture
def prepared(monkeypatch):
    """The lists whose launches were prepared from a plan."""
    lists = []
    original = preparing.prepare

    def counted(backend, pending, *others):
        lists.append(len(pending.entries))
        return original(backend, pending, *others)

    monkeypatch.setattr(preparing, "prepare", counted)
    return lists


def chain(queue, n, a, b, between, out, factor=2.0):
    """One place in the program for all lists of a test."""
    with fq.fusion(queue) as f:
        queue.submit(scaled, n, a, factor, between)
        queue.submit(added, n, between, b, out)
    return f


def test_lists_of_new_memory_are_not_prepared_again(queue, prepared):
    source = np.arange(300, dtype=np.float32)
    kept = []
    for k in range(12):
        a, b = fq.Buffer(source[k : k + 64]), fq.Buffer(source[:64])
        between = fq.Buffer(64, np.float32, promote_private=True)
        out = fq.Buffer(64, np.float32)
        f = chain(queue, 64, a, b, between, out, float(k))
        assert np.array_equal(out.numpy(), source[k : k + 64] * np.float32(k) + source[:64])
        assert not between.is_allocated
        assert [s.range for s in f.report.submissions] == [(64,), (64,)]
        assert f.report.submissions[0].arguments[1].value == k
        kept.append((f, a, b, out))
    assert len(prepared) <= 3
    for k, (f, a, _, out) in enumerate(kept):  # each has memory of its own
        a.write(source[:64] + np.float32(1))
        f.replay().wait()
        expected = (source[:64] + np.float32(1)) * np.float32(k) + source[:64]
        assert np.array_equal(out.numpy(), expected)


def test_submissions_of_new_memory_outside_fusion_mode(queue, prepared):
    for k in range(8):
        a, out = fq.Buffer(np.arange(32, dtype=np.float32) + k), fq.Buffer(32, np.float32)
        queue.submit(scaled, 32, a, np.float32(k), out)
        assert np.array_equal(out.numpy(), a.numpy() * np.float32(k))
    assert len(prepared) <= 3


def test_launches_that_still_run_keep_their_memory(queue):
    """Each submission has the same launch with other pointers, before the one before has run."""
    rng = np.random.default_rng(5)
    sources = [rng.random(3000).astype(np.float32) for _ in range(40)]
    outs = []
    for k, source in enumerate(sources):
        out = fq.Buffer(3000, np.float32)
        queue.submit(scaled, 3000, fq.Buffer(source), np.float32(k), out)
        outs.append(out)
    for k, (source, out) in enumerate(zip(sources, outs, strict=True)):
        assert np.array_equal(out.numpy(), source * np.float32(k))


def test_a_list_of_one_keeps_its_launch(queue):
    """Lists that are replayed, and submissions that come again, beside ones that never do."""
    known = fq.Buffer(np.full(32, 7, np.float32)), fq.Buffer(32, np.float32)

    def one(k, a, out):
        queue.submit(scaled, 32, a, np.float32(k), out)

    for k in range(6):
        a, out = fq.Buffer(np.full(32, k, np.float32)), fq.Buffer(32, np.float32)
        with fq.fusion(queue, strategy="unfused") as f:
            one(3, a, out)
        for _ in range(3):
            temporary = fq.Buffer(32, np.float32)
            one(5, fq.Buffer(np.full(32, 2, np.float32)), temporary)
            assert (temporary.numpy() == 10).all()
            one(k, *known)
            assert (known[1].numpy() == 7 * k).all()
        a.write(np.full(32, k + 1, np.float32))
        f.replay().wait()
        assert (out.numpy() == 3 * (k + 1)).all()
        assert (temporary.numpy() == 10).all()


def test_views_at_any_offset(queue, prepared):
    source = np.arange(400, dtype=np.float32)
    results = np.zeros((30, 40), np.float32)
    for k in range(30):
        a, b = source[k : k + 40], source[200 + k : 240 + k]
        chain(queue, 40, a, b, np.zeros(40, np.float32), results[k]).event.wait()
        assert np.array_equal(results[k], a * np.float32(2) + b)
    assert len(prepared) <= 3
    store, out = fq.Buffer(source), fq.Buffer((12, 40), np.float32)
    del prepared[:]
    for k in range(12):
        between = fq.Buffer(40, np.float32)
        chain(queue, 40, store[k : k + 40], store[100 + k : 140 + k], between, out[k])
        assert np.array_equal(out.numpy()[k], source[k : k + 40] * 2 + source[100 + k : 140 + k])
    assert len(prepared) <= 3
    del prepared[:]
    for k in range(12):  # of one Buffer, another distance is another aliasing
        between = fq.Buffer(40, np.float32)
        chain(queue, 40, store[:40], store[100 + k : 140 + k], between, out[k])
        assert np.array_equal(out.numpy()[k], source[:40] * 2 + source[100 + k : 140 + k])
    assert len(prepared) == 11


def test_distances_between_views_of_one_buffer(queue):
    """What one kernel writes the other one reads, from the same element on, from others, or not at
    all, by the distance of the views."""
    source = np.arange(400, dtype=np.float32)
    for k in range(60):
        store, expected = fq.Buffer(source), source.copy()
        start, distance = k % 7, (0, 1, 8, 39, 40, 41, -1, -8, -40)[k % 9]
        between, b = 100 + start, 100 + start + distance
        with fq.fusion(queue):
            queue.submit(scaled, 40, store[start : start + 40], 2.0, store[between : between + 40])
            queue.submit(
                added, 40, store[b : b + 40], store[start : start + 40],
                store[200 + start : 240 + start],
            )  # fmt: skip
        expected[between : between + 40] = source[start : start + 40] * np.float32(2)
        expected[200 + start : 240 + start] = expected[b : b + 40] + source[start : start + 40]
        assert np.array_equal(store.numpy(), expected), (start, distance)


def test_any_sharing_of_memory_between_the_kernels(queue):
    """Each argument anywhere in few pieces of memory; in one kernel, what is written is apart from
    what is read, or the same."""
    rng = np.random.default_rng(11)
    n, found = 24, 0
    for _ in range(150):
        memory = [rng.random(3 * n).astype(np.float32) for _ in range(2)]
        buffers = [fq.Buffer(m) for m in memory]
        arrays = [m.copy() for m in memory]
        of_arrays = rng.random() < 0.5
        places = [
            (int(rng.integers(2)), int(rng.choice([0, 0, 7, n, n, 2 * n]))) for _ in range(4)
        ]

        def apart(one, other):
            return one == other or one[0] != other[0] or abs(one[1] - other[1]) >= n

        a, b, between, out = places
        if not (apart(a, between) and apart(between, out) and apart(b, out)):
            continue
        found += 1
        given = arrays if of_arrays else buffers
        chain(queue, n, *[given[m][start : start + n] for m, start in places]).event.wait()
        wanted = [memory[m][start : start + n] for m, start in places]
        wanted[2][:] = wanted[0] * np.float32(2)
        wanted[3][:] = wanted[2] + wanted[1]
        results = arrays if of_arrays else [buffer.numpy() for buffer in buffers]
        for result, expected in zip(results, memory, strict=True):
            assert np.array_equal(result, expected), places
    assert found > 40


def test_an_array_of_a_buffer_beside_that_buffer(queue):
    for k in range(10):
        buffer = fq.Buffer(np.arange(16, dtype=np.float32))
        other = buffer.numpy() if k % 2 else np.ones(16, np.float32)
        if queue._state.target.device.host_memory:
            chain(queue, 16, buffer, other, fq.Buffer(16, np.float32), other).event.wait()
            first = np.arange(16, dtype=np.float32)
            assert np.array_equal(other, first * 3 if k % 2 else first * 2 + 1)


@pytest.mark.parametrize("size", [0, 1])
def test_few_elements(queue, size):
    for k in range(6):
        a, b = (fq.Buffer(np.full(size, v, np.float32)) for v in (k, 1))
        out = fq.Buffer(size, np.float32)
        chain(queue, size, a, b, fq.Buffer(size, np.float32, promote_private=True), out)
        assert np.array_equal(out.numpy(), np.full(size, 2 * k + 1, np.float32))


def test_scalars_on_which_the_kernel_rests(queue):
    for k in [2, 3, 2, 3, 4, 2, 0, 4]:
        a, out = fq.Buffer(np.arange(8.0)), fq.Buffer(8, np.float64)
        between = fq.Buffer(8, np.float64)
        with fq.fusion(queue):
            queue.submit(powers, 8, a, k, between)
            queue.submit(added, 8, between, a, out)
        assert np.array_equal(out.numpy(), np.arange(8.0) ** (k + 1) + np.arange(8.0))


def test_zero_and_its_negative_are_two_scalars(queue):
    for k in range(8):
        factor = np.float32(0.0 if k % 2 else -0.0)
        out = fq.Buffer(4, np.float32)
        queue.submit(scaled, 4, fq.Buffer(np.ones(4, np.float32)), factor, out)
        assert (np.signbit(out.numpy()) == np.signbit(factor)).all()


def test_sizes_that_vary_leave_no_runs(queue):
    cache = queue._state.launcher.cache
    for n in range(8, 60):
        a, out = fq.Buffer(np.ones(n, np.float32)), fq.Buffer(n, np.float32)
        chain(queue, n, a, a, fq.Buffer(n, np.float32), out)
        assert (out.numpy() == 3).all()
    assert not cache.by_sizes._runs


def test_options_are_part_of_the_kind(queue):
    for k in range(8):
        a, out = fq.Buffer(np.ones(16, np.float32)), fq.Buffer(16, np.float32)
        between = fq.Buffer(16, np.float32)
        with fq.fusion(queue, strategy="unfused" if k % 2 else "fused") as f:
            queue.submit(scaled, 16, a, np.float32(2), between)
            queue.submit(added, 16, between, a, out)
        assert (out.numpy() == 3).all()
        assert len(f.report.stages) == (2 if k % 2 else 1)


def test_threads_with_a_queue_each_and_with_one_queue(queue):
    failures = []

    def work(queue, seed):
        rng = np.random.default_rng(seed)
        for _ in range(25):
            a = rng.random(32).astype(np.float32)
            out = fq.Buffer(32, np.float32)
            queue.submit(scaled, 32, fq.Buffer(a), np.float32(seed), out)
            if not np.array_equal(out.numpy(), a * np.float32(seed)):
                failures.append(seed)

    own = [fq.FusionQueue("reference") for _ in range(2)]
    threads = [threading.Thread(target=work, args=(q, k)) for k, q in enumerate([queue] * 3 + own)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_memory_that_cannot_be_had_is_told_by_name(queue, monkeypatch):
    def lists(count):
        for _ in range(count):
            a, out = fq.Buffer(np.ones(16, np.float32)), fq.Buffer(16, np.float32)
            queue.submit(scaled, 16, a, np.float32(2), out)

    lists(5)
    queue.wait()
    a, out = fq.Buffer(np.ones(16, np.float32)), fq.Buffer(16, np.float32)

    def refuse(nbytes):
        raise fq.DeviceError("there is no memory")

    monkeypatch.setattr(queue._state.launcher.backend, "allocate", refuse)
    with pytest.raises(fq.DeviceError, match=r"argument 'out'.*there is no memory"):
        queue.submit(scaled, 16, a, np.float32(2), out)


def test_launches_of_lists_that_nobody_has_serve_the_next(queue):
    source = np.arange(50, dtype=np.float32)

    def block(k: int) -> tuple[fq.Fusion, fq.Buffer]:
        out = fq.Buffer(50, np.float32)
        a, b = fq.Buffer(source), fq.Buffer(source + k)
        return chain(queue, 50, a, b, fq.Buffer(50, np.float32), out, k + 0.5), out

    def given() -> object:
        (known,) = queue._state.launcher.cache.resized._known.values()
        return known.given

    for k in range(5):
        fusion, out = block(k)
        assert np.array_equal(out.numpy(), source * np.float32(k + 0.5) + source + k)
        del fusion
    first = id(given())
    for k in range(5):
        fusion, out = block(k)
        del fusion
        assert np.array_equal(out.numpy(), source * np.float32(k + 0.5) + source + k)
        assert id(given()) == first
    kept = [block(k) for k in range(4)]
    runs = [fusion._list.run for fusion, _ in kept]
    assert len({id(run) for run in runs}) == 4
    for k, (fusion, out) in enumerate(kept):
        out.write(np.zeros(50, np.float32))
        fusion.replay().wait()
        assert np.array_equal(out.numpy(), source * np.float32(k + 0.5) + source + k)
        assert len(fusion.report.submissions) == 2
    events = [fusion.event for fusion, _ in kept]
    reports = [fusion.report for fusion, _ in kept]
    texts = [str(report) for report in reports]
    del kept, fusion, runs
    for k in range(3):
        _, out = block(k)
        assert np.array_equal(out.numpy(), source * np.float32(k + 0.5) + source + k)
    assert [str(report) for report in reports] == texts
    for event in events:
        event.wait()


def test_a_submissions_event_keeps_the_launches_of_its_list(queue):
    source, held = np.arange(9, dtype=np.float32), []
    for _ in range(6):
        a, out = fq.Buffer(source), fq.Buffer(9, np.float32)
        with fq.fusion(queue):
            held.append(queue.submit(scaled, 9, a, 2.0, a))
            queue.submit(added, 9, a, a, out)
        assert np.array_equal(out.numpy(), 4 * source)
    assert len({id(event._list.run) for event in held}) == 6


def test_launches_that_serve_again_where_memory_has_moved(queue):
    source = np.arange(20, dtype=np.float32)
    for k in range(8):
        a, out = fq.Buffer(source), fq.Buffer(20, np.float32)
        f = chain(queue, 20, a, a, fq.Buffer(20, np.float32), out, 2.0)
        if k > 5:
            type(a._storage).moves += 1
            out.write(np.zeros(20, np.float32))
            f.replay().wait()
        assert np.array_equal(out.numpy(), 3 * source)
        del f
