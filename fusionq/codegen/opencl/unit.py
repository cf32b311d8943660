"""OpenCL C's translation units: head, qualifiers, compiler options."""

from __future__ import annotations

from collections.abc import Iterable

from fusionq.base.target import FloatMode
from fusionq.codegen.dialect import Define
from fusionq.codegen.opencl.early_exits import shielded
from fusionq.codegen.opencl.group_guards import decided_for_groups
from fusionq.codegen.opencl.reserved import RESERVED
from fusionq.codegen.scoping import Body
from fusionq.ir.types import FLOAT16, FLOAT64, ScalarType

KERNEL_QUALIFIER = "__kernel void"


class OpenCLUnit:
    """See ``TranslationUnit``."""

    def __init__(self, packs_arguments: bool = True) -> None:
        # dpctl and the runtimes below it take 0.9 µs for each argument of a launch.
        self.packs_arguments = packs_arguments

    eager_conditions = True
    kernel_qualifier = KERNEL_QUALIFIER
    function_qualifier = "static inline"

    scalar_items = "__attribute__((vec_type_hint(float4)))\n"
    """Kernels that say they have vectors of their own (OpenCL C 3.0, section 6.9.2) are left as
    they are by Intel's compiler for CPUs; on GPUs it means nothing."""

    def sub_groups_of(self, size: int) -> str:
        return f"__attribute__((intel_reqd_sub_group_size({size})))\n"

    def prologue(
        self, types: Iterable[ScalarType], fp: FloatMode, functions: Iterable[str] = ()
    ) -> list[str]:
        used = set(types)
        lines = []
        if "clock" in functions:
            lines.append("#pragma OPENCL EXTENSION cl_khr_kernel_clock : enable")
        if FLOAT16 in used:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp16 : enable")
        if FLOAT64 in used:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        lines.append(f"#pragma OPENCL FP_CONTRACT {'OFF' if fp == 'strict' else 'ON'}")
        return lines

    loads_early = ""

    def first_lines(self, define: Define) -> list[str]:
        return []

    def build_options(self, fp: FloatMode) -> tuple[str, ...]:
        """``strict``: every operation rounds once, division and square root correctly; no
        contraction, denormals kept.  ``fast`` also lets ``a * b + c`` become one operation
        (``FP_CONTRACT ON``, ``-cl-mad-enable``); NaN, infinities, signed zeros and the order of
        operations stay as written."""
        options = ("-cl-std=CL3.0", "-cl-fp32-correctly-rounded-divide-sqrt")
        return options if fp == "strict" else (*options, "-cl-mad-enable")

    def is_reserved(self, identifier: str) -> bool:
        return RESERVED.fullmatch(identifier) is not None

    asks_for_ids_once = True

    def prepared(self, body: Body) -> Body:
        return shielded(decided_for_groups(body))

    def loop_in_order(self) -> list[str]:
        # Intel's CPU compiler vectorises loops in its scalar version of a kernel, which runs the
        # work-items that do not fill a vector, and adds up in another order there.
        return ["#pragma clang loop vectorize(disable)"]

    loads_together = False

    def row_load(self, kept: str, first: str, type: str, define: Define) -> str | None:
        return None

    def vector_step(
        self, target: str, other: str, symbol: str, type: str, lanes: int, define: Define
    ) -> str | None:
        # vload and vstore would be called for each lane of the vectors that Intel's compiler makes.
        vector = f"fq_{type}{lanes}"
        aligned = f"__attribute__((aligned(sizeof({type})), may_alias))"
        define(vector, f"typedef {type}{lanes} {vector} {aligned};\n")
        left, right = (f"*(__local {vector}*)&{place}" for place in (target, other))
        return f"{left} = {left} {symbol} {right};"

    def streaming_loop(self, iterations: int | None, most: int) -> list[str]:
        return []  # a CPU loads ahead by itself
