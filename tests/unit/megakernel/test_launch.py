"""Launches of persistent kernels: many epochs, stalls, and queues that go on after them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq
from fusionq.base.errors import MegakernelStalled
from fusionq.codegen import queue_layout as q
from fusionq.megakernel.launch import PersistentLaunch
from fusionq.submission.run import PreparedRun
from tests.property.running import needs_device
from tests.unit.megakernel.cases import blur, reverse

TARGETS = ["reference", pytest.param(None, marks=needs_device)]
every_target = pytest.mark.parametrize("target", TARGETS)
SIZE, STEPS = 40, 4


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PersistentLaunch]]:
    """The persistent launches that a test makes."""
    found: list[PersistentLaunch] = []
    initialise = PersistentLaunch.__init__

    @functools.wraps(initialise)
    def remembered(self, *args, **more):  # type: ignore[no-untyped-def]  # those of __init__
        initialise(self, *args, **more)
        found.append(self)

    monkeypatch.setattr(PersistentLaunch, "__init__", remembered)
    yield found


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
    launch._control.read(words.reshape(-1).view(np.uint8))
    yield words
    launch._control.write(words.reshape(-1).view(np.uint8))


@every_target
def test_many_epochs_over_one_control_memory(
    target: str | None, made: list[PersistentLaunch]
) -> None:
    with fq.FusionQueue(target) as queue:
        a, b = start()
        f = fused(queue, a, b)
        for _ in range(20):
            f.replay()
        assert list(a.numpy()) == expected(21)
    assert len(made) == 1
    assert made[0]._epoch == 21


@every_target
def test_epochs_wrap(target: str | None, made: list[PersistentLaunch]) -> None:
    with fq.FusionQueue(target) as queue:
        a, b = start()
        f = fused(queue, a, b)
        queue.wait()
        (launch,) = made
        plan, last = launch.plan, 0xFFFFFFFE
        with control_words(launch) as words:
            words[q.HEAD, 0] = last * (len(plan.stage) + plan.workers) % (1 << 32)
            words[q.ARRIVED, 0] = last * plan.workers % (1 << 32)
            words[q.MODE, 0] = 2 * last % (1 << 32)
            counted = words[q.FIRST_COUNTER :, 0].astype(np.int64)
            words[q.FIRST_COUNTER :, 0] = counted * last % (1 << 32)
        launch._epoch = last
        for _ in range(4):
            f.replay()
        assert list(a.numpy()) == expected(5)
        assert launch._epoch == 3


@every_target
def test_a_stall_says_where_and_the_queue_goes_on(
    target: str | None, made: list[PersistentLaunch]
) -> None:
    with fq.FusionQueue(target) as queue:
        a, b = start()
        f = fused(queue, a, b)
        f.event.wait()
        (launch,) = made
        launch.set_scalar("patience", 3)
        # Somebody else's counts: every wait of the next launch is one behind.
        with control_words(launch) as words:
            words[q.FIRST_COUNTER :, 0] -= np.uint32(1)
        event = f.replay()
        with pytest.raises(MegakernelStalled) as caught:
            event.wait()
        text = str(caught.value)
        assert "stage 1 (1: reverse), tile " in text
        assert "gave up waiting for stage 0 (0: blur): barrier counter " in text
        assert "The queue can be used on" in text
        event.wait()  # says it once
        a.numpy()[:] = np.arange(SIZE) ** 2
        b.numpy()[:] = 0
        launch.set_scalar("patience", 1 << 30)
        f.replay().wait()
        assert list(a.numpy()) == expected(1)


@every_target
def test_a_stall_that_nobody_waited_for_is_told_by_the_queue(
    target: str | None, made: list[PersistentLaunch]
) -> None:
    with fq.FusionQueue(target) as queue:
        a, b = start()
        f = fused(queue, a, b)
        f.event.wait()
        (launch,) = made
        launch.set_scalar("patience", 3)
        with control_words(launch) as words:
            words[q.FIRST_COUNTER :, 0] -= np.uint32(1)
        f.replay()
        with pytest.raises(MegakernelStalled):
            queue.wait()
        queue.wait()
        launch.set_scalar("patience", 1 << 30)
        f.replay().wait()


def test_an_event_behind_a_persistent_kernel_tells_of_it() -> None:
    run = PreparedRun.__new__(PreparedRun)

    class Done:
        def launch(self, depends: object) -> Done:
            return self

        def wait(self) -> None:
            pass

    def stalled() -> None:
        raise MegakernelStalled("stage 1")

    run.single, run.launches, run.checks = None, [Done(), Done()], [stalled]  # type: ignore[list-item]
    _, last = run.launch(())
    assert last is not None
    with pytest.raises(MegakernelStalled, match="stage 1"):
        last.wait()
