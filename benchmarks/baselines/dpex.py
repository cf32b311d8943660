"""Unfused numba-dpex, in an interpreter of its own: its versions exclude those of fusionq's SYCL
stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from fusionq.benchmarks.case import Case, Unavailable, Workload

NAME = "numba-dpex, unfused"
KERNELS = frozenset(
    ("mul", "sub", "multiply", "weighted_sum", "logistic", "softplus", "hyperbolic_tangent")
)
"""Those of ``dpex_kernels``."""
_CHILD = Path(__file__).with_name("dpex_child.py")
_MEMORY = Path("/dev/shm")


def runs_on_dpex(case: Case) -> bool:
    """Whether there is a numba-dpex kernel for each step of the case, which is one-dimensional."""
    extents = case.extents(1024)
    return len(extents) == 1 and all(
        step.kernel.name in KERNELS and step.range_of(extents) == extents for step in case.steps
    )


class DpexChain:
    """A workload's steps in a child process; raises Unavailable where they cannot run there.

    ``python``: the interpreter of an environment with numba-dpex.
    """

    def __init__(self, workload: Workload, python: Path) -> None:
        if workload.queue.sycl_queue is None:
            raise Unavailable("numba-dpex needs a SYCL device")
        case = workload.case
        with tempfile.NamedTemporaryFile(
            prefix="fusionq-bench-", dir=_MEMORY if _MEMORY.is_dir() else None
        ) as file:
            (size,) = workload.extents
            file.truncate(4 * size)
            self._shared: Any = np.memmap(file.name, np.float32, "r+")
            command = [str(python), str(_CHILD), file.name]
            try:
                # close_fds=False spawns without a fork, which thread pools in this process
                # complain of.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                    stderr=subprocess.DEVNULL, close_fds=False, env=_environment(),
                )  # fmt: skip
            except OSError as error:
                raise Unavailable(f"{python} does not start: {error}") from None
            weakref.finalize(self, _end, self._process)
            self._ask(
                device=workload.queue.device.filter_string,
                size=size,
                arrays=[spec.name for spec in case.arrays],
                steps=[(step.kernel.name, step.arguments) for step in case.steps],
            )
        for name in case.names("input"):
            self._shared[:] = workload.host[name]
            self._ask(put=name)
        self.sample(1)  # compiles
        self._workload = workload

    def sample(self, runs: int) -> float:
        """Seconds that so many runs take together, by the child's clock."""
        seconds: float = self._ask(sample=runs)
        return seconds

    def run(self) -> None:
        """One run over spoiled temporaries and output; the result comes back."""
        case = self._workload.case
        self._shared.fill(np.nan)
        for name in (*case.names("temporary"), case.output):
            self._ask(put=name)
        self.sample(1)
        self._ask(get=case.output)
        self._workload.out[:] = self._shared

    def _ask(self, **request: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise Unavailable(f"numba-dpex's process ended with code {self._process.wait()}")
        found = json.loads(answer)
        if isinstance(found, dict):
            raise Unavailable(found["error"].splitlines()[0])
        return found


def _environment() -> dict[str, str]:
    """That of the child: without the OpenCL driver that fusionq has named for this process."""
    environment = dict(os.environ)
    if environment.get("OCL_ICD_FILENAMES", "").startswith(sys.prefix):
        del environment["OCL_ICD_FILENAMES"]
    return environment


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait()
