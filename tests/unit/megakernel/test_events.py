"""Events of runs with persistent kernels."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.backends import registry
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.errors import MegakernelStalled
from fusionq.codegen import queue_layout as q
from fusionq.megakernel import control
from fusionq.megakernel.control import PersistentEvent
from fusionq.megakernel.launch import JoinedLaunches, PersistentLaunch
from fusionq.submission.run import PreparedRun


def test_an_event_behind_a_persistent_kernel_tells_of_it() -> None:
    run = PreparedRun.__new__(PreparedRun)
    run.one = None

    class Done:
        def launch(self, depends: object) -> Any:
            return self

        def wait(self) -> None:
            pass

    class Stalled(Done):
        def launch(self, depends: object) -> Any:
            return PersistentEvent(self, [stalled])  # type: ignore[arg-type]  # all it asks for

    def stalled() -> None:
        raise MegakernelStalled("stage 1")

    run.single, run.is_persistent = None, True
    for launches in ([Stalled(), Done()], [Done(), Stalled()], [Stalled(), Stalled()]):
        run.launches = [*launches]  # type: ignore[list-item]
        _, last = run.launch(())
        assert last is not None
        with pytest.raises(MegakernelStalled, match="stage 1"):
            last.wait()
        last.wait()  # says it once
    run.launches = [Done(), Done()]  # type: ignore[list-item]
    _, last = run.launch(())
    assert last is run.launches[1]


def test_nobody_asks_for_a_stall_before_the_first_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(control._StallRecord, "is_set", lambda self, last: asked.append(last))
    backend = ReferenceBackend()
    line = backend.target.control_line
    plan: Any = SimpleNamespace(words=np.zeros(8, np.uint32), control_words=8 * line)
    memory = control.ControlMemory(backend, "kernel", ["one"], plan, backend.target)
    event: Any = SimpleNamespace(complete=True)
    assert memory.begin() == 1 and asked == []
    memory.launched(event)
    assert memory.begin() == 2 and asked == [event]


class _Repeating(ReferenceBackend):
    """Runs launches that are repeated one after the other."""

    def repeated(self, launches: Sequence[Any]) -> Any:  # type: ignore[override]  # has one
        self.joined = tuple(launches)
        return SimpleNamespace(launch=lambda depends=(): [k.launch(depends) for k in launches][-1])


@fq.kernel
def halved(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    b[i] = a[a.shape[0] - 1 - i] // 2 + i


@fq.kernel
def added(item: fq.Item, a, b):  # type: ignore[no-untyped-def]  # kernel language
    i = item.get_id(0)
    b[i] += a[i]


def test_persistent_kernels_may_be_some_of_several_launches_that_are_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = _Repeating()
    monkeypatch.setattr(registry, "backend_for", lambda target, profiling=False: backend)
    found = []
    for strategy in ("megakernel", "unfused"):
        with fq.FusionQueue() as queue:
            a, b = fq.Buffer(np.arange(5000)), fq.Buffer(5000, np.int64)
            with fq.fusion(queue, strategy=strategy, barriers="all") as f:
                for _ in range(2):
                    queue.submit(halved, 5000, a, b)
                    queue.submit(halved, 5000, b, a)
                # Two in one stage, which then has a launch of its own.
                queue.submit(added, 5000, b, a)
                queue.submit(added, 5000, a, b)
            for _ in range(2):
                f.replay()
            queue.wait()
            found.append(a.numpy().copy())
            if strategy == "megakernel":
                run = f._list.run
                assert isinstance(run.one, JoinedLaunches) and len(run.launches) > 1
                native = [k.native for k in run.launches if isinstance(k, PersistentLaunch)]
                assert native and set(map(id, native)) <= set(map(id, backend.joined))
    np.testing.assert_array_equal(*found)


def test_who_cannot_see_a_stall_asks_no_sooner_than_a_wait_can_run_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To ask a GPU takes longer than many a launch."""
    now, asked = [0.0], []
    words = np.zeros(8, np.uint32)

    class Control:
        def host_view(self) -> None:
            return None

        def fetched(self, offset: int, nbytes: int) -> Any:
            asked.append(now[0])
            return words.view(np.uint8).copy()

    monkeypatch.setattr(control, "clock", lambda: now[0])
    record = control._StallRecord(Control(), 8, 1000)  # type: ignore[arg-type]  # all it asks for
    events: list[Any] = [SimpleNamespace(complete=True) for _ in range(5)]
    now[0] = 999 * CODE_LIMITS.shortest_poll
    assert not record.is_set(events[0]) and asked == []
    now[0] = first = 1001 * CODE_LIMITS.shortest_poll
    assert not record.is_set(events[1]) and asked == [first]
    assert not record.is_set(events[2]) and len(asked) == 1
    words[q.FLAG] = 1
    now[0] = later = 2002 * CODE_LIMITS.shortest_poll
    assert record.may_be_set and record.is_set(events[3]) and asked == [first, later]
    assert record.may_be_set, "until it is dealt with"
    record = control._StallRecord(Control(), 8, 1000)  # type: ignore[arg-type]  # all it asks for
    record.is_quick = True
    assert record.is_set(events[4])
