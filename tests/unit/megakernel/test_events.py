"""Events of runs with persistent kernels."""

from __future__ import annotations

import pytest

from fusionq.base.errors import MegakernelStalled
from fusionq.submission.run import PreparedRun


def test_an_event_behind_a_persistent_kernel_tells_of_it() -> None:
    run = PreparedRun.__new__(PreparedRun)
    run.one = None

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
