"""A backend that compiles each kernel for GPUs by NVRTC and launches nothing: it needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import settings

import fusionq as fq
from fusionq.backends import base, registry
from fusionq.backends.base import Binding
from fusionq.backends.cuda.compiler import Resources
from fusionq.backends.cuda.program import cubin_of, generated
from fusionq.backends.reference.backend import ReferenceBackend
from fusionq.backends.reference.launch import ReferenceProgram
from fusionq.base.device_info import DeviceInfo
from fusionq.base.target import FloatMode, LaunchShape, target_of
from fusionq.codegen.device_source import DeviceSource
from fusionq.ir.nodes import Kernel
from tests.property.programs import Program, View

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")

IN_TURN = settings.get_current_profile_name() != "nightly"
"""Whether a test of many kernels compiles each for one architecture, the next kernel for the next
one: the three differ in a few lines of text.  In the profile ``nightly`` each is for all."""


def architectures_of(number: int) -> Sequence[str]:
    """Those that the kernel of this number, of many, is compiled for."""
    turn = number % len(ARCHITECTURES)
    return ARCHITECTURES[turn : turn + 1] if IN_TURN else ARCHITECTURES


H100 = DeviceInfo(
    name="NVIDIA H100 80GB HBM3", vendor="NVIDIA", driver="CUDA 13.0", filter_string="cuda:0",
    kind="gpu", compute_units=132, max_work_group_size=1024, local_memory_bytes=219648,
    has_fp16=True, has_fp64=True, host_memory=True, chooses_persistent=False, narrow_indices=True,
    reads_ahead=True, streams_rows=True, groups_in_workers=True,
    float_groups="ordered", jams_items=True, loads_together=True,
)  # fmt: skip
"""As the device says, but that its memory is the host's: nothing runs."""


TARGET = target_of(H100, sub_group_size=32, worker_size=256, vector_width=32, resident_workers=1056)


class NoLaunch:
    """What a kernel would be launched with."""

    complete = True
    native = None

    def set_scalar(self, name: str, value: object) -> None:
        """Nothing runs."""

    def launch(self, depends: Sequence[object] = ()) -> NoLaunch:
        return self

    def wait(self) -> None:
        """Nothing runs."""

    def times(self) -> None:
        """Nothing runs."""


class CompilingBackend(ReferenceBackend):
    """Compiles for each of ``architectures``, or ``in_turn``, and keeps what the compiler says of
    resources."""

    def __init__(self, architectures: Sequence[str] = ARCHITECTURES, in_turn: bool = False) -> None:
        super().__init__()
        self.target = TARGET
        self.architectures = architectures
        self.in_turn = in_turn
        self.resources: dict[tuple[str, str], Resources] = {}
        """By kernel and architecture."""
        self.kernels: list[Kernel] = []

    def build(self, kernel: Kernel, fp: FloatMode) -> Any:
        number = len(self.kernels)
        architectures = architectures_of(number) if self.in_turn else self.architectures
        source = generated(kernel, fp, self.target)
        self.kernels.append(kernel)
        for architecture in architectures:
            self.compile(kernel, source, fp, architecture)
        return ReferenceProgram(kernel, None, source.text, 0.0)  # type: ignore[arg-type]  # never run

    def compile(
        self, kernel: Kernel, source: DeviceSource, fp: FloatMode, architecture: str
    ) -> None:
        cubin = cubin_of(kernel, source, fp, architecture)
        assert cubin.code.startswith(b"\x7fELF")
        self.resources[kernel.name, architecture] = cubin.resources

    def prepare(  # type: ignore[override]  # another class
        self, program: base.Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> NoLaunch:
        return NoLaunch()


@contextmanager
def compiling_queue(
    architectures: Sequence[str] = ARCHITECTURES, in_turn: bool = False
) -> Iterator[Any]:
    """A queue on a new CompilingBackend, and the backend."""
    backend = CompilingBackend(architectures, in_turn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "backend_for", lambda target, profiling=False: backend)
        queue = fq.FusionQueue()
    with queue:
        yield queue, backend


def compile_program(program: Program, **options: Any) -> None:
    """Compile a random list for one architecture, or in the profile ``nightly`` for all."""
    number = len(program.submissions) + len(program.buffers)
    with compiling_queue(architectures_of(number)) as (queue, backend):
        kernels = {id(s.kernel): s.kernel.made() for s in program.submissions}
        with fq.fusion(queue, **options):
            buffers = [
                fq.Buffer(spec.data, internal=spec.flag == "internal") for spec in program.buffers
            ]
            for submission in program.submissions:
                arguments = [
                    buffers[a.buffer][a.slices] if isinstance(a, View) else a
                    for a in submission.arguments
                ]
                queue.submit(kernels[id(submission.kernel)], submission.range, *arguments)
    assert all(resources.registers for resources in backend.resources.values())
