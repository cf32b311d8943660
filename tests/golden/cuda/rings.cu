// A ring of 5 slots: those of one of the work-groups that a worker does side by side.
struct fq_ring {
    unsigned char* slots;
    unsigned barriers;  // for each slot that it is full, then for each that it is free
    unsigned count;     // slots before the next one

    __device__ __forceinline__ unsigned at() const { return count % 5; }
    __device__ __forceinline__ unsigned turn() const { return count / 5 % 2; }
    __device__ __forceinline__ void next() { count++; }
};

static __device__ __forceinline__ unsigned fq_shared_address(const void* place) {
    return (unsigned)__cvta_generic_to_shared(place);
}

// For each ring, whether its work-group has read all slots of a tile that is not counted yet.
static __device__ __forceinline__ volatile unsigned* fq_ring_held() {
    __shared__ volatile unsigned held[4];
    return held;
}

#define FQ_BULK_COPIES (__CUDA_ARCH__ >= 900)
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
    asm volatile("{\n\t.reg .pred p;\n\t"
#if FQ_BULK_COPIES
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
#else
        "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
#endif
        "selp.u32 %0, 1, 0, p;\n\t}" : "=r"(done) : "r"(barrier), "r"(turn) : "memory");
    return done != 0;
}

// Before the barrier of the block behind which rings are used.
static __device__ __forceinline__ void fq_ring_begin(unsigned long long* barriers, int thread) {
    if (thread >= 40) return;
    const unsigned count = thread % (5 * 2) < 5 ? FQ_FILLERS : 128;
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
    return ring.slots + ring.at() * 8192;
}

// The slot has been read by this thread.
static __device__ __forceinline__ void fq_ring_free(fq_ring& ring) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}"
        :: "r"(ring.barriers + 8 * (5 + ring.at())) : "memory");
    ring.next();
}

// Gets the next slot for so many bytes: once it is free, all but 0 slots before it have been
// filled, and nobody wants what is stored to be seen by others soon.  False if the worker has
// stopped.
static __device__ __forceinline__ bool fq_ring_fill(
    fq_ring& ring, fq_ring& behind, int& filled, unsigned nbytes, const volatile unsigned* over
) {
    while (over[1] | fq_ring_held()[(threadIdx.x - 512) / 32]) {}
    if (filled == 1) {
        while (!fq_has_turned(behind.barriers + 8 * behind.at(), behind.turn())) {}
        behind.next();
        filled--;
    }
    while (!FQ_ALL_OF(fq_has_turned(ring.barriers + 8 * (5 + ring.at()), ring.turn() ^ 1)))
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
    const unsigned to = fq_shared_address(ring.slots) + ring.at() * 8192 + place;
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

// Waits for the counters of the first ``count`` lanes, one after the other.
static __device__ __noinline__ int fq_wait_one_by_one(
    unsigned* control, long long line, unsigned wanted,
    long long spin_limit, long long instruction, int count, int lane) {
    int state = 1;
    for (int k = 0; k < count && state < 2; k++) {
        const long long next = __shfl_sync(0xffffffff, line, k);
        const unsigned target = __shfl_sync(0xffffffff, wanted, k);
        if (lane == 0)
            state |= fq_wait(control, next, target, spin_limit, instruction);
        state = __shfl_sync(0xffffffff, state, 0);
    }
    return state;
}

// Waits for a counter of each of the first ``count`` lanes.
static __device__ int fq_wait_lines(
    unsigned* control, long long line, unsigned wanted,
    long long spin_limit, long long instruction, int count, int lane) {
    int state = 0;
    // Most waits are over soon.
    bool mine = lane >= count, reached = false;
    for (int polls = 0; polls < 1024; polls++) {
        if (!mine)
            mine = (int)(fq_read(fq_word(control, line, 0)) - wanted) >= 0;
        reached = (__all_sync(0xffffffff, mine) != 0);
        if (reached) break;
        state = 1;
        __nanosleep(20);
    }
    if (!reached)
        state = fq_wait_one_by_one(
            control, line, wanted, spin_limit, instruction, count, lane);
    return state;
}

// Waits for all that an instruction depends on.
static __device__ __noinline__ int fq_wait_all(
    const long long* fq_stages, unsigned* fq_control, unsigned epoch,
    long long spin_limit, long long instruction, const long long* fq_record, long long fq_first_0, long long fq_last_0, long long fq_first_1, long long fq_last_1,
    int lane) {
    const int fq_waits = (int)fq_record[16];
    int state = 0;
    for (int fq_from = 0; fq_from < fq_waits && state < 2; fq_from += 32) {
        // A lane a wait: which counters it is about, and how many.  The latest stages
        // come last: once their counters are reached, all others have been seen.
        const int fq_turn = fq_waits - 1 - fq_from - lane;
        int fq_number = 0, fq_source = 0, fq_is_box = 0, fq_begin_0 = 0, fq_many_0 = 0;
        if (fq_turn >= 0) {
            const long long* const fq_awaited = fq_stages + (fq_record[16] >> 32) + 1 * fq_turn;
            fq_source = (int)fq_awaited[0];
            fq_number = 1;
        }
        int fq_before = 0, fq_all = 0;
        const int fq_here = fq_waits - fq_from < 32 ? fq_waits - fq_from : 32;
        for (int fq_k = 0; fq_k < fq_here; fq_k++) {
            if (fq_k == lane) fq_before = fq_all;
            fq_all += __shfl_sync(0xffffffff, fq_number, fq_k);
        }
        for (int fq_base = 0; fq_base < fq_all && state < 2; fq_base += 32) {
            // A lane a counter: of the last wait that begins no later.
            const int fq_at = fq_base + lane;
            int fq_of = 0;
            for (int fq_k = 1; fq_k < fq_here; fq_k++)
                if (__shfl_sync(0xffffffff, fq_before, fq_k) <= fq_at) fq_of = fq_k;
            int fq_rest = fq_at - __shfl_sync(0xffffffff, fq_before, fq_of);
            const int fq_its_source = __shfl_sync(0xffffffff, fq_source, fq_of);
            const int fq_its_is_box = __shfl_sync(0xffffffff, fq_is_box, fq_of);
            const int fq_its_begin_0 = __shfl_sync(0xffffffff, fq_begin_0, fq_of);
            const int fq_its_many_0 = __shfl_sync(0xffffffff, fq_many_0, fq_of);
            const long long* const fq_of_its = fq_stages + 8 + 17 * fq_its_source;
            long long fq_line = fq_of_its[13];
            unsigned fq_wanted = (unsigned)(fq_of_its[3] * fq_of_its[4] * fq_of_its[5]) * epoch;
            const int fq_left = fq_all - fq_base < 32 ? fq_all - fq_base : 32;
            const int found = fq_wait_lines(
                fq_control, fq_line, fq_wanted, spin_limit, instruction, fq_left, lane);
            if (found) state = found;
        }
    }
    return state;
}

// Whether rows are where bulk copies may begin.
static __device__ __forceinline__ bool fq_streams_0(
    const unsigned long long a_address,
    const long long a_shape1) {
    return a_address % 16 == 0
        && (4 * (1 * a_shape1 + 0)) % 16 == 0
        && (4 * (long long)(a_shape1)) % 16 == 0;
}

// Fills slots with the rows that a ring's work-groups of a tile read.
static __device__ void fq_fill_0(
    fq_ring& fq_slots, fq_ring& fq_behind, int& fq_filled, int fq_ring_number,
    const volatile unsigned* fq_over,
    const long long fq_first_0, const long long fq_last_0,
    const long long fq_first_1, const long long fq_last_1,
    const unsigned long long a_address,
    const long long a_shape1) {
    if (!fq_streams_0(a_address, a_shape1)) return;
    const int fq_item = 0;
    const long long fq_begin_0 = fq_first_0 / 1;
    const long long fq_many_0 = fq_last_0 / 1 - fq_begin_0 + 1;
    const int fq_local_0 = fq_item / 128;
    const long long fq_begin_1 = fq_first_1 / 128;
    const long long fq_many_1 = fq_last_1 / 128 - fq_begin_1 + 1;
    const int fq_local_1 = fq_item % 128;
    for (long long fq_group = fq_ring_number; fq_group < fq_many_0 * fq_many_1; fq_group += 4) {
        const long long fq_group_0 = fq_begin_0 + ((unsigned)fq_group / (unsigned)fq_many_1);
        const long long fq_group_1 = fq_begin_1 + (unsigned)fq_group % (unsigned)fq_many_1;
        const long long fq_id_0 = fq_group_0 * 1 + fq_local_0;
        const long long fq_id_1 = fq_group_1 * 128 + fq_local_1;
        {
            const unsigned long long fq_row_0 = a_address + 4 * ((2 * (long long)fq_id_0) * a_shape1 + 0);
            const unsigned long long fq_row_1 = a_address + 4 * ((2 * (long long)fq_id_0 + 1) * a_shape1 + 0);
            const long long fq_stop_at = a_shape1;
            for (long long fq_chunk = 0; fq_chunk < fq_stop_at; fq_chunk += 1024) {
                const unsigned fq_length = (unsigned)min(fq_stop_at - fq_chunk, 1024ll);
                if (!fq_ring_fill(fq_slots, fq_behind, fq_filled, 8 * fq_length, fq_over)) return;
                fq_ring_copy(fq_slots, 0, fq_row_0 + 4 * fq_chunk, 4 * fq_length);
                fq_ring_copy(fq_slots, 4096, fq_row_1 + 4 * fq_chunk, 4 * fq_length);
                fq_ring_filled(fq_slots);
            }
        }
    }
}

static __device__ __forceinline__ void fq_stage_0(
    const int fq_lane,
    const long long fq_first_0, const long long fq_last_0,
    const long long fq_first_1, const long long fq_last_1,
    const bool stream_ready,
    fq_ring& fq_slots,
    const fq_read_only<float> a,
    const long long a_shape1,
    const float* x,
    float* out) {
unsigned fq_turn = 0;
const int fq_item = fq_lane % 128;
const long long fq_begin_0 = fq_first_0 / 1;
const long long fq_many_0 = fq_last_0 / 1 - fq_begin_0 + 1;
const int fq_local_0 = fq_item / 128;
const long long fq_begin_1 = fq_first_1 / 128;
const long long fq_many_1 = fq_last_1 / 128 - fq_begin_1 + 1;
const int fq_local_1 = fq_item % 128;
for (long long fq_group = fq_lane / 128; fq_group < fq_many_0 * fq_many_1; fq_group += 4) {
    const long long fq_group_0 = fq_begin_0 + ((unsigned)fq_group / (unsigned)fq_many_1);
    const long long fq_group_1 = fq_begin_1 + (unsigned)fq_group % (unsigned)fq_many_1;
    const long long fq_id_0 = fq_group_0 * 1 + fq_local_0;
    const long long fq_id_1 = fq_group_1 * 128 + fq_local_1;
    float stream_ahead_4_0[16];
    // product
    const long long row = 2 * (long long)(int)(long long)fq_id_0;
    float one = 0.0f;
    float other = 0.0f;
    if (stream_ready) {
        for (int stream_chunk_4_2 = 0; stream_chunk_4_2 < (int)a_shape1 / 2048 * 2048; stream_chunk_4_2 += 2048) {
            #pragma unroll 16
            for (int ahead_turn_stream_ahead_4 = 0; ahead_turn_stream_ahead_4 < 16; ahead_turn_stream_ahead_4++) {
                stream_ahead_4_0[ahead_turn_stream_ahead_4] = x[stream_chunk_4_2 + ((int)(long long)fq_local_1 + ahead_turn_stream_ahead_4 * 128)];
            }
            for (int stream_slots_4 = stream_chunk_4_2; stream_slots_4 < stream_chunk_4_2 + 1; stream_slots_4++) {
                const unsigned char* const fq_slot_0 = fq_ring_full(fq_slots, 0);
                const unsigned char* const fq_slot_1 = fq_ring_full(fq_slots, 1);
                const float* const streamed_4_0_0 = (const float*)(fq_slot_0 + 0);
                const float* const streamed_4_1_0 = (const float*)(fq_slot_0 + 4096);
                const float* const streamed_4_0_1 = (const float*)(fq_slot_1 + 0);
                const float* const streamed_4_1_1 = (const float*)(fq_slot_1 + 4096);
                #pragma unroll 8
                for (int ahead_turn_stream_4_2_0 = 0; ahead_turn_stream_4_2_0 < 8; ahead_turn_stream_4_2_0++) {
                    one = one + streamed_4_0_0[(int)(long long)fq_local_1 + ahead_turn_stream_4_2_0 * 128] * stream_ahead_4_0[ahead_turn_stream_4_2_0 + 0];
                    other = other + streamed_4_1_0[(int)(long long)fq_local_1 + ahead_turn_stream_4_2_0 * 128] * stream_ahead_4_0[ahead_turn_stream_4_2_0 + 0];
                }
                #pragma unroll 8
                for (int ahead_turn_stream_4_2_1 = 0; ahead_turn_stream_4_2_1 < 8; ahead_turn_stream_4_2_1++) {
                    one = one + streamed_4_0_1[(int)(long long)fq_local_1 + ahead_turn_stream_4_2_1 * 128] * stream_ahead_4_0[ahead_turn_stream_4_2_1 + 8];
                    other = other + streamed_4_1_1[(int)(long long)fq_local_1 + ahead_turn_stream_4_2_1 * 128] * stream_ahead_4_0[ahead_turn_stream_4_2_1 + 8];
                }
                fq_ring_free(fq_slots);
                fq_ring_free(fq_slots);
            }
        }
        for (int stream_chunk_4 = (int)a_shape1 / 2048 * 2048; stream_chunk_4 < (int)a_shape1; stream_chunk_4 += 1024) {
            const unsigned char* const fq_slot_0 = fq_ring_full(fq_slots, 0);
            const float* const streamed_4_0 = (const float*)(fq_slot_0 + 0);
            const float* const streamed_4_1 = (const float*)(fq_slot_0 + 4096);
            if (stream_chunk_4 + 1024 <= (int)a_shape1) {
                #pragma unroll 8
                for (int ahead_turn_stream_4 = 0; ahead_turn_stream_4 < 8; ahead_turn_stream_4++) {
                    one = one + streamed_4_0[(int)(long long)fq_local_1 + ahead_turn_stream_4 * 128] * x[stream_chunk_4 + ((int)(long long)fq_local_1 + ahead_turn_stream_4 * 128)];
                    other = other + streamed_4_1[(int)(long long)fq_local_1 + ahead_turn_stream_4 * 128] * x[stream_chunk_4 + ((int)(long long)fq_local_1 + ahead_turn_stream_4 * 128)];
                }
            } else {
                const int stream_rest_4_in_slot = stream_chunk_4 + (int)(long long)fq_local_1;
                #pragma unroll 1
                for (int k = stream_rest_4_in_slot; k < (int)a_shape1; k += 128) {
                    one = one + streamed_4_0[k - stream_chunk_4] * x[k];
                    other = other + streamed_4_1[k - stream_chunk_4] * x[k];
                }
            }
            fq_ring_free(fq_slots);
        }
    } else {
        const int stream_rest_4 = (int)(long long)fq_local_1;
        for (int k = stream_rest_4; k < (int)a_shape1; k += 128) {
            one = one + a[(int)row * (int)a_shape1 + k] * x[k];
            other = other + a[((int)row + 1) * (int)a_shape1 + k] * x[k];
        }
    }
    const float reduced = fq_worker_reduce_add_f32_128(one - other, fq_turn);
    const float total = reduced;
    if ((int)(long long)fq_local_1 == 0) {
        out[(int)(long long)fq_id_0] = total / (1.0f + fabsf(total));
    }
}
}

static __device__ __forceinline__ void fq_stage_1(
    const int fq_lane,
    const long long fq_first_0, const long long fq_last_0,
    const long long fq_first_1, const long long fq_last_1,
    const long long count,
    const float* x,
    const float* y,
    float* out) {
unsigned fq_turn = 0;
const int fq_item = fq_lane % 128;
const long long fq_begin_0 = fq_first_0 / 1;
const long long fq_many_0 = fq_last_0 / 1 - fq_begin_0 + 1;
const int fq_local_0 = fq_item / 128;
const long long fq_begin_1 = fq_first_1 / 128;
const long long fq_many_1 = fq_last_1 / 128 - fq_begin_1 + 1;
const int fq_local_1 = fq_item % 128;
for (long long fq_group = fq_lane / 128; fq_group < fq_many_0 * fq_many_1; fq_group += 4) {
    const long long fq_group_0 = fq_begin_0 + ((unsigned)fq_group / (unsigned)fq_many_1);
    const long long fq_group_1 = fq_begin_1 + (unsigned)fq_group % (unsigned)fq_many_1;
    const long long fq_id_0 = fq_group_0 * 1 + fq_local_0;
    const long long fq_id_1 = fq_group_1 * 128 + fq_local_1;
    float together_1_0[16];
    float together_1_1[16];
    // weighed
    float own = 0.0f;
    if ((long long)(int)(long long)fq_local_1 < count && count <= 2147483647) {
        const int together_count_1 = (int)((unsigned)(int)((unsigned)(int)count - (int)(long long)fq_local_1 - 1) / (unsigned)(int)128ll) + 1;
        for (long long together_turn_1 = 0; together_turn_1 < (long long)(together_count_1 & -16); together_turn_1 += 16) {
            #pragma unroll 16
            for (int ahead_turn_together_1_0 = 0; ahead_turn_together_1_0 < 16; ahead_turn_together_1_0++) {
                together_1_0[ahead_turn_together_1_0] = x[(int)((unsigned)(int)(long long)fq_local_1 + (unsigned)(int)(together_turn_1 + (long long)ahead_turn_together_1_0) * (int)128ll)];
                together_1_1[ahead_turn_together_1_0] = y[(int)((unsigned)(int)(long long)fq_local_1 + (unsigned)(int)(together_turn_1 + (long long)ahead_turn_together_1_0) * (int)128ll)];
            }
            #pragma unroll 16
            for (int ahead_turn_together_1_1 = 0; ahead_turn_together_1_1 < 16; ahead_turn_together_1_1++) {
                own = own + together_1_0[ahead_turn_together_1_1] * together_1_1[ahead_turn_together_1_1];
            }
        }
        for (long long together_turn_1 = (long long)(together_count_1 & -16); together_turn_1 < (long long)together_count_1; together_turn_1 += 16) {
            #pragma unroll 16
            for (int ahead_turn_together_1_0 = 0; ahead_turn_together_1_0 < 16; ahead_turn_together_1_0++) {
                together_1_0[ahead_turn_together_1_0] = x[(int)((unsigned)(int)(long long)fq_local_1 + (unsigned)(int)(together_turn_1 + (long long)ahead_turn_together_1_0 < (long long)together_count_1 ? together_turn_1 + (long long)ahead_turn_together_1_0 : together_turn_1) * (int)128ll)];
                together_1_1[ahead_turn_together_1_0] = y[(int)((unsigned)(int)(long long)fq_local_1 + (unsigned)(int)(together_turn_1 + (long long)ahead_turn_together_1_0 < (long long)together_count_1 ? together_turn_1 + (long long)ahead_turn_together_1_0 : together_turn_1) * (int)128ll)];
            }
            #pragma unroll 16
            for (int ahead_turn_together_1_1 = 0; ahead_turn_together_1_1 < 16; ahead_turn_together_1_1++) {
                if (together_turn_1 + (long long)ahead_turn_together_1_1 < (long long)together_count_1) {
                    own = own + together_1_0[ahead_turn_together_1_1] * together_1_1[ahead_turn_together_1_1];
                }
            }
        }
    } else {
        const long long k_start = (long long)(int)(long long)fq_local_1;
        const long long k_step = 128;
        const unsigned long long k_count = fq_range_length(k_start, count, k_step);
        #pragma unroll 1
        for (unsigned long long k_turn = 0; k_turn < k_count; k_turn++) {
            const long long k = (long long)(k_start + k_turn * (unsigned long long)k_step);
            own = own + x[(int)k] * y[(int)k];
        }
    }
    const float reduced = fq_worker_reduce_add_f32_128(own, fq_turn);
    const float total = reduced;
    if ((int)(long long)fq_local_1 == 0) {
        out[(int)(long long)fq_id_0] = total / (1.0f + fabsf(total));
    }
}
}

    __shared__ unsigned long long fq_ring_barriers[40];
    __shared__ volatile unsigned fq_ring_over[2];  // and whether it counts a tile
    __shared__ bool fq_ring_used;
    if (fq_lane == 0) {
        fq_ring_over[0] = fq_ring_over[1] = 0;
        fq_ring_held()[0] = 0;
        fq_ring_held()[1] = 0;
        fq_ring_held()[2] = 0;
        fq_ring_held()[3] = 0;
        fq_ring_used = fq_static;
    }
    fq_ring_begin(fq_ring_barriers, fq_lane);
    __syncthreads();
    const int fq_ring_number = fq_lane < 512
        ? fq_lane / 128 : (fq_lane - 512) / 32;
    fq_ring fq_slots = {
        fq_near_bytes + 47360 + fq_ring_number * 40960,
        fq_shared_address(fq_ring_barriers + 10 * fq_ring_number), 0};
    if (fq_lane >= 512) {
        if (fq_static && FQ_FILLS(fq_lane)) {
            fq_ring fq_behind = fq_slots;
            int fq_filled = 0;
            long long fq_following = fq_next < fq_stop ? fq_schedule[fq_assigned + fq_next] : 0;
            for (; fq_next < fq_stop && !FQ_ONE_OF(fq_ring_over[0]); fq_next++) {
                const long long fq_instruction = fq_following;
                fq_following = fq_schedule[fq_assigned + min(fq_next + 1ll, fq_stop - 1ll)];
                const int fq_stage = (int)(fq_instruction >> 40);
                const long long fq_tile = fq_instruction & ((1ll << 40) - 1);
                const long long* const fq_record = fq_stages + 8 + 17 * fq_stage;
                const long long fq_at_1 = (unsigned)fq_tile % (unsigned)fq_record[4];
                const long long fq_at_0 = ((unsigned)fq_tile / (unsigned)fq_record[4]);
                const long long fq_first_0 = fq_at_0 * fq_record[0];
                const long long fq_last_0 = min(fq_first_0 + fq_record[0], fq_record[9]) - 1;
                const long long fq_first_1 = fq_at_1 * fq_record[1];
                const long long fq_last_1 = min(fq_first_1 + fq_record[1], fq_record[10]) - 1;
                switch ((int)fq_record[14]) {
                case 0: {
                    const long long* const fq_operands = fq_stages + fq_record[15];
                    const unsigned long long a_address = *(unsigned long long*)(fq_given + fq_operands[0] + 0);
                    const long long a_shape1 = 128ll;
                    fq_fill_0(fq_slots, fq_behind, fq_filled, fq_ring_number, fq_ring_over, fq_first_0, fq_last_0, fq_first_1, fq_last_1, a_address, a_shape1);
                    break;
                }
                }
            }
            fq_ring_end(fq_behind, fq_filled);
        }
        return;
    }
