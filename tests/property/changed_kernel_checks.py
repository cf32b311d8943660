"""What becomes of a changed kernel: a plan and device code, or an error of fusionq's."""

from __future__ import annotations

import json
import linecache
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, get_args
from unittest import mock

import fusionq as fq
from fusionq.backends.base import DeviceEvent
from fusionq.base.options import Check
from fusionq.execution.checked import CheckedRun
from fusionq.submission.run import PreparedRun
from tests.property.changed_kernels import ChangedKernel
from tests.property.list_runs import made
from tests.property.programs import View

_numbers = count()
CHECKS: tuple[Check, ...] = get_args(Check)


def check_changed(case: ChangedKernel, target: str | None, check: Check = False) -> str:
    """Submit the kernel twice in a list on ``target``, plan the list and build it, without a
    launch (a changed kernel may run for ever).  The name of the error, or ``accepted``.

    Fails for what is neither: an error that is none of fusionq's, a KernelLanguageError that does
    not say where, and generated source that the device's compiler refuses.
    """
    file = f"<changed kernel {next(_numbers)}>"
    kernel = _defined(case.submission.kernel.source, file)
    if kernel is None:
        return "no function"
    buffers = made(case.program)
    try:
        with nothing_launched(), fq.FusionQueue(target) as queue:
            arguments = [
                buffers[a.buffer][a.slices] if isinstance(a, View) else a
                for a in case.submission.arguments
            ]
            decorated = fq.kernel(kernel)
            with fq.fusion(queue, check=check) as f:
                for _ in range(2):
                    queue.submit(decorated, case.submission.range, *arguments)
            assert str(f.report)
            json.dumps(f.report.to_dict())
    except fq.FusionqError as error:
        assert not isinstance(error, fq.KernelLanguageError) or file in str(error), error
        assert "error in fusionq" not in str(error) and "defect of fusionq" not in str(error), error
        return type(error).__name__
    return "accepted"


def _defined(source: str, file: str) -> Any:
    """What the source calls ``kernel``; None where running it as a module fails."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "changed_kernel"}
    try:
        exec(compile(source, file, "exec"), names)
    except Exception:
        return None
    return names.get("kernel")


@contextmanager
def nothing_launched() -> Iterator[None]:
    """Lists are planned, built and bound to their arguments, and not launched."""

    def launch(
        run: PreparedRun, depends: Sequence[DeviceEvent]
    ) -> tuple[Sequence[DeviceEvent | None], DeviceEvent | None]:
        return [None] * max(len(run.launches), 1), None

    with (
        mock.patch.object(PreparedRun, "launch", launch),
        mock.patch.object(CheckedRun, "launch", launch),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", SyntaxWarning)
        yield
