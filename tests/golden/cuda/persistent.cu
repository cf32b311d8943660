
static __device__ inline long long fq_uniform_min_i64(long long a, long long b) {
    return b < a ? b : a;
}

static __device__ inline long long fq_uniform_max_i64(long long a, long long b) {
    return b > a ? b : a;
}

static __device__ inline long long fq_maximum_i64(long long a, long long b) {
    return max(a, b);
}

static __device__ inline long long fq_minimum_i64(long long a, long long b) {
    return min(a, b);
}

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

// In a function of its own the compiler would not know that values are the same for all lanes.
// What the first lane does alone, in loops, is a function of its own: it is no lane of a vector.
#define FQ_INLINE static __device__ __forceinline__

// A loop that is unlikely to be entered must not take registers from the loops that do the work.
#define FQ_UNLIKELY(condition) __builtin_expect((condition) ? 1 : 0, 0)

FQ_INLINE unsigned* fq_word(unsigned* control, long long line, int word) {
    return control + 32 * line + word;
}

FQ_INLINE unsigned fq_read(unsigned* word) {
    return __nv_atomic_load_n(word, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
}

FQ_INLINE unsigned fq_add(unsigned* word, unsigned value, int order) {
    return order == __NV_ATOMIC_RELEASE
        ? __nv_atomic_fetch_add(word, value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE)
        : __nv_atomic_fetch_add(word, value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

// The next instruction in order, or -1.
FQ_INLINE long long fq_ticket(const long long* schedule, unsigned* control, unsigned epoch) {
    const unsigned count = (unsigned)schedule[0];
    const unsigned first = (epoch - 1) * (count + (unsigned)schedule[1]);
    const unsigned ticket = fq_add(fq_word(control, 0, 0), 1, __NV_ATOMIC_RELAXED) - first;
    return ticket < count ? schedule[schedule[3] + ticket] : -1;
}

// Takes the tickets of a launch in which nobody did.
FQ_INLINE void fq_skip_tickets(const long long* schedule, unsigned* control) {
    const unsigned count = (unsigned)(schedule[0] + schedule[1]);
    fq_add(fq_word(control, 0, 0), count, __NV_ATOMIC_RELAXED);
}

// Whether all workers have started, so that each can follow its own list: one answer for all.
static __device__ unsigned fq_started(const long long* schedule, unsigned* control, unsigned epoch) {
    unsigned* const mode = fq_word(control, 2, 0);
    const unsigned now = epoch << 1;
    const unsigned here = fq_add(fq_word(control, 1, 0), 1, __NV_ATOMIC_RELAXED) + 1;
    unsigned seen = fq_read(mode);
    if (here != epoch * (unsigned)schedule[1]) {
        const long long most = 20000;
        for (long long polls = 0; polls < most && (seen & ~1u) != now; polls++)
            { __nanosleep(20); seen = fq_read(mode); }
    }
    const unsigned wanted = here == epoch * (unsigned)schedule[1] ? now | 1 : now;
    while ((seen & ~1u) != now) {
        if (__nv_atomic_compare_exchange_n(
                    mode, &seen, wanted, false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_ACQUIRE,
                    __NV_THREAD_SCOPE_DEVICE)) seen = wanted;
    }
    return seen & 1;
}

FQ_INLINE bool fq_follows_assignment(
    const long long* schedule, unsigned* control, unsigned epoch, int lane) {
    if (!schedule[2]) return false;
    unsigned answer = 0;
    if (lane == 0) answer = fq_started(schedule, control, epoch);
    return fq_broadcast(answer) != 0;
}

// Whether some wait ran out, in this launch or one before: counters no longer mean anything.
FQ_INLINE unsigned fq_stall_seen(unsigned* control) {
    unsigned* const flag = fq_word(control, 3, 0);
    return __nv_atomic_load_n(flag, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

// The number of this launch: launches do not overlap.
FQ_INLINE unsigned fq_this_launch(unsigned* control) {
    unsigned* const launches = fq_word(control, 2, 1);
    return __nv_atomic_load_n(launches, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) + 1;
}

// Counts a worker as gone, and with the last of them the launch.
FQ_INLINE void fq_leave(const long long* schedule, unsigned* control, unsigned epoch) {
    const unsigned gone = fq_add(fq_word(control, 1, 1), 1, __NV_ATOMIC_RELAXED) + 1;
    if (gone == epoch * (unsigned)schedule[1])
        __nv_atomic_store_n(
            fq_word(control, 2, 1), epoch,
            __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
}

// Counts a worker as at work, by 1, or as no longer so, by -1.
FQ_INLINE void fq_count_at_work(unsigned* control, int by) {
    fq_add(fq_word(control, 4, 0), (unsigned)by, __NV_ATOMIC_RELAXED);
}

// Says which wait ran out, if it is the first.
static __device__ void fq_tell_stall(
    unsigned* control, long long line, unsigned target, unsigned seen, long long instruction) {
    if (fq_add(fq_word(control, 3, 1), 1, __NV_ATOMIC_RELAXED) != 0) return;
    const unsigned found[] = {
        (unsigned)(instruction >> 40), (unsigned)instruction, (unsigned)line, target, seen};
    for (int k = 0; k < 5; k++)
        __nv_atomic_store_n(
            fq_word(control, 3, 2 + k), found[k],
            __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_store_n(
        fq_word(control, 3, 0), 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
}

// Waits until ``line`` has counted to ``target``: 0 if it had, 1 if that took a while, and
// 2 if nobody was at work for ``spin_limit`` polls: what is waited for may take any time.
FQ_INLINE int fq_wait(
    unsigned* control, long long line, unsigned target, long long spin_limit, long long instruction) {
    unsigned seen = fq_read(fq_word(control, line, 0));
    int state = 0;
    long long idle = 0;
    bool at_work = true;
    for (long long polls = 1; FQ_UNLIKELY((int)(seen - target) < 0 && state < 2); polls++) {
        state = 1;
        if (polls % 1024 == 0) {
            if (at_work) fq_count_at_work(control, -1);
            at_work = false;
            idle = fq_read(fq_word(control, 4, 0)) == 0 ? idle + 1024 : 0;
            if (idle >= spin_limit) fq_tell_stall(control, line, target, seen, instruction);
            if (fq_stall_seen(control)) state = 2;
        }
        { __nanosleep(20); seen = fq_read(fq_word(control, line, 0)); }
    }
    if (!at_work) fq_count_at_work(control, 1);
    return state;
}

// The line of the counter of a tile, if its stage has such.
static __device__ long long fq_counter(const long long* record, long long tile) {
    if (record[12] < 0) return -1;
    return record[12] + (unsigned)tile / (unsigned)record[6];
}

// Counts a tile as done: after its work, not when it was taken.
static __device__ void fq_publish(
    const long long* record, unsigned* control, long long counter) {
    __nv_atomic_thread_fence(__NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
    if (counter >= 0) fq_add(fq_word(control, counter, 0), 1, __NV_ATOMIC_RELAXED);
    if (record[13] >= 0)
        fq_add(fq_word(control, record[13], 0), 1, __NV_ATOMIC_RELAXED);
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
static __device__ int fq_wait_all(
    const long long* fq_stages, unsigned* fq_control, unsigned epoch,
    long long spin_limit, long long instruction, const long long* fq_record, long long fq_first_0, long long fq_last_0,
    int lane) {
    const int fq_waits = (int)fq_record[16];
    int state = 0;
    for (int fq_from = 0; fq_from < fq_waits && state < 2; fq_from += 32) {
        // A lane a wait: which counters it is about, and how many.  The latest stages
        // come last: once their counters are reached, all others have been seen.
        const int fq_turn = fq_waits - 1 - fq_from - lane;
        int fq_number = 0, fq_source = 0, fq_is_box = 0, fq_begin_0 = 0, fq_many_0 = 0;
        if (fq_turn >= 0) {
            const long long* const fq_awaited = fq_stages + (fq_record[16] >> 32) + 2 * fq_turn;
            fq_source = (int)fq_awaited[0];
            fq_number = 1;
            long long fq_low_0 = 0, fq_high_0 = 0;
            bool fq_boxed = true;
            switch ((int)(fq_awaited[0] >> 32)) {
            case 0: {
                const long long value_0 = fq_awaited[1];
                fq_low_0 = fq_maximum_i64((long long)((unsigned long long)value_0 + -1 * (long long)fq_last_0 + -1ll), 0); fq_high_0 = fq_minimum_i64((long long)((unsigned long long)value_0 + -1 * (long long)fq_first_0 + -1ll), (long long)((unsigned long long)value_0 + -1ll));
                break;
            }
            case 1: {
                const long long value_0 = fq_awaited[1];
                fq_low_0 = fq_maximum_i64((long long)fq_first_0 + -1, 1); fq_high_0 = fq_minimum_i64((long long)fq_last_0 + 1, (long long)((unsigned long long)value_0 + -1ll));
                break;
            }
            case 2: {
                fq_low_0 = 0; fq_high_0 = 0;
                break;
            }
            default: fq_boxed = false;
            }
            fq_is_box = fq_boxed ? 1 : 0;
            const long long* const fq_of = fq_stages + 8 + 17 * fq_source;
            if (fq_boxed) {
                const long long fq_size_0 = fq_of[0] * fq_of[6];
                const long long fq_start_0 = max(fq_low_0, 0ll), fq_end_0 = min(fq_high_0, fq_of[9] - 1);
                fq_begin_0 = (int)(fq_start_0 / fq_size_0);
                fq_many_0 = fq_end_0 < fq_start_0 ? 0 : (int)(fq_end_0 / fq_size_0) - fq_begin_0 + 1;
                fq_number = fq_many_0;
            }
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
            if (fq_its_is_box && fq_at < fq_all) {
                const int c_0 = fq_its_begin_0 + fq_rest;
                const int n_0 = (int)fq_of_its[3], s_0 = (int)fq_of_its[6];
                fq_line = fq_of_its[12] + c_0;
                fq_wanted = (unsigned)((s_0 < n_0 - c_0 * s_0 ? s_0 : n_0 - c_0 * s_0)) * epoch;
            }
            const int fq_left = fq_all - fq_base < 32 ? fq_all - fq_base : 32;
            const int found = fq_wait_lines(
                fq_control, fq_line, fq_wanted, spin_limit, instruction, fq_left, lane);
            if (found) state = found;
        }
    }
    return state;
}

static __device__ __forceinline__ void fq_stage_0(
    const int fq_lane,
    const long long fq_first_0, const long long fq_last_0,
    const long long* a,
    const long long a_shape0,
    long long* b) {
    {
        long long fq_inner = fq_last_0 + 1, fq_outer = fq_inner;
        {
            const long long fq_from = (max(fq_first_0, (long long)(1)) + 255) & -256ll, fq_to = min(fq_last_0, (long long)(fq_uniform_min_i64(fq_uniform_max_i64(a_shape0 - 1, -4611686018427387904ll), 4611686018427387904ll) + -1));
            if (fq_from + 255 <= fq_to) {
                fq_inner = fq_from;
                fq_outer = fq_from + ((fq_to + 1 - fq_from) & -256ll);
            }
        }
        long long fq_start = fq_first_0;
        for (int fq_part = 0; fq_part < 2; fq_part++) {
            const long long fq_stop = fq_part == 0 ? fq_inner : fq_last_0 + 1;
            #pragma unroll 1
            for (; fq_start < fq_stop; fq_start += 256) {
                const long long fq_id_0 = fq_start + fq_lane;
                if (fq_start + fq_lane < fq_stop) {
                    long long kept_0[4];
                    // blur
                    if (0 < (long long)fq_id_0 && (long long)fq_id_0 < a_shape0 - 1) {
                        b[(long long)fq_id_0] = (long long)((unsigned long long)a[(long long)fq_id_0 - 1] + a[(long long)fq_id_0] + a[(long long)fq_id_0 + 1]);
                    } else {
                        b[(long long)fq_id_0] = a[(long long)fq_id_0];
                    }
                }
            }
            if (fq_part == 0) {
                fq_start = fq_inner;
                // Several work-items at once.
                #pragma unroll 1
                for (; fq_start + 1024 <= fq_outer; fq_start += 1024) {
                    const long long fq_id_0 = fq_start + fq_lane;
                    long long kept_0[4];
                    for (long long turn_0 = 0; turn_0 < 4; turn_0++) {
                        // blur
                        kept_0[turn_0] = (long long)((unsigned long long)a[(long long)fq_id_0 + turn_0 * 256 - 1] + a[(long long)fq_id_0 + turn_0 * 256] + a[(long long)fq_id_0 + turn_0 * 256 + 1]);
                    }
                    for (long long turn_1 = 0; turn_1 < 4; turn_1++) {
                        b[(long long)fq_id_0 + turn_1 * 256] = kept_0[turn_1];
                    }
                }
                #pragma unroll 1
                for (; fq_start < fq_outer; fq_start += 256) {
                    const long long fq_id_0 = fq_start + fq_lane;
                    long long kept_0[4];
                    // blur
                    b[(long long)fq_id_0] = (long long)((unsigned long long)a[(long long)fq_id_0 - 1] + a[(long long)fq_id_0] + a[(long long)fq_id_0 + 1]);
                }
            }
        }
    }
}

static __device__ __forceinline__ void fq_stage_1(
    const int fq_lane,
    const long long fq_first_0, const long long fq_last_0,
    const long long* a,
    const long long a_shape0,
    long long* b) {
    for (long long fq_start = fq_first_0; fq_start <= fq_last_0; fq_start += 256) {
        const long long fq_id_0 = fq_start + fq_lane;
        if (fq_start + fq_lane <= fq_last_0) {
            // total
            #pragma unroll 16
            for (long long k = 0; k < a_shape0; k++) {
                b[(long long)fq_id_0] = (long long)((unsigned long long)b[(long long)fq_id_0] + a[k]);
            }
        }
    }
}

static __device__ __forceinline__ void fq_stage_2(
    const int fq_lane,
    const long long fq_first_0, const long long fq_last_0,
    long long* a,
    const long long* b) {
    {
        long long fq_start = fq_first_0;
        // Several work-items at once.
        #pragma unroll 1
        for (; fq_start + 1024 <= fq_last_0 + 1; fq_start += 1024) {
            const long long fq_id_0 = fq_start + fq_lane;
            long long kept_0[4];
            for (long long turn_0 = 0; turn_0 < 4; turn_0++) {
                // scale
                kept_0[turn_0] = (long long)((unsigned long long)a[(long long)fq_id_0 + turn_0 * 256] * b[0]);
            }
            for (long long turn_1 = 0; turn_1 < 4; turn_1++) {
                a[(long long)fq_id_0 + turn_1 * 256] = kept_0[turn_1];
            }
        }
        #pragma unroll 1
        for (; fq_start <= fq_last_0; fq_start += 256) {
            const long long fq_id_0 = fq_start + fq_lane;
            if (fq_start + fq_lane <= fq_last_0) {
                long long kept_0[4];
                // scale
                a[(long long)fq_id_0] = (long long)((unsigned long long)a[(long long)fq_id_0] * b[0]);
            }
        }
    }
}

static __device__ __forceinline__ void fq_stage_3(
    const int fq_lane,
    const long long fq_first_0, const long long fq_last_0,
    const long long* a,
    const long long a_shape0,
    long long* b) {
    {
        long long fq_start = fq_first_0;
        // Several work-items at once.
        #pragma unroll 1
        for (; fq_start + 1024 <= fq_last_0 + 1; fq_start += 1024) {
            const long long fq_id_0 = fq_start + fq_lane;
            long long kept_0[4];
            for (long long turn_0 = 0; turn_0 < 4; turn_0++) {
                // reverse
                kept_0[turn_0] = a[a_shape0 - 1 - ((long long)fq_id_0 + turn_0 * 256)];
            }
            for (long long turn_1 = 0; turn_1 < 4; turn_1++) {
                b[(long long)fq_id_0 + turn_1 * 256] = kept_0[turn_1];
            }
        }
        #pragma unroll 1
        for (; fq_start <= fq_last_0; fq_start += 256) {
            const long long fq_id_0 = fq_start + fq_lane;
            if (fq_start + fq_lane <= fq_last_0) {
                long long kept_0[4];
                // reverse
                b[(long long)fq_id_0] = a[a_shape0 - 1 - (long long)fq_id_0];
            }
        }
    }
}
extern "C" __global__ void FQ_BOUNDS(256, 8) megakernel4_blur_total_scale_reverse(
    unsigned long long given_a_address,
    long long given_a_shape0,
    unsigned long long given_b_address,
    long long given_b_shape0,
    unsigned long long given_b_1_address,
    unsigned long long given_schedule_address,
    unsigned long long given_control_address,
    long long given_spin_limit) {
    const long long* const fq_schedule = (const long long*)given_schedule_address;
    unsigned* const fq_control = (unsigned*)given_control_address;
    const int fq_lane = (int)threadIdx.x;
    __shared__ ulonglong2 fq_epoch_bytes_words[1];
    unsigned char* const fq_epoch_bytes = (unsigned char*)fq_epoch_bytes_words;
    unsigned* const fq_epoch = (unsigned*)fq_epoch_bytes;
    if (fq_lane == 0) *fq_epoch = fq_this_launch(fq_control);
    __syncthreads();
    if (fq_lane == 0) fq_count_at_work(fq_control, 1);
    const bool fq_static = fq_follows_assignment(fq_schedule, fq_control, *fq_epoch, fq_lane);
    const long long fq_assigned = fq_schedule[5];
    long long fq_next = fq_schedule[4], fq_stop = 0;
    if (fq_static) {
        fq_stop = fq_schedule[fq_next + (int)blockIdx.x + 1];
        fq_next = fq_schedule[fq_next + (int)blockIdx.x];
    }
    __shared__ ulonglong2 fq_near_bytes_words[44];
    unsigned char* const fq_near_bytes = (unsigned char*)fq_near_bytes_words;
    long long* const fq_near = (long long*)fq_near_bytes;
    const long long fq_kept = fq_schedule[3] <= 88 ? fq_schedule[3] : 0;
    for (int fq_k = fq_lane; fq_k < fq_kept; fq_k += 256)
        fq_near[0 + fq_k] = fq_schedule[fq_k];
    const long long* const fq_stages = fq_kept ? fq_near + 0 : fq_schedule;
    __syncthreads();
    __shared__ ulonglong2 fq_told_bytes_words[19];
    unsigned char* const fq_told_bytes = (unsigned char*)fq_told_bytes_words;
    long long* const fq_list = (long long*)fq_told_bytes, * const fq_told = fq_list + 2;
    if (fq_lane == 0) {
        fq_list[0] = fq_assigned + fq_next;
        fq_list[1] = fq_assigned + fq_stop;
    }
    long long* const fq_ahead = fq_list + 6;
    const long long fq_lists = fq_static ? fq_schedule[2] : 0;
    if (fq_lists > 1 && fq_lane < 32) {
        const long long fq_begin = fq_schedule[fq_lists + (int)blockIdx.x];
        const long long fq_word_0 = fq_schedule[fq_begin + fq_lane];
        fq_ahead[fq_lane] = fq_stall_seen(fq_control) ? -1 : fq_word_0;
        if (fq_lane == 0) fq_list[1] = -1;
    }
    __syncthreads();
    for (;;) {
        long long fq_instruction = -1;
        int fq_waited = 0;
        if (fq_lane < 32) {
            long long fq_entry = -1;
            const bool fq_listed = fq_list[1] < 0;
            if (fq_listed) {
                asm volatile("cp.async.wait_all;" ::: "memory");
                fq_entry = fq_ahead[fq_lane];
                fq_instruction = __shfl_sync(0xffffffff, fq_entry, 0);
            } else {
                if (fq_lane == 0) {
                    fq_instruction = fq_static
                        ? (fq_list[0] < fq_list[1] ? fq_schedule[fq_list[0]++] : -1)
                        : fq_ticket(fq_schedule, fq_control, *fq_epoch);
                    if (fq_stall_seen(fq_control)) fq_instruction = -1;
                }
                fq_instruction = __shfl_sync(0xffffffff, fq_instruction, 0);
            }
            if (fq_instruction >= 0) {
                const int fq_stage = (int)(fq_instruction >> 40);
                const long long fq_tile = fq_instruction & ((1ll << 40) - 1);
                const long long* const fq_record = fq_stages + 8 + 17 * fq_stage;
                const long long fq_at_0 = (unsigned)fq_tile;
                const long long fq_first_0 = fq_at_0 * fq_record[0];
                const long long fq_last_0 = min(fq_first_0 + fq_record[0], fq_record[9]) - 1;
                const long long fq_head = __shfl_sync(0xffffffff, fq_entry, 1);
                if (fq_lane == 0) {
                    fq_told[2] = fq_first_0;
                    fq_told[3] = fq_last_0;
                    fq_told[1] = fq_listed ? (long long)((unsigned)fq_head >> 8) - 1 : fq_counter(fq_record, fq_tile);
                }
                const int fq_count = fq_listed ? (int)(fq_head & 255) : 255;
                if (fq_listed) {
                    fq_copy_word(fq_ahead + fq_lane, fq_schedule + (fq_head >> 32) + fq_lane);
                }
                if (fq_count != 255) {
                    const long long fq_listed_wait = __shfl_sync(0xffffffff, fq_entry, (fq_lane + 2) % 32);
                    fq_waited = fq_wait_lines(
                        fq_control, fq_listed_wait >> 32, (unsigned)fq_listed_wait * *fq_epoch, given_spin_limit,
                        fq_instruction, fq_count, fq_lane);
                } else {
                    fq_waited = fq_wait_all(
                        fq_stages, fq_control, *fq_epoch, given_spin_limit,
                        fq_instruction, fq_record, fq_first_0, fq_last_0, fq_lane);
                }
                if (fq_waited >= 2) fq_instruction = -1;
            }
            if (fq_lane == 0) fq_told[0] = fq_instruction;
        }
        __syncthreads();
        fq_instruction = fq_told[0];
        if (fq_instruction < 0) break;
        const int fq_stage = (int)(fq_instruction >> 40);
        const long long fq_tile = fq_instruction & ((1ll << 40) - 1);
        const long long* const fq_record = fq_stages + 8 + 17 * fq_stage;
        const int fq_counted = (int)fq_told[1];
        const long long fq_first_0 = fq_told[2];
        const long long fq_last_0 = fq_told[3];
        switch ((int)fq_record[14]) {
        case 0: {
            const unsigned long long a_address = given_a_address;
            const long long a_shape0 = given_a_shape0;
            const unsigned long long b_address = given_b_address;
            const long long* a = (const long long*)__cvta_global_to_generic(a_address);
            long long* b = (long long*)__cvta_global_to_generic(b_address);
            fq_stage_0(fq_lane, fq_first_0, fq_last_0, a, a_shape0, b);
            break;
        }
        case 1: {
            const unsigned long long a_address = given_b_address;
            const long long a_shape0 = given_b_shape0;
            const unsigned long long b_address = given_b_1_address;
            const long long* a = (const long long*)__cvta_global_to_generic(a_address);
            long long* b = (long long*)__cvta_global_to_generic(b_address);
            fq_stage_1(fq_lane, fq_first_0, fq_last_0, a, a_shape0, b);
            break;
        }
        case 2: {
            const unsigned long long a_address = given_b_address;
            const unsigned long long b_address = given_b_1_address;
            long long* a = (long long*)__cvta_global_to_generic(a_address);
            const long long* b = (const long long*)__cvta_global_to_generic(b_address);
            fq_stage_2(fq_lane, fq_first_0, fq_last_0, a, b);
            break;
        }
        case 3: {
            const unsigned long long a_address = given_b_address;
            const long long a_shape0 = given_b_shape0;
            const unsigned long long b_address = given_a_address;
            const long long* a = (const long long*)__cvta_global_to_generic(a_address);
            long long* b = (long long*)__cvta_global_to_generic(b_address);
            fq_stage_3(fq_lane, fq_first_0, fq_last_0, a, a_shape0, b);
            break;
        }
        }
        __syncthreads();
        if (fq_lane == 255) fq_publish(fq_record, fq_control, fq_counted);
    }
    if (fq_static && fq_lane == 0 && (int)blockIdx.x == 0) fq_skip_tickets(fq_schedule, fq_control);
    if (fq_lane == 0) fq_count_at_work(fq_control, -1);
    if (fq_lane == 0) fq_leave(fq_schedule, fq_control, *fq_epoch);
}
