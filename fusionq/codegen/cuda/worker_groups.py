"""Group functions and barriers of work-groups that run side by side in one block: each has whole
warps of it, a power of two of work-items, and a named barrier.

The order is that of ``language.combine.over_group``, as in ``codegen.cuda.groups``.  Of a reduction
each warp combines what all have stored, so that one barrier does: the next one stores into the
other half of the memory (``fq_turn``), and whoever gets beyond its barrier knows that all have read
the first half.

Source: PTX ISA 9, ``bar``: 16 barriers a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.codegen.cuda.groups import CudaGroups, combination, combined_name
from fusionq.codegen.cuda.scalars import TYPE_NAMES, CudaScalars
from fusionq.codegen.dialect import Define
from fusionq.codegen.helper_functions import suffix
from fusionq.ir.nodes import Const, GroupFunction, GroupOp
from fusionq.ir.types import ScalarType
from fusionq.language.combine import halves, identity

WARP = 32
TURN = "fq_turn"
"""The variable of each thread that says which half of the memory comes next."""

_JOINT_BYTES = 16
"""Of the values that a thread reduces together."""

_SCRATCH = """\
// Two values for each thread of a block, of which a work-group uses one half and the other in turn;
// or as many times more as are combined together.
static __device__ __forceinline__ void* $NAME(unsigned turn) {
    __shared__ $WORD words[2][$WORDS];
    return words[turn % 2];
}"""

_REDUCE = """\
static __device__ __forceinline__ $T $NAME($T value, unsigned& turn) {
    const unsigned lane = threadIdx.x % 32;
$SHARED
    for (int apart = 16; apart > 0; apart /= 2)
        value = $COMBINE(value, ($T)__shfl_down_sync(0xffffffff, value, apart));
    return ($T)__shfl_sync(0xffffffff, value, 0);
}"""

_REDUCE_TOGETHER = """\
static __device__ __forceinline__ void $NAME($PARAMETERS, unsigned& turn) {
    const unsigned lane = threadIdx.x % 32;
$SHARED
    for (int apart = 16; apart > 0; apart /= 2) {
$STEP
    }
$RESULTS
}"""

_SCAN = """\
static __device__ __forceinline__ $T $NAME($T value, unsigned& turn) {
    const unsigned id = threadIdx.x % $SIZE, lane = id % 32;
    $T before = value;  // 32 work-items before this one
    if ($SIZE > 32) {
        $T* values = ($T*)$SCRATCH(turn++) + (threadIdx.x - id);
        values[id] = value;
        $BARRIER;
        if (id >= 32) before = values[id - 32];
    }
    for (unsigned apart = 1; apart < 32; apart *= 2) {
        const $T near = lane >= 32 - apart ? before : value;
        const $T other = ($T)__shfl_sync(0xffffffff, near, lane - apart);
        const $T earlier = ($T)__shfl_up_sync(0xffffffff, before, apart);
        if (id >= apart) value = $COMBINE(other, value);
        if (lane >= apart) before = $COMBINE(earlier, before);
    }
    for (unsigned apart = 32; apart < $SIZE; apart *= 2) {
        $T* values = ($T*)$SCRATCH(turn++) + (threadIdx.x - id);
        values[id] = value;
        $BARRIER;
        if (id >= apart) value = $COMBINE(values[id - apart], value);
    }
    return value;
}"""

_SHIFTED = """\
static __device__ __forceinline__ $T $NAME($T value, unsigned& turn) {
    const unsigned id = threadIdx.x % $SIZE;
    value = $INCLUSIVE(value, turn);
    $T* values = ($T*)$SCRATCH(turn++) + (threadIdx.x - id);
    values[id] = value;
    $BARRIER;
    return id == 0 ? $IDENTITY : values[id - 1];
}"""

_BROADCAST = """\
static __device__ __forceinline__ $T $NAME($T value, unsigned source, unsigned& turn) {
    const unsigned id = threadIdx.x % $SIZE;
    $T* values = ($T*)$SCRATCH(turn++) + (threadIdx.x - id);
    if (id == source) values[0] = value;
    $BARRIER;
    return values[0];
}"""

_VOTE = """\
static __device__ __forceinline__ bool $NAME(bool value) {
    unsigned found;
    asm volatile("{\\n\\t.reg .pred own, all;\\n\\tsetp.ne.u32 own, %1, 0;\\n\\t"
        "bar.red.$OP.pred all, %2, $SIZE, own;\\n\\tselp.u32 %0, 1, 0, all;\\n\\t}"
        : "=r"(found) : "r"((unsigned)value), "r"($NUMBER) : "memory");
    return found != 0;
}"""


class CudaWorkerGroups(CudaGroups):
    """See ``Groups``; for work-groups of ``size`` threads of a worker of so many ``lanes``."""

    def __init__(self, size: int, lanes: int = CODE_LIMITS.worker_threads) -> None:
        assert size >= WARP and lanes % size == 0
        self.size = size
        self._lanes = lanes
        self.linear_local_id = f"(threadIdx.x % {size})"
        self.linear_local_range = str(size)
        self.sub_group_local_id = "(threadIdx.x % 32)"
        self._number = f"1 + threadIdx.x / {size}"

    def barrier(self, global_memory: bool, local_memory: bool) -> str:
        if self.size == WARP:
            return "__syncwarp()"
        return f"__barrier_sync_count({self._number}, {self.size})"

    def collective(
        self,
        function: GroupFunction,
        op: GroupOp | None,
        value: str,
        type: ScalarType,
        define: Define,
    ) -> str:
        if function in ("any", "all"):
            return self._vote(function, value, define)
        assert op is not None
        scratch = self._scratch(type, define)
        combine = combined_name(op, type)
        define(combine, combination(op, type))
        words = {"COMBINE": combine, "SCRATCH": scratch}
        name = f"fq_worker_{function}_{op}_{suffix(type)}_{self.size}"
        if function == "reduce":
            text = self._filled(_REDUCE, type, NAME=name, SHARED=self._shared(type, words), **words)
        elif function == "inclusive_scan":
            text = self._filled(_SCAN, type, NAME=name, **words)
        else:
            inclusive = name.replace("exclusive", "inclusive")
            define(inclusive, self._filled(_SCAN, type, NAME=inclusive, **words))
            start = Const(type, type.dtype.type(identity(op, type.dtype)).item())
            first = f"({TYPE_NAMES[type.name]})({CudaScalars().literal(start).text})"
            text = self._filled(
                _SHIFTED, type, NAME=name, INCLUSIVE=inclusive, IDENTITY=first, **words
            )
        define(name, text)
        return f"{name}({value}, {TURN})"

    def most_together(self, type: ScalarType) -> int:
        return _JOINT_BYTES // (max(type.bits, 32) // 8)

    def joint_reduction(
        self, op: GroupOp, variables: Sequence[str], type: ScalarType, define: Define
    ) -> str:
        count, words = len(variables), {"COMBINE": combined_name(op, type)}
        define(words["COMBINE"], combination(op, type))
        words["SCRATCH"] = self._joint_scratch(define)
        name = f"fq_worker_reduce_{op}_{suffix(type)}_{self.size}_x{count}"
        values = [f"value_{k}" for k in range(count)]
        shared = self._shared(type, words, values)
        step = [
            f"        {v} = {words['COMBINE']}({v}, ($T)__shfl_down_sync(0xffffffff, {v}, apart));"
            for v in values
        ]
        results = [f"    {v} = ($T)__shfl_sync(0xffffffff, {v}, 0);" for v in values]
        text = Template(_REDUCE_TOGETHER).safe_substitute(
            NAME=name,
            PARAMETERS=", ".join(f"$T& {v}" for v in values),
            SHARED=shared,
            STEP="\n".join(step),
            RESULTS="\n".join(results),
        )
        define(name, self._filled(text, type))
        return f"{name}({', '.join(variables)}, {TURN})"

    def broadcast(
        self, value: str, type: ScalarType, source: str, ndim: int, define: Define
    ) -> str:
        name = f"fq_worker_broadcast_{suffix(type)}_{self.size}"
        scratch = self._scratch(type, define)
        define(name, self._filled(_BROADCAST, type, NAME=name, SCRATCH=scratch))
        return f"{name}({value}, (unsigned)({source}), {TURN})"

    def _vote(self, function: GroupFunction, value: str, define: Define) -> str:
        if self.size == WARP:
            return f"(__{function}_sync(0xffffffff, {value}) != 0)"
        name = f"fq_worker_{function}_{self.size}"
        op = "or" if function == "any" else "and"
        words = {"NAME": name, "OP": op, "SIZE": str(self.size), "NUMBER": self._number}
        define(name, Template(_VOTE).substitute(words))
        return f"{name}({value})"

    def _scratch(self, type: ScalarType, define: Define) -> str:
        if self._lanes > CODE_LIMITS.worker_threads:
            # One memory for all, of which a function of whatever type uses a half: of so many
            # lanes they would take what rings are for.
            return self._joint_scratch(define)
        name = f"fq_worker_values_{max(type.bits, 32)}"
        word = "unsigned" if type.bits <= 32 else "unsigned long long"
        define(name, Template(_SCRATCH).substitute(NAME=name, WORD=word, WORDS=self._lanes))
        return name

    def _joint_scratch(self, define: Define) -> str:
        name, words = "fq_worker_values_together", _JOINT_BYTES * self._lanes // 8
        text = Template(_SCRATCH).substitute(NAME=name, WORD="unsigned long long", WORDS=words)
        define(name, text)
        return name

    def _shared(
        self, type: ScalarType, words: dict[str, str], names: Sequence[str] = ("value",)
    ) -> str:
        """What leaves in each warp's ``names`` the values of the group that are 32 or more apart,
        combined."""
        if self.size == WARP:
            return ""
        combine = words["COMBINE"]
        begins = [f" + {k * self._lanes}" if k else "" for k in range(len(names))]
        lines = [
            f"const unsigned id = threadIdx.x % {self.size};",
            f"$T* values = ($T*){words['SCRATCH']}(turn++) + (threadIdx.x - id);",
            *(f"values[id{at}] = {name};" for name, at in zip(names, begins, strict=True)),
            f"{self.barrier(False, True)};",
        ]
        for name, at in zip(names, begins, strict=True):
            parts = [f"values[lane + {WARP * k}{at}]" for k in range(self.size // WARP)]
            for apart in halves(len(parts)):
                parts = [f"{combine}({parts[k]}, {parts[k + apart]})" for k in range(apart)]
            lines.append(f"{name} = {parts[0]};")
        text = "\n".join(f"    {line}" for line in lines)
        return Template(text).substitute(T=TYPE_NAMES[type.name])

    def _filled(self, text: str, type: ScalarType, **words: str) -> str:
        return Template(text).substitute(
            words, T=TYPE_NAMES[type.name], SIZE=str(self.size), BARRIER=self.barrier(False, True)
        )
