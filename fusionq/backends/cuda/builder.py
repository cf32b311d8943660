"""What builds for a GPU in a process that leaves it alone, without a context there."""

from __future__ import annotations

from dataclasses import replace

from fusionq.backends.base import KeptProgram
from fusionq.backends.cuda.backend import CudaBackend
from fusionq.backends.cuda.compiler import nvrtc_version
from fusionq.backends.cuda.devices import device
from fusionq.backends.cuda.program import CudaProgram, cubin_of, generated
from fusionq.backends.cuda.streams import ordinal_of
from fusionq.base.errors import DeviceError
from fusionq.base.target import FloatMode
from fusionq.ir.nodes import Kernel


class CudaBuilder(CudaBackend):
    """A CudaBackend that only builds and keeps programs; ``target`` is None or a GPU's number as
    text.  What it builds has no function of the driver."""

    abilities = replace(CudaBackend.abilities, launches=False)

    def __init__(self, target: object = None) -> None:
        if not (target is None or isinstance(target, str)):
            raise DeviceError(f"what builds for a GPU is made of its number, not {target!r}")
        self.device = device(ordinal_of(target))
        self.target = self.device.target
        nvrtc_version()  # is there

    def build(self, kernel: Kernel, fp: FloatMode) -> CudaProgram:
        """Compile; DeviceError with the compiler's log and the source if that fails."""
        source = generated(kernel, fp, self.target)
        cubin = cubin_of(kernel, source, fp, self.device.architecture)
        return self._program(kernel, fp, KeptProgram(source, cubin.code), cubin.seconds)

    def restore(self, kernel: Kernel, fp: FloatMode, kept: KeptProgram) -> CudaProgram:
        """What ``build`` gives, from what it gave before."""
        return self.build(kernel, fp) if kept.binary is None else self._program(kernel, fp, kept)

    def _program(
        self, kernel: Kernel, fp: FloatMode, kept: KeptProgram, seconds: float = 0.0
    ) -> CudaProgram:
        assert kept.binary is not None
        return CudaProgram(kernel, self.device, fp, kept.source, kept.binary, seconds, None, 0)
