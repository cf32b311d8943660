"""CUDA C++'s threads: ids, ranges, warps, clocks.

Source: NVIDIA, CUDA C++ Programming Guide 13, sections Built-in Variables, Warp Vote Functions and
Time Function; PTX ISA 9, special register ``%globaltimer``.
"""

from __future__ import annotations

from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Query

LINEAR_LOCAL_ID = "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))"
LINEAR_LOCAL_RANGE = "(blockDim.x * blockDim.y * blockDim.z)"

_QUERIES: dict[Query, str] = {
    "global_id": "((long long)blockIdx.{1} * blockDim.{0} + threadIdx.{0})",
    "global_range": "((long long)gridDim.{1} * blockDim.{0})",
    "local_id": "threadIdx.{0}",
    "local_range": "blockDim.{0}",
    "group_id": "blockIdx.{1}",
    "group_range": "gridDim.{1}",
}

_DEVICE_FUNCTIONS = {
    "clock": "fq_clock()",
    "cycle_counter": "(long long)clock64()",
    "first_sub_group": f"({LINEAR_LOCAL_ID} / 32 == 0)",
    "first_sub_group_here": f"({LINEAR_LOCAL_ID} / 32 == 0)",
    "last_sub_group": f"({LINEAR_LOCAL_ID} / 32 == ({LINEAR_LOCAL_RANGE} - 1) / 32)",
    "sub_group_has_here": (
        f"(__any_sync(__activemask(), {LINEAR_LOCAL_ID} == (unsigned)({{}})) != 0)"
    ),
    "leads_sub_group": f"({LINEAR_LOCAL_ID} % 32 == 0)",
    "hidden": "({})",
    "first_of_sub_group": f"({{}} - (long long)({LINEAR_LOCAL_ID} % 32))",
    "sub_group_local_id": f"(long long)({LINEAR_LOCAL_ID} % 32)",
    "sub_group_local_range": "32",
}

CLOCK = """\
// Nanoseconds of the device's clock.
static __device__ inline long long fq_clock() {
    long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}"""


@dataclass(frozen=True, slots=True)
class CudaWorkItems:
    """See ``WorkItems``.

    ``axes``: by which of a block's indices the number of a work-group is known in its last
    dimension, the one before, and the one before that.
    """

    axes: str = "xyz"

    def query(self, query: Query, dim: int, ndim: int) -> str:
        place = ndim - 1 - dim
        return _QUERIES[query].format("xyz"[place], self.axes[place])

    def device_function(self, function: str, *arguments: str) -> str:
        return _DEVICE_FUNCTIONS[function].format(*arguments)
