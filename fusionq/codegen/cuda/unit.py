"""CUDA C++'s translation units: head, qualifiers, options of NVRTC.

Source: NVIDIA, NVRTC 13, section Supported Compile Options.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import FloatMode
from fusionq.codegen.cuda.half import HALF
from fusionq.codegen.cuda.items import CLOCK
from fusionq.codegen.cuda.reserved import RESERVED
from fusionq.codegen.dialect import Define
from fusionq.codegen.scoping import Body
from fusionq.ir.types import FLOAT16, ScalarType

KERNEL_QUALIFIER = 'extern "C" __global__ void'
STREAMING_LOOP = "#pragma unroll "
"""Before a short loop over memory, and how many iterations are unrolled: ptxas has as many of their
loads in flight as it has registers for, which it has to be allowed (``backends.cuda.program``)."""

IN_TURN = "if (fq_never_after_wait()) return;"
"""With what a kernel over a range begins.  A launch of such a kernel may be a dependent of the one
before it: its blocks are there when that one's last blocks end.  It lets the next launch begin no
earlier (``griddepcontrol.launch_dependents``): on an H100 that takes a block 70 ns, which the
blocks of a multiprocessor pay one after the other, and the next launch's blocks take places from
this one's."""
LOADS_EARLY = (
    "// While the launch before may still run: of arrays that no launch of the list writes."
)
"""Before loads ahead of the wait."""
_NEVER_AFTER_WAIT = """\
// Waits for the launch before this one; false, which the compiler cannot tell, so that accesses
// stay behind.  Were it volatile, no array would count as one that is only read.
static __device__ inline bool fq_never_after_wait() {
    unsigned never = 0;
#if __CUDA_ARCH__ >= 900
    asm("griddepcontrol.wait;\\n\\tmov.u32 %0, 0;" : "=r"(never));
#endif
    return never != 0;
}"""

_LOAD_ROW = """\
// Neighbouring elements into registers, 16 bytes at a time where the first lies at a multiple of
// 16.  As bytes: elements of another type would count as others than those that are stored.
template <unsigned count, class T>
static __device__ __forceinline__ void fq_load_row(T (&kept)[count], const T* first) {
    if ((unsigned long long)first % 16 == 0) {
        #pragma unroll
        for (unsigned k = 0; k < count; k += 16 / sizeof(T)) {
            memcpy(&kept[k], __builtin_assume_aligned(first + k, 16), 16);
        }
    } else {
        #pragma unroll
        for (unsigned k = 0; k < count; k++) kept[k] = first[k];
    }
}"""


class CudaUnit:
    """See ``TranslationUnit``."""

    kernel_qualifier = KERNEL_QUALIFIER
    function_qualifier = "static __device__ inline"

    scalar_items = ""

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
        define("fq_never_after_wait", _NEVER_AFTER_WAIT)
        return [IN_TURN]

    loads_early = LOADS_EARLY

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

    asks_for_ids_once = False

    def prepared(self, body: Body) -> Body:
        return body

    def loop_in_order(self) -> list[str]:
        return []  # the compiler keeps the order of floating operations

    packs_arguments = False  # a launch takes the addresses of all
    eager_conditions = False  # predicates

    loads_together = True

    def row_load(self, kept: str, first: str, type: str, define: Define) -> str | None:
        define("fq_load_row", _LOAD_ROW)
        return f"fq_load_row({kept}, (const {type}*)&{first});"

    def vector_step(
        self, target: str, other: str, symbol: str, type: str, lanes: int, define: Define
    ) -> str | None:
        return None

    def streaming_loop(self, iterations: int | None, most: int) -> list[str]:
        if iterations is None:
            iterations = min(CODE_LIMITS.streamed_together, most)
        return [f"{STREAMING_LOOP}{iterations}"]
