"""OpenCL C's barriers, fences and group functions.

Source: Khronos, The OpenCL C Specification 3.0, sections 6.15.8 (barriers), 6.15.12 (fences) and
6.15.16 (work-group collective functions).
"""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.codegen.dialect import Define
from fusionq.codegen.opencl.atomics import SCOPES, atomic, compare_exchange, memory_order
from fusionq.codegen.opencl.items import LINEAR_LOCAL_ID, LINEAR_LOCAL_RANGE
from fusionq.ir.nodes import (
    AtomicOp,
    GroupFunction,
    GroupOp,
    MemoryOrderName,
    MemoryScopeName,
    Space,
)
from fusionq.ir.types import FLOAT16, FLOAT32, INT32, INT64, UINT32, UINT64, ScalarType

_COLLECTIVE_OPS = ("add", "min", "max")
"""The operations for which OpenCL C 3.0 has collective functions."""


_READ_AHEAD = """\
static inline void fq_read_ahead(__global const void* element) {
#if defined(__has_builtin) && defined(__opencl_c_generic_address_space)
#if __has_builtin(__builtin_prefetch)
    __builtin_prefetch((const void*)element);
#endif
#endif
}"""


class OpenCLGroups:
    """See ``Groups``."""

    linear_local_id = LINEAR_LOCAL_ID
    linear_local_range = LINEAR_LOCAL_RANGE
    sub_group_local_id = "get_sub_group_local_id()"

    def barrier(self, global_memory: bool, local_memory: bool) -> str:
        flags = [
            flag
            for flag, wanted in (
                ("CLK_GLOBAL_MEM_FENCE", global_memory),
                ("CLK_LOCAL_MEM_FENCE", local_memory),
            )
            if wanted
        ]
        return f"barrier({' | '.join(flags) or '0'})"

    def fence(self, order: MemoryOrderName, scope: MemoryScopeName) -> str:
        memories = "CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE"
        return f"atomic_work_item_fence({memories}, {memory_order(order)}, {SCOPES[scope]})"

    def read_ahead(self, element: str, define: Define) -> str | None:
        """By Clang's function, which is nothing where there is none: OpenCL's own makes compilers
        for CPUs (Intel's, 2026.1) go through the elements one by one."""
        define("fq_read_ahead", _READ_AHEAD)
        return f"fq_read_ahead(&{element})"

    def atomic(
        self,
        op: AtomicOp,
        type: ScalarType,
        space: Space,
        element: str,
        value: str | None,
        order: MemoryOrderName,
        scope: MemoryScopeName,
        define: Define,
        expected: str | None = None,
    ) -> str:
        if expected is not None:
            name = compare_exchange(type, space, order, scope, define)
            return f"{name}(&{element}, {expected}, {value})"
        return atomic(op, type, space, element, value, order, scope, define)

    def collective_type(self, type: ScalarType) -> ScalarType:
        """The smallest that group functions take."""
        if type.is_float:
            return type
        if type.bits < 32:
            return INT32
        return type if type in (INT32, INT64, UINT32, UINT64) else INT32

    def has_collective(self, function: GroupFunction, op: GroupOp | None) -> bool:
        return op is None or op in _COLLECTIVE_OPS

    def collective(
        self,
        function: GroupFunction,
        op: GroupOp | None,
        value: str,
        type: ScalarType,
        define: Define,
    ) -> str:
        if function in ("any", "all"):
            return f"work_group_{function}({value})"
        if function == "reduce":
            return f"work_group_reduce_{op}({value})"
        return f"work_group_scan_{function.removesuffix('_scan')}_{op}({value})"

    def most_together(self, type: ScalarType) -> int:
        return 1

    def joint_reduction(
        self, op: GroupOp, variables: Sequence[str], type: ScalarType, define: Define
    ) -> str:
        raise AssertionError("the language's functions reduce a value each")

    def broadcast_type(self, type: ScalarType) -> ScalarType:
        """As ``collective_type``, but that Intel's compiler crashes on half."""
        return FLOAT32 if type == FLOAT16 else self.collective_type(type)

    def broadcast(
        self, value: str, type: ScalarType, source: str, ndim: int, define: Define
    ) -> str:
        size = "get_local_size({})".format
        ids = {
            1: [source],
            2: [f"({source}) % {size(0)}", f"({source}) / {size(0)}"],
            3: [
                f"({source}) % {size(0)}",
                f"({source}) / {size(0)} % {size(1)}",
                f"({source}) / ({size(0)} * {size(1)})",
            ],
        }[ndim]
        return f"work_group_broadcast({', '.join([value, *ids])})"

    def shuffle_type(self, type: ScalarType) -> ScalarType:
        return self.broadcast_type(type)

    def shuffle(self, value: str, type: ScalarType, place: str) -> str:
        if place == "0":  # which the compiler knows to be the same for all: scalar code behind
            return f"sub_group_broadcast({value}, 0)"
        return f"sub_group_shuffle({value}, (uint)({place}))"  # cl_khr_subgroup_shuffle
