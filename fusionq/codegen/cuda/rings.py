"""Rings of slots in a block's shared memory, which warps of their own fill by asynchronous copies.

Each of the work-groups that a worker does side by side has a ring, and a warp that fills it.  A
slot has two ``mbarrier``: the copies into it complete one phase of the first, the group's threads,
once they have read it, one of the second.  One arrival for each warp, behind ``__syncwarp``, is no
faster, and a race to compute-sanitizer.

From sm_90 on one lane of a warp copies a part of a row by one bulk copy.  Before, all lanes copy 16
bytes at a time and arrive when their own copies have come; what they decide by, they decide
together, since a slot that some of them left would never be full.

Source: PTX ISA 9, sections ``cp.async.bulk``, ``cp.async``, ``cp.async.mbarrier.arrive``,
``mbarrier`` and Asynchronous Operations.
"""

from __future__ import annotations

from string import Template

from fusionq.base.code_limits import CODE_LIMITS
from fusionq.base.frozen import dataclass
from fusionq.base.target import Target
from fusionq.codegen.ring_shape import RingShape, ring_shape
from fusionq.codegen.streamed_loops import TOGETHER
from fusionq.ir.nodes import Persistent

BULK_COPIES = "__CUDA_ARCH__ >= 900"
"""Where a lane copies a part of a row at once, as the preprocessor asks."""

_RINGS = """\
// A ring of $SLOTS slots: those of one of the work-groups that a worker does side by side.
struct fq_ring {
    unsigned char* slots;
    unsigned barriers;  // for each slot that it is full, then for each that it is free
    unsigned count;     // slots before the next one

    __device__ __forceinline__ unsigned at() const { return count % $SLOTS; }
    __device__ __forceinline__ unsigned turn() const { return count / $SLOTS % 2; }
    __device__ __forceinline__ void next() { count++; }
};

static __device__ __forceinline__ unsigned fq_shared_address(const void* place) {
    return (unsigned)__cvta_generic_to_shared(place);
}

// For each ring, whether its work-group has read all slots of a tile that is not counted yet.
static __device__ __forceinline__ volatile unsigned* fq_ring_held() {
    __shared__ volatile unsigned held[$RINGS];
    return held;
}

#define FQ_BULK_COPIES ($BULK)
#if FQ_BULK_COPIES
#define FQ_FILLS(lane) ((lane) % 32 == 0)
#define FQ_ONE_OF(condition) (condition)
#define FQ_ALL_OF(condition) (condition)
#define FQ_FILLERS 1
#else
#define FQ_FILLS(lane) true
#define FQ_ONE_OF(condition) __any_sync(~0u, condition)
#define FQ_ALL_OF(condition) __all_sync(~0u, condition)
#define FQ_FILLERS 32
#endif

static __device__ __forceinline__ bool fq_has_turned(unsigned barrier, unsigned turn) {
    unsigned done;
    asm volatile("{\\n\\t.reg .pred p;\\n\\t"
#if FQ_BULK_COPIES
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\\n\\t"
#else
        "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\\n\\t"
#endif
        "selp.u32 %0, 1, 0, p;\\n\\t}" : "=r"(done) : "r"(barrier), "r"(turn) : "memory");
    return done != 0;
}

// Before the barrier of the block behind which rings are used.
static __device__ __forceinline__ void fq_ring_begin(unsigned long long* barriers, int thread) {
    if (thread >= $BARRIERS) return;
    const unsigned count = thread % ($SLOTS * 2) < $SLOTS ? FQ_FILLERS : $SIZE;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;"
        :: "r"(fq_shared_address(barriers + thread)), "r"(count) : "memory");
#if FQ_BULK_COPIES
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// The slot so many behind the next one, once it is full.
static __device__ __forceinline__ const unsigned char* fq_ring_full(fq_ring ring, int behind) {
    ring.count += behind;
    while (!fq_has_turned(ring.barriers + 8 * ring.at(), ring.turn())) {}
    return ring.slots + ring.at() * $BYTES;
}

// The slot has been read by this thread.
static __device__ __forceinline__ void fq_ring_free(fq_ring& ring) {
    asm volatile("{\\n\\t.reg .b64 state;\\n\\tmbarrier.arrive.shared.b64 state, [%0];\\n\\t}"
        :: "r"(ring.barriers + 8 * ($SLOTS + ring.at())) : "memory");
    ring.next();
}

// Gets the next slot for so many bytes: once it is free, all but $MORE slots before it have been
// filled, and nobody wants what is stored to be seen by others soon.  False if the worker has
// stopped.
static __device__ __forceinline__ bool fq_ring_fill(
    fq_ring& ring, fq_ring& behind, int& filled, unsigned nbytes, const volatile unsigned* over
) {
    while (over[1] | fq_ring_held()[(threadIdx.x - $LANES) / 32]) {}
    if (filled == $FLIGHT) {
        while (!fq_has_turned(behind.barriers + 8 * behind.at(), behind.turn())) {}
        behind.next();
        filled--;
    }
    while (!FQ_ALL_OF(fq_has_turned(ring.barriers + 8 * ($SLOTS + ring.at()), ring.turn() ^ 1)))
        if (FQ_ONE_OF(*over)) return false;
#if FQ_BULK_COPIES
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
        :: "r"(ring.barriers + 8 * ring.at()), "r"(nbytes) : "memory");
#endif
    filled++;
    return true;
}

// Copies a part of a row into that slot.
static __device__ __forceinline__ void fq_ring_copy(
    const fq_ring& ring, int place, unsigned long long address, unsigned nbytes
) {
    const unsigned to = fq_shared_address(ring.slots) + ring.at() * $BYTES + place;
    unsigned long long once;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
#if FQ_BULK_COPIES
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".L2::cache_hint [%0], [%1], %2, [%3], %4;"
        :: "r"(to), "l"(address), "r"(nbytes), "r"(ring.barriers + 8 * ring.at()), "l"(once)
        : "memory");
#else
    for (unsigned at = threadIdx.x % 32 * 16; at < nbytes; at += 32 * 16)
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;"
            :: "r"(to + at), "l"(address + at), "l"(once) : "memory");
#endif
}

// All parts of that slot have been asked for: the next one is next.
static __device__ __forceinline__ void fq_ring_filled(fq_ring& ring) {
#if !FQ_BULK_COPIES
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
        :: "r"(ring.barriers + 8 * ring.at()) : "memory");
#endif
    ring.next();
}

// All that was asked for has come: shared memory may be given to others.
static __device__ __forceinline__ void fq_ring_end(fq_ring& behind, int filled) {
    for (; filled > 0; filled--) {
        while (!fq_has_turned(behind.barriers + 8 * behind.at(), behind.turn())) {}
        behind.next();
    }
}
"""


@dataclass(frozen=True)
class CudaRings(RingShape):
    """See ``dialect.Rings``; ``lanes``: the threads of a worker, before those that fill rings."""

    sector: int = CODE_LIMITS.copy_alignment

    @property
    def together(self) -> int:
        return min(TOGETHER, self.slots // 2)

    @property
    def threads(self) -> int:
        """That fill them."""
        return 32 * self.count

    @property
    def functions(self) -> str:
        return Template(_RINGS).substitute(
            BULK=BULK_COPIES,
            SLOTS=self.slots,
            BYTES=self.slot_bytes,
            SIZE=self.size,
            BARRIERS=2 * self.slots * self.count,
            FLIGHT=self.in_flight,
            MORE=self.in_flight - 1,
            RINGS=self.count,
            LANES=self.lanes,
        )

    def declared(self, memory: str, taken: int) -> list[str]:
        line = CODE_LIMITS.ring_alignment
        place = f"{memory} + {-(-taken // line) * line}"
        of_ring = f"fq_ring_number * {self.slots * self.slot_bytes}"
        return [
            f"__shared__ unsigned long long fq_ring_barriers[{2 * self.slots * self.count}];",
            "__shared__ volatile unsigned fq_ring_over[2];  // and whether it counts a tile",
            "__shared__ bool fq_ring_used;",
            "if (fq_lane == 0) {",
            "    fq_ring_over[0] = fq_ring_over[1] = 0;",
            *(f"    fq_ring_held()[{k}] = 0;" for k in range(self.count)),
            "    fq_ring_used = fq_static;",
            "}",
            "fq_ring_begin(fq_ring_barriers, fq_lane);",
            "__syncthreads();",
            f"const int fq_ring_number = fq_lane < {self.lanes}",
            f"    ? fq_lane / {self.size} : (fq_lane - {self.lanes}) / 32;",
            "fq_ring fq_slots = {",
            f"    {place} + {of_ring},",
            f"    fq_shared_address(fq_ring_barriers + {2 * self.slots} * fq_ring_number), 0}};",
        ]

    def filling(self, first: list[str], each: list[str]) -> list[str]:
        return [
            f"if (fq_lane >= {self.lanes}) {{",
            "    if (fq_static && FQ_FILLS(fq_lane)) {",
            "        fq_ring fq_behind = fq_slots;",
            "        int fq_filled = 0;",
            *(f"        {line}" for line in first),
            "        for (; fq_next < fq_stop && !FQ_ONE_OF(fq_ring_over[0]); fq_next++) {",
            *(f"            {line}" for line in each),
            "        }",
            "        fq_ring_end(fq_behind, fq_filled);",
            "    }",
            "    return;",
            "}",
        ]

    over = "fq_ring_over[0] = 1;"
    counting = "fq_ring_over[1] = 1;"
    streams = "fq_ring_used"

    @property
    def counted(self) -> str:
        held = "".join(f"fq_ring_held()[{k}] = 0; " for k in range(self.count))
        return f"{held}fq_ring_over[1] = 0;"

    parameter = "fq_ring& fq_slots"
    argument = "fq_slots"
    parameters = "fq_ring& fq_slots, fq_ring& fq_behind, int& fq_filled, int fq_ring_number"
    arguments = "fq_slots, fq_behind, fq_filled, fq_ring_number"
    over_parameter = "const volatile unsigned* fq_over"
    over_argument = "fq_ring_over"

    def full(self, slots: int) -> list[str]:
        return [
            f"const unsigned char* const fq_slot_{n} = fq_ring_full(fq_slots, {n});"
            for n in range(slots)
        ]

    def row(self, pointer: str, place: int, slot: int) -> str:
        return f"({pointer})(fq_slot_{slot} + {place})"

    def free(self, slots: int) -> list[str]:
        return ["fq_ring_free(fq_slots);"] * slots

    def held(self, last: str) -> list[str]:
        return [f"if (fq_item == 0 && {last}) fq_ring_held()[fq_lane / {self.size}] = 1;"]

    def fill(self, nbytes: str) -> list[str]:
        call = f"fq_ring_fill(fq_slots, fq_behind, fq_filled, {nbytes}, fq_over)"
        return [f"if (!{call}) return;"]

    def copied(self, place: int, address: str, nbytes: str) -> str:
        return f"fq_ring_copy(fq_slots, {place}, {address}, {nbytes});"

    def filled(self) -> list[str]:
        return ["fq_ring_filled(fq_slots);"]


def rings_of(body: Persistent, target: Target) -> CudaRings | None:
    """The rings of a worker of ``body``; None where it has none."""
    shape = ring_shape(body, target)
    if shape is None:
        return None
    return CudaRings(shape.lanes, shape.size, shape.slots, shape.slot_bytes, shape.in_flight)
