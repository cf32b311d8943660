"""A list that one thread has ended, and is about to launch, while another asks for its results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fusionq as fq
from fusionq.memory.fusing_queues import ENDING
from fusionq.runtime.launcher import Launcher
from tests.unit.runtime.conftest import empty
from tests.unit.runtime.kernels import increment


class Paused:
    """The runs of lists, which stop until another thread lets them go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        for name in ("run_list", "run_single"):
            monkeypatch.setattr(Launcher, name, self._pausing(getattr(Launcher, name)))

    def _pausing(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def paused(*args: Any) -> Any:
            self.reached.set()
            assert self.go_on.wait(60)
            return run(*args)

        return paused


def read(queue: fq.FusionQueue, out: fq.Buffer, memory: npt.NDArray[np.float32]) -> None:
    assert (out.numpy() == 1).all()


def wait_and_look(queue: fq.FusionQueue, out: fq.Buffer, memory: npt.NDArray[np.float32]) -> None:
    queue.wait()
    assert (memory == 1).all()


@pytest.mark.parametrize("end", ["complete_fusion", "cancel_fusion"])
@pytest.mark.parametrize("ask", [read, wait_and_look])
def test_results_wait_for_lists_that_others_launch(
    target: str | None,
    end: str,
    ask: Callable[[fq.FusionQueue, fq.Buffer, npt.NDArray[np.float32]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list is no longer the queue's, and what it writes has no event yet."""
    with fq.FusionQueue(target) as queue:
        out = empty()
        memory = out.numpy()
        memory[:] = 0
        queue.start_fusion()
        queue.submit(increment, 8, out)
        pause = Paused(monkeypatch)
        other = threading.Thread(target=getattr(queue, end), daemon=True)
        other.start()
        assert pause.reached.wait(60) and ENDING
        threading.Timer(0.2, pause.go_on.set).start()
        ask(queue, out, memory)
        other.join(60)
        assert not ENDING
