"""CUDA C++'s translation units: head, qualifiers, options of NVRTC.

Source: NVIDIA, NVRTC 13, section Supported Compile Options.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusionq.base.target import FloatMode
from fusionq.codegen.cuda.half import HALF
from fusionq.codegen.cuda.items import CLOCK
from fusionq.codegen.cuda.reserved import RESERVED
from fusionq.codegen.scoping import Body
from fusionq.ir.types import FLOAT16, ScalarType

KERNEL_QUALIFIER = 'extern "C" __global__ void'
STREAMING_LOOP = "#pragma unroll 16"
"""Before a short loop over memory.  Of the loads of 16 iterations ptxas has as many in flight as it
has registers for, which it has to be allowed (``backends.cuda.program``): on an H100 that took 0.2
to 1 of the time of its own choice, 4 iterations in half of the registers."""


class CudaUnit:
    """See ``TranslationUnit``."""

    kernel_qualifier = KERNEL_QUALIFIER
    function_qualifier = "static __device__ inline"

    def sub_groups_of(self, size: int) -> str:
        assert size == 32, "a warp"
        return ""

    def prologue(
        self, types: Iterable[ScalarType], fp: FloatMode, functions: Iterable[str] = ()
    ) -> list[str]:
        lines = []
        if "clock" in functions:
            lines += CLOCK.splitlines()
        if FLOAT16 in set(types):
            lines += HALF.splitlines()
        return lines

    def build_options(self, fp: FloatMode) -> tuple[str, ...]:
        """``strict``: every operation rounds once, division and square root correctly; no
        contraction, subnormal numbers kept.  ``fast`` also lets ``a * b + c`` become one
        operation."""
        return (
            "--std=c++17",
            "--ftz=false",
            "--prec-div=true",
            "--prec-sqrt=true",
            f"--fmad={'false' if fp == 'strict' else 'true'}",
        )

    def is_reserved(self, identifier: str) -> bool:
        return RESERVED.fullmatch(identifier) is not None

    def prepared(self, body: Body) -> Body:
        return body

    def loop_in_order(self) -> list[str]:
        return []  # the compiler keeps the order of floating operations

    def streaming_loop(self) -> list[str]:
        return [STREAMING_LOOP]
