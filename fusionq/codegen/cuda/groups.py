"""CUDA C++'s barriers, fences and group functions.

Reductions and scans combine in the order of ``language.combine.over_group``: values that are 32 or
more apart through shared memory, those of a warp by shuffles.

Source: NVIDIA, CUDA C++ Programming Guide 13, sections Synchronization Functions, Memory Fence
Functions and Warp Shuffle Functions.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from fusionq.ir.types import FLOAT16, FLOAT32, INT32, UINT32, UINT64, ScalarType
from fusionq.language.combine import identity

_OPERATORS: dict[GroupOp, str] = {"add": "+", "mul": "*", "and": "&", "or": "|", "xor": "^"}

_SCRATCH = """\
// A value for each work-item of a group, for one group function at a time.
static __device__ inline void* $NAME() {
    __shared__ $WORD words[1024];
    return words;
}"""

_BROADCAST = """\
static __device__ inline $T $NAME($T value, unsigned source) {
    __shared__ unsigned long long word;
    $T* shared = ($T*)&word;
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
    const unsigned id = $ID, count = $RANGE;
    $T* values = ($T*)$SCRATCH();
    unsigned apart = count > 1 ? 1u << (31 - __clz(count - 1)) : 0;
    if (count > 32) {
        __syncthreads();
        values[id] = value;
    }
    for (; apart >= 32; apart /= 2) {
        __syncthreads();
        if (id < apart && id + apart < count) {
            value = $COMBINE(value, values[id + apart]);
            values[id] = value;
        }
    }
    for (; apart > 0; apart /= 2) {
        const $T other = ($T)__shfl_down_sync(0xffffffff, value, apart);
        if (id < apart && id + apart < count) value = $COMBINE(value, other);
    }
    if (count <= 32) return ($T)__shfl_sync(0xffffffff, value, 0);
    if (id == 0) values[0] = value;
    __syncthreads();
    return values[0];
}"""

_REDUCE_TOGETHER = """\
static __device__ inline void $NAME($PARAMETERS) {
    const unsigned id = $ID, count = $RANGE;
    if ($MANY * count > 1024) {
$ALONE
        return;
    }
    $T* values = ($T*)$SCRATCH();
    $T of[$MANY] = {$ARGUMENTS};
    unsigned apart = count > 1 ? 1u << (31 - __clz(count - 1)) : 0;
    if (count > 32) {
        __syncthreads();
        for (int k = 0; k < $MANY; k++) values[k * count + id] = of[k];
    }
    for (; apart >= 32; apart /= 2) {
        __syncthreads();
        if (id < apart && id + apart < count) {
            for (int k = 0; k < $MANY; k++) {
                of[k] = $COMBINE(of[k], values[k * count + id + apart]);
                values[k * count + id] = of[k];
            }
        }
    }
    for (; apart > 0; apart /= 2) {
        for (int k = 0; k < $MANY; k++) {
            const $T other = ($T)__shfl_down_sync(0xffffffff, of[k], apart);
            if (id < apart && id + apart < count) of[k] = $COMBINE(of[k], other);
        }
    }
    if (count <= 32) {
        for (int k = 0; k < $MANY; k++) of[k] = ($T)__shfl_sync(0xffffffff, of[k], 0);
    } else {
        if (id == 0)
            for (int k = 0; k < $MANY; k++) values[k * count] = of[k];
        __syncthreads();
        for (int k = 0; k < $MANY; k++) of[k] = values[k * count];
    }
$RESULTS
}"""

_INCLUSIVE_SCAN = """\
static __device__ inline $T $NAME($T value) {
    const unsigned id = $ID, count = $RANGE, lane = id % 32;
    $T* values = ($T*)$SCRATCH();
    unsigned apart = 1;
    if (count <= 32 || count % 32 == 0) {
        $T before = value;  // 32 work-items before this one
        if (count > 32) {
            __syncthreads();
            values[id] = value;
            __syncthreads();
            if (id >= 32) before = values[id - 32];
        }
        for (; apart < 32; apart *= 2) {
            const $T near = lane >= 32 - apart ? before : value;
            const $T other = ($T)__shfl_sync(0xffffffff, near, lane - apart);
            const $T earlier = ($T)__shfl_up_sync(0xffffffff, before, apart);
            if (id >= apart) value = $COMBINE(other, value);
            if (lane >= apart) before = $COMBINE(earlier, before);
        }
    }
    for (; apart < count; apart *= 2) {
        __syncthreads();
        values[id] = value;
        __syncthreads();
        if (id >= apart) value = $COMBINE(values[id - apart], value);
    }
    return value;
}"""

_EXCLUSIVE_SCAN = """\
static __device__ inline $T $NAME($T value) {
    const unsigned id = $ID;
    value = $INCLUSIVE(value);
    const $T other = ($T)__shfl_up_sync(0xffffffff, value, 1);
    $T* totals = ($T*)$SCRATCH();
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
    sub_group_local_id = f"({LINEAR_LOCAL_ID} % 32)"

    def barrier(self, global_memory: bool, local_memory: bool) -> str:
        return "__syncthreads()"

    def fence(self, order: MemoryOrderName, scope: MemoryScopeName) -> str:
        return f"__nv_atomic_thread_fence({memory_order(order)}, {SCOPES[scope]})"

    def read_ahead(self, element: str, define: Define) -> str | None:
        """None: threads hide latencies by their number."""
        return None

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
        scratch = f"fq_group_values_{max(type.bits, 32)}"
        word = "unsigned" if type.bits <= 32 else "unsigned long long"
        define(scratch, Template(_SCRATCH).substitute(NAME=scratch, WORD=word))
        combine = combined_name(op, type)
        define(combine, combination(op, type))
        inclusive = f"fq_group_inclusive_scan_{op}_{suffix(type)}"
        if function == "exclusive_scan":
            scan = _filled(_INCLUSIVE_SCAN, type, NAME=inclusive, COMBINE=combine, SCRATCH=scratch)
            define(inclusive, scan)
        start = Const(type, type.dtype.type(identity(op, type.dtype)).item())
        name = f"fq_group_{function}_{op}_{suffix(type)}"
        define(
            name,
            _filled(
                _TEXTS[function], type, NAME=name, COMBINE=combine, INCLUSIVE=inclusive,
                SCRATCH=scratch,
                IDENTITY=f"({TYPE_NAMES[type.name]})({CudaScalars().literal(start).text})",
            ),
        )  # fmt: skip
        return f"{name}({value})"

    def most_together(self, type: ScalarType) -> int:
        return 4

    def joint_reduction(
        self, op: GroupOp, variables: Sequence[str], type: ScalarType, define: Define
    ) -> str:
        alone = self.collective("reduce", op, "{}", type, define)
        count, name = len(variables), f"fq_group_reduce_{op}_{suffix(type)}_x{len(variables)}"
        parameters = [f"value_{k}" for k in range(count)]
        text = _filled(
            _REDUCE_TOGETHER, type, NAME=name, MANY=str(count),
            PARAMETERS=", ".join(f"{TYPE_NAMES[type.name]}& {each}" for each in parameters),
            ARGUMENTS=", ".join(parameters),
            ALONE="\n".join(f"        {each} = {alone.format(each)};" for each in parameters),
            RESULTS="\n".join(f"    {each} = of[{k}];" for k, each in enumerate(parameters)),
            COMBINE=combined_name(op, type),
            SCRATCH=f"fq_group_values_{max(type.bits, 32)}",
        )  # fmt: skip
        define(name, text)
        return f"{name}({', '.join(variables)})"

    def broadcast_type(self, type: ScalarType) -> ScalarType:
        return type

    def broadcast(
        self, value: str, type: ScalarType, source: str, ndim: int, define: Define
    ) -> str:
        name = f"fq_group_broadcast_{suffix(type)}"
        define(name, _filled(_BROADCAST, type, NAME=name))
        return f"{name}({value}, (unsigned)({source}))"

    def shuffle_type(self, type: ScalarType) -> ScalarType:
        if type.is_float:
            return FLOAT32 if type.bits == 16 else type
        return type if type.bits >= 32 else INT32

    def shuffle(self, value: str, type: ScalarType, place: str) -> str:
        return f"__shfl_sync(0xffffffff, {value}, {place})"


def combined_name(op: GroupOp, type: ScalarType) -> str:
    """The name of the function that combines two values."""
    return f"fq_combine_{op}_{suffix(type)}"


def combination(op: GroupOp, type: ScalarType) -> str:
    """The text of that function."""
    name = combined_name(op, type)
    return _filled(_COMBINATION, type, COMBINE=name, COMBINED=_combined(op, type))


def _combined(op: GroupOp, type: ScalarType) -> str:
    """What becomes of ``a`` and ``b``; sums and products of integers wrap."""
    if op in ("min", "max"):
        order = f"b {'<' if op == 'min' else '>'} a"
        # Between structures NVRTC 13.0 chooses for ever, in reductions of several at once.
        return f"fq_half_of({order} ? b.bits : a.bits)" if type == FLOAT16 else f"{order} ? b : a"
    if type.is_float or op not in ("add", "mul"):
        return f"a {_OPERATORS[op]} b"
    ring = TYPE_NAMES[(UINT64 if type.bits == 64 else UINT32).name]
    return f"({TYPE_NAMES[type.name]})(({ring})a {_OPERATORS[op]} ({ring})b)"


def _filled(text: str, type: ScalarType, **words: str) -> str:
    ids = {"ID": LINEAR_LOCAL_ID, "RANGE": LINEAR_LOCAL_RANGE}
    return Template(text).substitute(words, **ids, T=TYPE_NAMES[type.name])
