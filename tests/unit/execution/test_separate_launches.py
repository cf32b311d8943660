"""Lists of temporaries that run each submission by itself until there is a plan take launches that
their kind has, and give what plain submits give."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends.reference.launch import ReferenceLaunch
from fusionq.base.errors import DeviceError
from fusionq.runtime import state
from tests.unit.execution.adaptive_lists import Immediate, Times
from tests.unit.execution.programs import neighbours, scale

N = 12


@fq.kernel
def rotated(item: fq.Item, a, k, b):
    i = item.get_id(0)
    b[i] = a[(i + k) % a.shape[0]]


@fq.kernel
def picked(item: fq.Item, a, k, b):
    i = item.get_id(0)
    b[i] = a[i * k]


@pytest.fixture
def queue(background: Immediate, times: Times) -> fq.FusionQueue:
    """One on which no candidate gets ready."""
    background.works = False
    times.update(unfused=1e-7)
    return fq.FusionQueue("reference")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many submissions of each list were launched so."""
    counts: list[int] = []
    launch = state.launch_separate

    def counted(*arguments):  # type: ignore[no-untyped-def]
        events = launch(*arguments)
        counts.append(len(events))
        return events

    monkeypatch.setattr(state, "launch_separate", counted)
    return counts


def new(*shape: int) -> fq.Buffer:
    return fq.Buffer(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def three_steps(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer, factor: float) -> fq.Fusion:
    with fq.fusion(queue) as f:
        queue.submit(scale, N, a, b, np.float32(factor))
        queue.submit(neighbours, N, b, a)
        queue.submit(scale, N, a, b, np.float32(factor + 1))
    return f


def after_three_steps(factor: float) -> np.ndarray:
    a = np.arange(N, dtype=np.float32)
    b = a * np.float32(factor)
    a[1:-1] = b[:-2] + b[2:]
    return a * np.float32(factor + 1)


def test_from_the_third_list_of_a_kind_on(queue: fq.FusionQueue, launched: list[int]) -> None:
    for k in range(6):
        a, b = new(N), fq.Buffer(N, np.float32)
        f = three_steps(queue, a, b, k + 1.0)
        assert f.report.strategy == "unfused"
        assert f.event.is_complete
        assert np.array_equal(b.numpy(), after_three_steps(k + 1.0))
    assert launched == [0, 0, 3, 3, 3, 3]


def test_nothing_of_a_list_stays_when_it_has_run(queue: fq.FusionQueue) -> None:
    for k in range(4):
        f = three_steps(queue, new(N), fq.Buffer(N, np.float32), k + 1.0)
        assert f._list is not None
        assert f._list.kind is None and f._list.alike is None


def test_another_sharing_of_memory_is_another_kind(
    queue: fq.FusionQueue, launched: list[int]
) -> None:
    whole = [lambda: (new(N), new(N)), lambda: (lambda x: (x, x))(new(N))]
    parts: list[Callable[[], tuple[fq.Buffer, fq.Buffer]]] = [
        lambda: (lambda w: (w[:N], w[N:]))(new(2 * N)),
        lambda: (lambda w: (w[N:], w[:N]))(new(2 * N)),
    ]
    for _ in range(5):
        for make in (*whole, *parts):
            (a, b), (c, d) = make(), make()
            queue.submit(scale, N, a, b, np.float32(2))
            queue.submit(scale, N, b, a, np.float32(3))
            with fq.fusion(queue):
                queue.submit(scale, N, c, d, np.float32(2))
                queue.submit(scale, N, d, c, np.float32(3))
            for one, other in ((a, c), (b, d)):
                assert np.array_equal(one.numpy(), other.numpy())
    assert launched[-4:] == [2, 2, 2, 2]


def test_scalars_that_vary(queue: fq.FusionQueue, launched: list[int]) -> None:
    """Also those for which a submission's plan has to hold, and zeros of both signs."""
    for k in (0, 1, 2, 1, 5, 11, 3, 12, 2):
        factor = np.float32(-0.0 if k % 2 else 0.0)
        a, b, c = new(N), fq.Buffer(N, np.float32), fq.Buffer(N, np.float32)
        with fq.fusion(queue):
            queue.submit(rotated, N, a, k, b)
            queue.submit(scale, N, b, c, factor)
            queue.submit(rotated, N, b, k + 1, a)
        host = np.arange(N, dtype=np.float32)
        assert np.array_equal(b.numpy(), np.roll(host, -k))
        assert c.numpy().tobytes() == (np.roll(host, -k) * factor).tobytes()
        assert np.array_equal(a.numpy(), np.roll(host, -2 * k - 1))
    assert launched[-3:] == [3, 3, 3]


def test_a_scalar_for_which_an_index_leaves_its_array_is_refused(queue: fq.FusionQueue) -> None:
    for k in (1, 1, 1, 1):
        with fq.fusion(queue):
            b = fq.Buffer(N, np.float32)
            queue.submit(picked, N, new(2 * N), k, b)
            queue.submit(scale, N, b, b, np.float32(2))
    b = fq.Buffer(N, np.float32)
    with pytest.raises(fq.ArgumentError, match="element"), fq.fusion(queue):
        queue.submit(picked, N, new(2 * N), 3, b)


def test_where_a_launch_fails_the_others_run(
    queue: fq.FusionQueue, launched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, failing = ReferenceLaunch.launch, [False]
    number = [0]

    def third_fails(self, depends=()):  # type: ignore[no-untyped-def]
        number[0] += 1
        if failing[0] and number[0] >= 3:
            raise DeviceError("no more")
        return launch(self, depends)

    monkeypatch.setattr(ReferenceLaunch, "launch", third_fails)
    for _ in range(4):
        three_steps(queue, new(N), fq.Buffer(N, np.float32), 2.0)
    a, b = new(N), fq.Buffer(N, np.float32)
    failing[0], number[0] = True, 0
    with pytest.raises(DeviceError, match="no more"):
        three_steps(queue, a, b, 2.0)
    failing[0] = False
    assert launched[-1] == 2
    assert np.array_equal(b.numpy(), 2 * np.arange(N, dtype=np.float32))
    queue.submit(scale, N, a, b, np.float32(3))
    assert np.array_equal(b.numpy(), after_three_steps(2.0))


def test_what_another_queue_has_used_is_waited_for(
    queue: fq.FusionQueue, launched: list[int]
) -> None:
    with fq.FusionQueue("reference") as other:
        for k in range(5):
            a, b = new(N), fq.Buffer(N, np.float32)
            if k == 4:
                other.submit(scale, N, a, a, np.float32(1))
            three_steps(queue, a, b, 2.0)
            assert np.array_equal(b.numpy(), after_three_steps(2.0))
            assert b._storage.last_backend is queue._state.launcher.backend
            assert b._storage.last_event is queue._state.launcher.last_event
    assert launched[-2:] == [3, 0]


def test_lists_of_other_queues_that_must_run_before_do(queue: fq.FusionQueue) -> None:
    with fq.FusionQueue("reference") as other:
        for k in range(5):
            a, b = new(N), fq.Buffer(N, np.float32)
            if k == 4:
                other.start_fusion()
                other.submit(scale, N, a, a, np.float32(1))
                with pytest.warns(fq.FusionAborted):
                    three_steps(queue, a, b, 2.0)
            else:
                three_steps(queue, a, b, 2.0)
            assert np.array_equal(b.numpy(), after_three_steps(2.0))


def test_events_to_wait_for_are(queue: fq.FusionQueue, launched: list[int]) -> None:
    with fq.FusionQueue("reference") as other:
        for k in range(5):
            a, b = new(N), fq.Buffer(N, np.float32)
            depends_on = other.submit(scale, 8, new(8), new(8), np.float32(1)) if k == 4 else ()
            with fq.fusion(queue):
                queue.submit(scale, N, a, b, np.float32(2), depends_on=depends_on)
                queue.submit(scale, N, b, a, np.float32(2))
            assert np.array_equal(a.numpy(), 4 * np.arange(N, dtype=np.float32))
    assert launched[-2] == 2


def test_arrays_of_others(queue: fq.FusionQueue, launched: list[int]) -> None:
    kept = []
    for k in range(6):
        a, b = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
        kept.append((a, b))
        with fq.fusion(queue):
            queue.submit(scale, N, a, b, np.float32(k))
            queue.submit(scale, N, b, a, np.float32(2))
        queue.wait()
        assert np.array_equal(a, 2 * k * np.arange(N, dtype=np.float32))
    assert launched[-3:] == [2, 2, 2]


def test_replays_of_such_lists(queue: fq.FusionQueue) -> None:
    fusions = []
    for _ in range(5):
        a, b = new(N), fq.Buffer(N, np.float32)
        fusions.append((three_steps(queue, a, b, 2.0), a, b))
    for f, a, b in fusions:
        a.write(np.arange(N, dtype=np.float32))
        f.replay().wait()
        assert np.array_equal(b.numpy(), after_three_steps(2.0))


@pytest.mark.slow
def test_random_lists_are_as_plain_submits(queue: fq.FusionQueue, launched: list[int]) -> None:
    """Of few kernels in any order, over new Buffers, views of one, and arrays."""
    chance = random.Random(7)
    lists = [
        [(chance.randrange(3), *chance.sample(range(3), 2)) for _ in range(chance.randint(2, 5))]
        for _ in range(3)
    ]

    def buffers(kind: int) -> list[fq.Buffer] | list[np.ndarray]:
        if kind == 0:
            return [new(N) for _ in range(3)]
        if kind == 1:
            return (lambda w: [w[k * N : k * N + N] for k in range(3)])(new(3 * N))
        if kind == 2:
            return (lambda w: [w[k::3] for k in range(3)])(new(3 * N))
        return [np.arange(N, dtype=np.float32) for _ in range(3)]

    for _ in range(120):
        todo, kind = chance.choice(lists), chance.randrange(4)
        k, factor = chance.randrange(3), np.float32(chance.randint(-1, 2) / 2)
        both = buffers(kind), buffers(kind)

        def submit_all(arrays, todo=todo, k=k, factor=factor):  # type: ignore[no-untyped-def]
            for which, a, b in todo:
                if which == 0:
                    queue.submit(scale, N, arrays[a], arrays[b], factor)
                elif which == 1:
                    queue.submit(neighbours, N, arrays[a], arrays[b])
                else:
                    queue.submit(rotated, N, arrays[a], k, arrays[b])

        submit_all(both[0])
        with fq.fusion(queue):
            submit_all(both[1])
        queue.wait()
        for one, other in zip(*both, strict=True):
            one, other = (x if isinstance(x, np.ndarray) else x.numpy() for x in (one, other))
            assert one.tobytes() == other.tobytes()
    assert sum(count > 0 for count in launched) > 60


def test_lists_of_submissions_that_are_kept_take_them_too(
    queue: fq.FusionQueue, launched: list[int]
) -> None:
    def both(a: fq.Buffer, b: fq.Buffer) -> None:
        queue.submit(scale, N, a, b, np.float32(2))
        queue.submit(scale, N, b, a, np.float32(3))

    for _ in range(5):
        with fq.fusion(queue):
            both(new(N), fq.Buffer(N, np.float32))
    a, b = new(N), fq.Buffer(N, np.float32)
    both(a, b)
    both(a, b)
    with fq.fusion(queue):
        both(a, b)
    assert all(entry.is_kept for entry in queue._state.last_list.entries)
    assert np.array_equal(a.numpy(), 6**3 * np.arange(N, dtype=np.float32))
    assert launched[-2:] == [2, 2]
    with fq.fusion(queue):
        both(new(N), fq.Buffer(N, np.float32))
    assert launched[-1] == 2
