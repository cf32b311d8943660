"""The numba-dpex backend: a SYCL queue whose kernels numba-dpex compiles."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from fusionq.backends.base import Abilities, Binding, Program
from fusionq.backends.sycl.backend import SyclBackend
from fusionq.backends.sycl.launch import SyclLaunch
from fusionq.backends.sycl.program import SyclProgram
from fusionq.base.target import FloatMode, LaunchShape
from fusionq.dpex.backend.program import build
from fusionq.dpex.environment import load_numba_dpex
from fusionq.ir.nodes import Kernel


class DpexBackend(SyclBackend):
    """Runs kernels on a SYCL device of the OpenCL backend, compiled by numba-dpex.

    ``target`` is None (the default device) or a SYCL filter string; ``profiling`` makes events
    record when they ran.  Raises DeviceError where numba-dpex is not installed or there is no such
    device.
    """

    abilities = Abilities(runtime="sycl", asynchronous=True, group_functions=False)
    """numba-dpex has no clock either, and programs do not outlive the process."""

    def __init__(self, target: object = None, profiling: bool = False) -> None:
        load_numba_dpex()
        super().__init__(target, profiling)
        # With oneAPI 2024.2 a launch was seen to begin before one of another queue, whose event it
        # was given, had ended (once in three runs of the conformance suite).
        self._order.waits_on_host = True
        # numba-dpex compiles none of these, and group functions stay calls, which are refused.
        device = replace(
            self.info,
            persistent_kernels=False,
            has_fp16=False,
            float_groups="unordered",
            splits_rows=False,
            jams_items=False,
            jams_rows=False,
            group_lanes=0,
        )
        self.target = replace(self.target, device=device)

    @property
    def program_domain(self) -> Hashable:
        """Equal for backends that can run each other's programs: those of one SYCL context."""
        return ("dpex", super().program_domain)

    def build(self, kernel: Kernel, fp: FloatMode) -> SyclProgram:
        """Compile; DeviceError for what numba-dpex cannot compile."""
        return build(self.sycl_queue, kernel, fp)

    def build_together(self, kernels: Sequence[Kernel], fp: FloatMode) -> list[SyclProgram]:
        """Each by itself."""
        return [self.build(kernel, fp) for kernel in kernels]

    def prepare(
        self, program: Program, arguments: Sequence[Binding], shape: LaunchShape
    ) -> SyclLaunch:
        """Arguments in the order of ``kernel.params``; ArgumentError where they do not fit.

        numba-dpex counts dimensions from the fastest, so the extents are reversed.
        """
        reversed_shape = LaunchShape(shape.global_range[::-1], shape.local_range[::-1])
        return super().prepare(program, arguments, reversed_shape)
