"""CUDA C++'s workers: blocks of threads.

They are launched cooperatively, so that all run at once.  The first thread polls, the others wait
at the block's barrier; what that thread acquires or releases at device scope counts for the whole
block, since causality order goes through barriers.

Source: NVIDIA, CUDA C++ Programming Guide 13, sections Synchronization Functions, Built-in Atomic
Functions and Launch Bounds; PTX ISA 9, section Memory Consistency Model.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.target import Target
from fusionq.codegen.cuda.atomics import SCOPES
from fusionq.codegen.cuda.rings import CudaRings, rings_of
from fusionq.codegen.cuda.unit import KERNEL_QUALIFIER
from fusionq.codegen.cuda.worker_groups import CudaWorkerGroups
from fusionq.codegen.device_source import WorkerBlock
from fusionq.codegen.dialect import Groups
from fusionq.codegen.dialect.workers import AddOrder
from fusionq.codegen.instruction_loop import NEAR_TABLES
from fusionq.codegen.ring_shape import LARGEST_STATIC, near_words, words_beside_rings
from fusionq.ir.nodes import Persistent

_DEVICE = SCOPES["device"]
_ACQUIRE, _ACQ_REL = "__NV_ATOMIC_ACQUIRE", "__NV_ATOMIC_ACQ_REL"

_FUNCTIONS = """\
// The first thread's value.  Nobody still reads the one before.
template <class T>
static __device__ __forceinline__ T fq_broadcast(T value) {
    __shared__ T first;
    __syncthreads();
    if (threadIdx.x == 0) first = value;
    __syncthreads();
    return first;
}

// Asks for memory to be brought into the level 2 cache: whole units of 16 bytes, or lines.
static __device__ __forceinline__ void fq_fetch(unsigned long long address, long long nbytes) {
#if __CUDA_ARCH__ >= 900
    const unsigned long long from = address + 15 & ~15ull, to = address + nbytes & ~15ull;
    if (from < to)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
            :: "l"(from), "r"((unsigned)(to - from)));
#else
    for (long long at = 0; at < nbytes; at += 128)
        asm volatile("prefetch.global.L2 [%0];" :: "l"(address + at));
#endif
}

// Copies a word of global memory to shared memory, behind cp.async.wait_all.
static __device__ __forceinline__ void fq_copy_word(long long* place, const long long* source) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;"
        :: "r"((unsigned)__cvta_generic_to_shared(place)), "l"(source) : "memory");
}

// So many blocks of a multiprocessor at once, or as many as there are threads for, or a part of
// them, or registers as they come.
#ifdef FQ_RESIDENT
#define FQ_BOUNDS(threads, blocks) __launch_bounds__(threads, FQ_RESIDENT)
#elif defined FQ_PART
#define FQ_BOUNDS(threads, blocks) __launch_bounds__(threads, ((blocks) + FQ_PART - 1) / FQ_PART)
#else
#define FQ_BOUNDS(threads, blocks) __launch_bounds__(threads)
#endif

"""


def part_resident(part: int) -> str:
    """The option that makes the compiler keep to the registers that leave room for one in ``part``
    of all workers."""
    return f"--define-macro=FQ_PART={part}"


def resident(blocks: int) -> str:
    """The option that makes the compiler keep to the registers that leave room for so many blocks
    of a multiprocessor at once."""
    return f"--define-macro=FQ_RESIDENT={blocks}"


_BARRIER = 15
"""The named barrier of a worker's lanes, where its block has threads beside them; those of its
work-groups come before it (``codegen.cuda.worker_groups``)."""
LARGE_TABLES = f"extern __shared__ __align__({CODE_LIMITS.ring_alignment}) ulonglong2 fq_near"
"""How the tables of a worker are declared where launches give their memory: where lines of rings
begin, too.  A decode step on an H100 takes 1.504 ms where bulk copies write across lines, 1.429
so."""


class CudaWorkers:
    """See ``Workers``; ``rings``: where threads beyond the worker's lanes fill some."""

    word_pointer = "unsigned*"
    lane = "(int)threadIdx.x"
    worker = "(int)blockIdx.x"
    barrier = "__syncthreads()"
    first_lane_takes = True
    pollers = 32  # a warp
    pause = "__nanosleep(20);"
    inline_function = "static __device__ __forceinline__"
    outlined_function = "static __device__"
    cold_function = "static __device__ __noinline__"
    functions = _FUNCTIONS
    unlikely = "#define FQ_UNLIKELY(condition) __builtin_expect((condition) ? 1 : 0, 0)"
    items_at_once = 4
    rolled_loop: tuple[str, ...] = ("#pragma unroll 1",)
    counts_launches = True
    order_type = "int"
    release_fence = f"__nv_atomic_thread_fence(__NV_ATOMIC_RELEASE, {_DEVICE});"

    def __init__(self, rings: CudaRings | None = None) -> None:
        self.rings = rings
        self.group_barrier = "__syncthreads()"
        self.lane_anew: tuple[str, ...] = ()
        if rings is not None:
            read = 'asm volatile("mov.u32 %0, %tid.x;" : "=r"(fq_lane));'
            self.lane_anew = ("int fq_lane;", read)
            self.group_barrier = f"__barrier_sync_count({_BARRIER}, {rings.lanes})"

    def fitted(self, body: Persistent, target: Target) -> tuple[CudaWorkers, Target]:
        rings = rings_of(body, target)
        if rings is None:
            return self, target
        units = target.device.compute_units
        return CudaWorkers(rings), replace(
            target, worker_size=rings.lanes, resident_workers=units
        )

    def worker_block(self, body: Persistent, target: Target) -> WorkerBlock | None:
        rings = self.rings
        if rings is None:
            return None
        line = CODE_LIMITS.ring_alignment
        tables = -(-8 * self.near_words(body, target) // line) * line
        return WorkerBlock(rings.lanes, rings.lanes + rings.threads, tables + rings.nbytes)

    def kernel_qualifier(self, target: Target) -> str:
        if self.rings is not None:
            # ptxas leaves threads half of the registers if nobody says that there is one block.
            threads = self.rings.lanes + self.rings.threads
            return f"{KERNEL_QUALIFIER} __launch_bounds__({threads}, 1)"
        blocks = max(target.resident_workers // target.device.compute_units, 1)
        return f"{KERNEL_QUALIFIER} FQ_BOUNDS({target.worker_size}, {blocks})"

    def local_memory(self, name: str, nbytes: int) -> list[str]:
        words = -(-nbytes // 16)
        space = f"__shared__ ulonglong2 {name}_words[{words}];"
        if nbytes > LARGEST_STATIC or (self.rings is not None and name == NEAR_TABLES):
            line = CODE_LIMITS.ring_alignment
            space = f"extern __shared__ __align__({line}) ulonglong2 {name}_words[];"
        return [space, f"unsigned char* const {name} = (unsigned char*){name}_words;"]

    def groups_of(self, size: int) -> Groups:
        lanes = CODE_LIMITS.worker_threads if self.rings is None else self.rings.lanes
        return CudaWorkerGroups(size, lanes)

    def near_words(self, body: Persistent, target: Target) -> int:
        # A level 1 cache forgets everything with each acquire.
        if self.rings is not None:
            return words_beside_rings(body)
        return near_words(body, target.device.local_memory_bytes)

    def loads_at_once(self, body: Persistent, target: Target) -> int:
        # Two workers of a multiprocessor leave a thread 128 registers.
        large = self.rings is not None or 8 * self.near_words(body, target) > LARGEST_STATIC
        return CODE_LIMITS.loads_ahead if large else 0

    def broadcast(self, value: str) -> str:
        return f"fq_broadcast({value})"

    def poller_broadcast(self, value: str, lane: str) -> str:
        return f"__shfl_sync(0xffffffff, {value}, {lane})"

    def all_pollers(self, condition: str) -> str:
        return f"(__all_sync(0xffffffff, {condition}) != 0)"

    def copied_word(self, place: str, source: str) -> str:
        return f"fq_copy_word({place}, {source});"

    def words_copied(self) -> str:
        return 'asm volatile("cp.async.wait_all;" ::: "memory");'

    def read_ahead(self, address: str, nbytes: str) -> str:
        return f"fq_fetch({address}, {nbytes});"

    def yield_processor(self, target: Target) -> str:
        return ""

    def order(self, order: AddOrder) -> str:
        return f"__NV_ATOMIC_{order.upper()}"

    def load_acquire(self, word: str) -> str:
        return f"__nv_atomic_load_n({word}, {_ACQUIRE}, {_DEVICE})"

    def load_relaxed(self, word: str) -> str:
        return f"__nv_atomic_load_n({word}, __NV_ATOMIC_RELAXED, {_DEVICE})"

    def fetch_add(self, word: str, value: str, order: AddOrder) -> str:
        return f"__nv_atomic_fetch_add({word}, {value}, {self.order(order)}, {_DEVICE})"

    def compare_exchange(self, word: str, seen: str, wanted: str) -> str:
        return f"""__nv_atomic_compare_exchange_n(
        {word}, &{seen}, {wanted}, false, {_ACQ_REL}, {_ACQUIRE},
        {_DEVICE})"""

    def store_relaxed(self, word: str, value: str) -> str:
        return f"""__nv_atomic_store_n(
    {word}, {value},
    __NV_ATOMIC_RELAXED, {_DEVICE})"""

    def store_release(self, word: str, value: str) -> str:
        return f"""__nv_atomic_store_n(
    {word}, {value}, __NV_ATOMIC_RELEASE, {_DEVICE})"""
