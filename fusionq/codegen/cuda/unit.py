"""CUDA C++'s translation units: head, qualifiers, options of NVRTC.

Source: NVIDIA, NVRTC 13, section Supported Compile Options.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusionq.base.target import FloatMode
from fusionq.codegen.cuda.half import HALF
from fusionq.codegen.cuda.items import CLOCK
from fusionq.codegen.cuda.reserved import RESERVED
from fusionq.codegen.dialect import Define
from fusionq.codegen.scoping import Body
from fusionq.ir.types import FLOAT16, ScalarType

KERNEL_QUALIFIER = 'extern "C" __global__ void'
STREAMING_LOOP = "#pragma unroll 16"
"""Before a short loop over memory.  Of the loads of 16 iterations ptxas has as many in flight as it
has registers for, which it has to be allowed (``backends.cuda.program``): on an H100 that took 0.2
to 1 of the time of its own choice, 4 iterations in half of the registers."""

IN_TURN = "fq_in_turn"
"""What a kernel over a range calls first.  A launch of such a kernel may be a dependent of the one
before it: its blocks begin where that one's last blocks leave room."""
_FEW_BLOCKS = 512
"""Blocks of a grid up to which each lets the next launch begin.  That takes 70 ns on its
multiprocessor (H100), which many blocks pay one after the other; without it the next launch begins
when the last blocks end."""
_IN_TURN = f"""\
// Waits for the launch before this one, and lets the one behind it begin, which waits here too.
static __device__ inline void {IN_TURN}() {{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    if (gridDim.x * gridDim.y * gridDim.z <= {_FEW_BLOCKS}) {{
        asm volatile("griddepcontrol.launch_dependents;");
    }}
#endif
}}"""


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

    def first_lines(self, define: Define) -> list[str]:
        define(IN_TURN, _IN_TURN)
        return [f"{IN_TURN}();"]

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
