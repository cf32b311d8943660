"""CUDA C++'s barriers, fences and group functions.

Reductions and scans combine in an order that depends on the group's shape alone:

* the values of each 32 work-items that follow each other in the linear local id, a warp, in a tree:
  a reduction adds to each value the one 16 further on, then 8, 4, 2 and 1; a scan to each the one
  1 before, then 2, 4, 8 and 16;
* the warps' totals one after the other, from the first.

Source: NVIDIA, CUDA C++ Programming Guide 13, sections Synchronization Functions, Memory Fence
Functions and Warp Shuffle Functions.
"""

from __future__ import annotations

from string import Template

from fusionq.codegen.cuda.atomics import SCOPES, atomic, compare_exchange, memory_order
from fusionq.codegen.cuda.items import LINEAR_LOCAL_ID, LINEAR_LOCAL_RANGE
from fusionq.codegen.cuda.scalars import TYPE_NAMES, CudaScalars
from fusionq.codegen.dialect import Define
from fusionq.codegen.helper_functions import suffix
from fusionq.ir.nodes import (
    AtomicOp,
    Const,
    GroupFunction,
    GroupOp,
    MemoryOrderName,
    MemoryScopeName,
    Space,
)
from fusionq.ir.types import FLOAT32, INT32, UINT32, UINT64, ScalarType
from fusionq.language.combine import identity

_OPERATORS: dict[GroupOp, str] = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}

_SCRATCH = """\
// One word for each warp of a group, for one group function at a time.
static __device__ inline void* fq_group_scratch() {
    __shared__ unsigned long long words[32];
    return words;
}"""

_BROADCAST = """\
static __device__ inline $T $NAME($T value, unsigned source) {
    $T* shared = ($T*)fq_group_scratch();
    __syncthreads();
    if ($ID == source) *shared = value;
    __syncthreads();
    return *shared;
}"""

_COMBINATION = """\
static __device__ inline $T $COMBINE($T a, $T b) {
    return $COMBINED;
}"""

_REDUCE = """\
static __device__ inline $T $NAME($T value) {
    const unsigned id = $ID, count = $RANGE, lane = id % 32, rest = count - (id - lane);
    for (unsigned distance = 16; distance > 0; distance /= 2) {
        const $T other = ($T)__shfl_down_sync(0xffffffff, value, distance);
        if (lane + distance < rest && lane + distance < 32) value = $COMBINE(value, other);
    }
    $T* totals = ($T*)fq_group_scratch();
    __syncthreads();
    if (lane == 0) totals[id / 32] = value;
    __syncthreads();
    value = totals[0];
    for (unsigned warp = 1; warp * 32 < count; warp++) value = $COMBINE(value, totals[warp]);
    return value;
}"""

_INCLUSIVE_SCAN = """\
static __device__ inline $T $NAME($T value) {
    const unsigned id = $ID, count = $RANGE, lane = id % 32;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        const $T other = ($T)__shfl_up_sync(0xffffffff, value, distance);
        if (lane >= distance) value = $COMBINE(other, value);
    }
    $T* totals = ($T*)fq_group_scratch();
    __syncthreads();
    if (lane == 31 || id + 1 == count) totals[id / 32] = value;
    __syncthreads();
    if (id < 32) return value;
    $T before = totals[0];
    for (unsigned warp = 1; warp < id / 32; warp++) before = $COMBINE(before, totals[warp]);
    return $COMBINE(before, value);
}"""

_EXCLUSIVE_SCAN = """\
static __device__ inline $T $NAME($T value) {
    const unsigned id = $ID;
    value = $INCLUSIVE(value);
    const $T other = ($T)__shfl_up_sync(0xffffffff, value, 1);
    $T* totals = ($T*)fq_group_scratch();
    __syncthreads();
    if (id % 32 == 31) totals[id / 32] = value;
    __syncthreads();
    if (id % 32 != 0) return other;
    return id == 0 ? $IDENTITY : totals[id / 32 - 1];
}"""

_TEXTS = {
    "reduce": _REDUCE, "inclusive_scan": _INCLUSIVE_SCAN, "exclusive_scan": _EXCLUSIVE_SCAN,
}  # fmt: skip


class CudaGroups:
    """See ``Groups``."""

    linear_local_id = LINEAR_LOCAL_ID
    linear_local_range = LINEAR_LOCAL_RANGE

    def barrier(self, global_memory: bool, local_memory: bool) -> str:
        return "__syncthreads()"

    def fence(self, order: MemoryOrderName, scope: MemoryScopeName) -> str:
        return f"__nv_atomic_thread_fence({memory_order(order)}, {SCOPES[scope]})"

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
        return type

    def has_collective(self, function: GroupFunction, op: GroupOp | None) -> bool:
        return True

    def collective(
        self,
        function: GroupFunction,
        op: GroupOp | None,
        value: str,
        type: ScalarType,
        define: Define,
    ) -> str:
        if function in ("any", "all"):
            return f"(__syncthreads_{'or' if function == 'any' else 'and'}({value}) != 0)"
        assert op is not None
        define("fq_group_scratch", _SCRATCH)
        combine = f"fq_combine_{op}_{suffix(type)}"
        define(combine, _filled(_COMBINATION, type, COMBINE=combine, COMBINED=_combined(op, type)))
        inclusive = f"fq_group_inclusive_scan_{op}_{suffix(type)}"
        if function == "exclusive_scan":
            define(inclusive, _filled(_INCLUSIVE_SCAN, type, NAME=inclusive, COMBINE=combine))
        start = Const(type, type.dtype.type(identity(op, type.dtype)).item())
        name = f"fq_group_{function}_{op}_{suffix(type)}"
        define(
            name,
            _filled(
                _TEXTS[function], type, NAME=name, COMBINE=combine, INCLUSIVE=inclusive,
                IDENTITY=f"({TYPE_NAMES[type.name]})({CudaScalars().literal(start).text})",
            ),
        )  # fmt: skip
        return f"{name}({value})"

    def broadcast_type(self, type: ScalarType) -> ScalarType:
        return type

    def broadcast(
        self, value: str, type: ScalarType, source: str, ndim: int, define: Define
    ) -> str:
        name = f"fq_group_broadcast_{suffix(type)}"
        define("fq_group_scratch", _SCRATCH)
        define(name, _filled(_BROADCAST, type, NAME=name))
        return f"{name}({value}, (unsigned)({source}))"

    def shuffle_type(self, type: ScalarType) -> ScalarType:
        if type.is_float:
            return FLOAT32 if type.bits == 16 else type
        return type if type.bits >= 32 else INT32

    def shuffle(self, value: str, type: ScalarType, place: str) -> str:
        return f"__shfl_sync(0xffffffff, {value}, {place})"


def _combined(op: GroupOp, type: ScalarType) -> str:
    """What becomes of ``a`` and ``b``; sums and products of integers wrap."""
    if op in ("min", "max"):
        return f"b {'<' if op == 'min' else '>'} a ? b : a"
    if type.is_float or op not in ("add", "mul"):
        return f"a {_OPERATORS[op]} b"
    ring = TYPE_NAMES[(UINT64 if type.bits == 64 else UINT32).name]
    return f"({TYPE_NAMES[type.name]})(({ring})a {_OPERATORS[op]} ({ring})b)"


def _filled(text: str, type: ScalarType, **words: str) -> str:
    ids = {"ID": LINEAR_LOCAL_ID, "RANGE": LINEAR_LOCAL_RANGE}
    return Template(text).substitute(words, **ids, T=TYPE_NAMES[type.name])
