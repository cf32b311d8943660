"""Launches of persistent kernels: many epochs, stalls, and queues that go on after them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq
from fusionq.base.errors import MegakernelStalled
from fusionq.codegen import queue_layout as q
from fusionq.execution import fitting_workers
from fusionq.megakernel.launch import PersistentLaunch
from tests.unit.megakernel.cases import blur, reverse

SIZE, STEPS = 40, 4


@pytest.fixture
def queue(queue: fq.FusionQueue) -> fq.FusionQueue:
    if not queue.device.persistent_kernels:
        pytest.skip("the backend does not run persistent kernels")
    return queue


@pytest.fixture
def made(
    queue: fq.FusionQueue, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[PersistentLaunch]]:
    """The persistent launches that a test makes."""
    found: list[PersistentLaunch] = []
    initialise = PersistentLaunch.__init__

    @functools.wraps(initialise)
    def remembered(self, *args, **more):  # type: ignore[no-untyped-def]  # those of __init__
        initialise(self, *args, **more)
        found.append(self)

    monkeypatch.setattr(PersistentLaunch, "__init__", remembered)
    yield found


@pytest.fixture(autouse=True)
def _all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single worker, which is enough for so few work-items, would wait for nobody."""
    monkeypatch.setattr(
        fitting_workers, "workers_for", lambda kernel, bindings, target: target.resident_workers
    )


def start() -> tuple[fq.Buffer, fq.Buffer]:
    return fq.Buffer(np.arange(SIZE) ** 2), fq.Buffer(np.zeros(SIZE, np.int64))


def steps(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer) -> None:
    for step in range(STEPS):
        queue.submit(reverse if step == 1 else blur, SIZE, a, b)
        a, b = b, a


def fused(queue: fq.FusionQueue, a: fq.Buffer, b: fq.Buffer) -> fq.fusion:
    with fq.fusion(queue, strategy="megakernel", barriers="none") as f:
        steps(queue, a, b)
    assert f.report.strategy == "megakernel"
    return f


def expected(rounds: int) -> list[int]:
    with fq.FusionQueue("reference") as queue:
        a, b = start()
        for _ in range(rounds):
            steps(queue, a, b)
        return list(a.numpy())


@contextmanager
def control_words(launch: PersistentLaunch) -> Iterator[npt.NDArray[np.uint32]]:
    """The words of the control memory by lines, to be changed between launches."""
    line = launch._backend.target.control_line
    words = np.empty((launch.plan.control_words // line, line), np.uint32)
    launch._control.memory.read(words.reshape(-1).view(np.uint8))
    yield words
    launch._control.memory.write(words.reshape(-1).view(np.uint8))


def test_many_epochs_over_one_control_memory(
    queue: fq.FusionQueue, made: list[PersistentLaunch]
) -> None:
    a, b = start()
    f = fused(queue, a, b)
    for _ in range(20):
        f.replay()
    assert list(a.numpy()) == expected(21)
    assert len(made) == 1
    assert made[0]._control.epoch == 21
    with control_words(made[0]) as words:
        assert words[q.AT_WORK, 0] == 0


def test_epochs_wrap(queue: fq.FusionQueue, made: list[PersistentLaunch]) -> None:
    a, b = start()
    f = fused(queue, a, b)
    queue.wait()
    (launch,) = made
    plan, last = launch.plan, 0xFFFFFFFE
    with control_words(launch) as words:
        words[q.HEAD, 0] = last * (len(plan.stage) + plan.workers) % (1 << 32)
        words[q.ARRIVED, 0] = last * plan.workers % (1 << 32)
        words[q.MODE, 0] = 2 * last % (1 << 32)
        # Where workers count launches.
        words[q.ARRIVED, q.LEFT] = last * plan.workers % (1 << 32)
        words[q.MODE, q.LAUNCHES] = last
        counted = words[q.FIRST_COUNTER :, 0].astype(np.int64)
        words[q.FIRST_COUNTER :, 0] = counted * last % (1 << 32)
    launch._control.epoch = last
    for _ in range(4):
        f.replay()
    assert list(a.numpy()) == expected(5)
    assert launch._control.epoch == 3


def test_a_stall_says_where_and_the_queue_goes_on(
    queue: fq.FusionQueue, made: list[PersistentLaunch]
) -> None:
    a, b = start()
    f = fused(queue, a, b)
    f.event.wait()
    (launch,) = made
    launch.set_scalar("spin_limit", 3)
    # Somebody else's counts: every wait of the next launch is one behind.
    with control_words(launch) as words:
        words[q.FIRST_COUNTER :, 0] -= np.uint32(1)
    event = f.replay()
    with pytest.raises(MegakernelStalled) as caught:
        event.wait()
    text = str(caught.value)
    names = ["0: blur", "1: reverse", "2: blur", "3: blur"]
    told = (
        rf"stage {k} \({names[k]}\), tile \d+, gave up waiting for stage {k - 1} "
        rf"\({names[k - 1]}\): barrier counter "
        for k in range(1, STEPS)
    )  # by whichever worker was first
    assert re.search("|".join(told), text), text
    assert "The queue can be used on" in text
    event.wait()  # says it once
    a.write(np.arange(SIZE) ** 2)
    b.write(np.zeros(SIZE, np.int64))
    launch.set_scalar("spin_limit", 1 << 30)
    f.replay().wait()
    assert list(a.numpy()) == expected(1)


@fq.kernel
def slow_at_the_end(item: fq.Item, a, b, rounds):
    """Takes long, for an unknown number of rounds, in its last tile only."""
    i = item.get_id(0)
    total = a[i]
    k = 0
    while i == a.shape[0] - 1 and k < rounds:
        total += (total ^ k) & 1
        k += 1
    b[i] = total


def test_a_tile_that_takes_long_is_no_stall(
    queue: fq.FusionQueue, made: list[PersistentLaunch], target: str
) -> None:
    a, b = start()
    rounds = 300 if queue.device.kind == "reference" else 20_000_000
    with fq.fusion(queue, strategy="megakernel", barriers="none") as f:
        queue.submit(slow_at_the_end, SIZE, a, b, 10)
        queue.submit(reverse, SIZE, b, a)
    assert f.report.strategy == "megakernel"
    f.event.wait()
    (launch,) = made
    launch.set_scalar("spin_limit", 2000)  # stalls when it has seen nobody at work twice
    before = a.numpy().copy()
    f.replay(rounds=rounds).wait()
    assert list(a.numpy()[1:]) == list(before[::-1][1:])


def test_a_stall_that_nobody_waited_for_is_told_by_the_queue(
    queue: fq.FusionQueue, made: list[PersistentLaunch]
) -> None:
    a, b = start()
    f = fused(queue, a, b)
    f.event.wait()
    (launch,) = made
    launch.set_scalar("spin_limit", 3)
    with control_words(launch) as words:
        words[q.FIRST_COUNTER :, 0] -= np.uint32(1)
    f.replay()
    with pytest.raises(MegakernelStalled):
        queue.wait()
    queue.wait()
    launch.set_scalar("spin_limit", 1 << 30)
    f.replay().wait()
