#pragma OPENCL FP_CONTRACT OFF

static inline long fq_uniform_min_i64(long a, long b) {
    return b < a ? b : a;
}

static inline long fq_uniform_max_i64(long a, long b) {
    return b > a ? b : a;
}

static inline long fq_maximum_i64(long a, long b) {
    return max(a, b);
}

static inline long fq_minimum_i64(long a, long b) {
    return min(a, b);
}

// What the first lane does alone is compiled as it stands: with optimisation Intel's compiler for
// CPUs makes a copy of each memory access for every lane, half of the time of building a kernel.
#ifdef __clang__
#define FQ_OUTLINED __attribute__((noinline, optnone)) static
#else
#define FQ_OUTLINED __attribute__((noinline)) static
#endif

// In a function of its own the compiler would not know that values are the same for all lanes.
// What the first lane does alone, in loops, is a function of its own: it is no lane of a vector.
#define FQ_INLINE __attribute__((always_inline)) static

// A loop that is unlikely to be entered must not take registers from the loops that do the work.
#ifdef __clang__
#define FQ_UNLIKELY(condition) __builtin_expect((condition) ? 1 : 0, 0)
#else
#define FQ_UNLIKELY(condition) (condition)
#endif

FQ_INLINE __global atomic_uint* fq_word(__global atomic_uint* control, long line, int word) {
    return control + 16 * line + word;
}

FQ_INLINE uint fq_read(__global atomic_uint* word) {
    return atomic_load_explicit(word, memory_order_acquire, memory_scope_device);
}

FQ_INLINE uint fq_add(__global atomic_uint* word, uint value, memory_order order) {
    return order == memory_order_release
        ? atomic_fetch_add_explicit(word, value, memory_order_release, memory_scope_device)
        : atomic_fetch_add_explicit(word, value, memory_order_relaxed, memory_scope_device);
}

// The next instruction in order, or -1.
FQ_INLINE long fq_ticket(__global const long* schedule, __global atomic_uint* control, uint epoch) {
    const uint count = (uint)schedule[0];
    const uint first = (epoch - 1) * (count + (uint)schedule[1]);
    const uint ticket = fq_add(fq_word(control, 0, 0), 1, memory_order_relaxed) - first;
    return ticket < count ? schedule[schedule[3] + ticket] : -1;
}

// Takes the tickets of a launch in which nobody did.
FQ_INLINE void fq_skip_tickets(__global const long* schedule, __global atomic_uint* control) {
    const uint count = (uint)(schedule[0] + schedule[1]);
    fq_add(fq_word(control, 0, 0), count, memory_order_relaxed);
}

// Whether all workers have started, so that each can follow its own list: one answer for all.
FQ_OUTLINED uint fq_started(__global const long* schedule, __global atomic_uint* control, uint epoch) {
    __global atomic_uint* const mode = fq_word(control, 2, 0);
    const uint now = epoch << 1;
    const uint here = fq_add(fq_word(control, 1, 0), 1, memory_order_relaxed) + 1;
    uint seen = fq_read(mode);
    if (here != epoch * (uint)schedule[1]) {
        const long most = 1000 + 4 * schedule[0];
        for (long polls = 0; polls < most && (seen & ~1u) != now; polls++)
            seen = fq_read(mode);
    }
    const uint wanted = here == epoch * (uint)schedule[1] ? now | 1 : now;
    while ((seen & ~1u) != now) {
        if (atomic_compare_exchange_strong_explicit(
                    mode, &seen, wanted, memory_order_acq_rel, memory_order_acquire,
                    memory_scope_device)) seen = wanted;
    }
    return seen & 1;
}

FQ_INLINE bool fq_follows_assignment(
    __global const long* schedule, __global atomic_uint* control, uint epoch, int lane) {
    if (!schedule[2]) return false;
    uint answer = 0;
    if (lane == 0) answer = fq_started(schedule, control, epoch);
    return sub_group_broadcast(answer, 0) != 0;
}

// Whether some wait ran out, in this launch or one before: counters no longer mean anything.
FQ_INLINE uint fq_stall_seen(__global atomic_uint* control) {
    __global atomic_uint* const flag = fq_word(control, 3, 0);
    return atomic_load_explicit(flag, memory_order_relaxed, memory_scope_device);
}

// The same for all lanes.
FQ_INLINE bool fq_stalled(__global atomic_uint* control, int lane) {
    uint seen = 0;
    if (lane == 0) seen = fq_stall_seen(control);
    return sub_group_broadcast(seen, 0) != 0;
}

// Counts a worker as at work, by 1, or as no longer so, by -1.
FQ_INLINE void fq_count_at_work(__global atomic_uint* control, int by) {
    fq_add(fq_word(control, 4, 0), (uint)by, memory_order_relaxed);
}

// Says which wait ran out, if it is the first.
FQ_OUTLINED void fq_tell_stall(
    __global atomic_uint* control, long line, uint target, uint seen, long instruction) {
    if (fq_add(fq_word(control, 3, 1), 1, memory_order_relaxed) != 0) return;
    const uint found[] = {
        (uint)(instruction >> 40), (uint)instruction, (uint)line, target, seen};
    for (int k = 0; k < 5; k++)
        atomic_store_explicit(
            fq_word(control, 3, 2 + k), found[k],
            memory_order_relaxed, memory_scope_device);
    atomic_store_explicit(
        fq_word(control, 3, 0), 1, memory_order_release, memory_scope_device);
}

// Waits until ``line`` has counted to ``target``: 0 if it had, 1 if that took a while, and
// 2 if nobody was at work for ``spin_limit`` polls: what is waited for may take any time.
FQ_INLINE int fq_wait(
    __global atomic_uint* control, long line, uint target, long spin_limit, long instruction) {
    uint seen = fq_read(fq_word(control, line, 0));
    int state = 0;
    long idle = 0;
    bool at_work = true;
    for (long polls = 1; FQ_UNLIKELY((int)(seen - target) < 0 && state < 2); polls++) {
        state = 1;
        if (polls % 1024 == 0) {
            if (at_work) fq_count_at_work(control, -1);
            at_work = false;
            idle = fq_read(fq_word(control, 4, 0)) == 0 ? idle + 1024 : 0;
            if (idle >= spin_limit) fq_tell_stall(control, line, target, seen, instruction);
            if (fq_stall_seen(control)) state = 2;
        }
        seen = fq_read(fq_word(control, line, 0));
    }
    if (!at_work) fq_count_at_work(control, 1);
    return state;
}

// The line of the counter of a tile, if its stage has such.
FQ_OUTLINED long fq_counter(__global const long* record, long tile) {
    if (record[12] < 0) return -1;
    return record[12] + tile / record[6];
}

// Counts a tile as done: after its work, not when it was taken.
FQ_OUTLINED void fq_publish(
    __global const long* record, __global atomic_uint* control, long counter) {
    if (counter >= 0) fq_add(fq_word(control, counter, 0), 1, memory_order_release);
    if (record[13] >= 0)
        fq_add(fq_word(control, record[13], 0), 1, memory_order_release);
}

// Waits for the tiles that hold a box of work-items of a stage, or for all its tiles.
FQ_OUTLINED int fq_wait_tiles(
    __global const long* schedule, __global atomic_uint* control, uint epoch,
    long spin_limit, long instruction, long producer, bool boxed, long first_0, long last_0
) {
    __global const long* const record = schedule + 8 + 17 * producer;
    long shared_0 = 1;
    if (boxed) {
        if (last_0 < max(first_0, 0L)) return 0;
        shared_0 = record[6];
        first_0 = max(first_0, 0L) / (record[0] * shared_0);
        last_0 = min(last_0, record[9] - 1) / (record[0] * shared_0);
    }
    int state = 0;
    for (long c_0 = first_0; c_0 <= last_0 && state < 2; c_0++)
        state |= fq_wait(
            control, boxed ? record[12] + c_0 : record[13],
            (uint)(boxed ? 1 * min(shared_0, record[3] - c_0 * shared_0) : record[3] * record[4] * record[5]) * epoch, spin_limit, instruction);
    return state;
}

// Waits for all that an instruction depends on.
FQ_OUTLINED int fq_wait_all(
    __global const long* fq_stages, __global atomic_uint* fq_control, uint epoch,
    long spin_limit, long instruction, __global const long* fq_record, long fq_first_0, long fq_last_0
) {
    int state = 0;
    for (int fq_turn = 0; fq_turn < (int)fq_record[16] && state < 2;
            fq_turn++) {
        __global const long* const fq_awaited = fq_stages + (fq_record[16] >> 32) + 2 * fq_turn;
        long fq_low_0 = 0, fq_high_0 = 0;
        bool fq_boxed = true;
        switch ((int)(fq_awaited[0] >> 32)) {
        case 0: {
            const long value_0 = fq_awaited[1];
            fq_low_0 = fq_maximum_i64((long)((ulong)value_0 + -1 * (long)fq_last_0 + -1L), 0); fq_high_0 = fq_minimum_i64((long)((ulong)value_0 + -1 * (long)fq_first_0 + -1L), (long)((ulong)value_0 + -1L));
            break;
        }
        case 1: {
            const long value_0 = fq_awaited[1];
            fq_low_0 = fq_maximum_i64((long)fq_first_0 + -1, 1); fq_high_0 = fq_minimum_i64((long)fq_last_0 + 1, (long)((ulong)value_0 + -1L));
            break;
        }
        case 2: {
            fq_low_0 = 0; fq_high_0 = 0;
            break;
        }
        default: fq_boxed = false;
        }
        state |= fq_wait_tiles(
            fq_stages, fq_control, epoch, spin_limit, instruction,
            (int)fq_awaited[0], fq_boxed, fq_low_0, fq_high_0);
    }
    return state;
}

__attribute__((always_inline)) static void fq_stage_0(
    const int fq_lane,
    const long fq_first_0, const long fq_last_0,
    const ulong a_address,
    const long a_shape0,
    const ulong b_address) {
    __global const long* a = (__global const long*)a_address;
    __global long* b = (__global long*)b_address;
    {
        long fq_inner = fq_last_0 + 1, fq_outer = fq_inner;
        long fq_whole = fq_inner;
        {
            const long fq_from = max(fq_first_0, (long)(1)), fq_to = min(fq_last_0, (long)(fq_uniform_min_i64(fq_uniform_max_i64(a_shape0 - 1, -4611686018427387904L), 4611686018427387904L) + -1));
            if (fq_from + 15 <= fq_to) {
                fq_inner = fq_from;
                fq_whole = (fq_from + 15) & -16L;
                fq_outer = fq_to + 1;
            }
        }
        long fq_start = fq_first_0;
        for (int fq_part = 0; fq_part < 2; fq_part++) {
            const long fq_stop = fq_part == 0 ? fq_inner : fq_last_0 + 1;
            if (fq_stop - fq_start <= 4) {
                for (; fq_start < fq_stop; fq_start += 1) {
                    const long fq_id_0 = fq_start;
                    // blur
                    if (0 < (long)fq_id_0 && (long)fq_id_0 < a_shape0 - 1) {
                        b[(long)fq_id_0] = (long)((ulong)a[(long)fq_id_0 - 1] + a[(long)fq_id_0] + a[(long)fq_id_0 + 1]);
                    } else {
                        b[(long)fq_id_0] = a[(long)fq_id_0];
                    }
                }
            } else {
                for (; fq_start < fq_stop; fq_start += 16) {
                    const long fq_id_0 = fq_start + fq_lane;
                    if (fq_start + fq_lane < fq_stop) {
                        // blur
                        if (0 < (long)fq_id_0 && (long)fq_id_0 < a_shape0 - 1) {
                            b[(long)fq_id_0] = (long)((ulong)a[(long)fq_id_0 - 1] + a[(long)fq_id_0] + a[(long)fq_id_0 + 1]);
                        } else {
                            b[(long)fq_id_0] = a[(long)fq_id_0];
                        }
                    }
                }
            }
            if (fq_part == 0 && fq_inner < fq_outer) {
                for (int fq_turn = 0; fq_turn < 3; fq_turn++) {
                    const long fq_end = fq_turn == 0 ? fq_whole : fq_turn == 1 ? fq_outer - 15 : ((fq_outer - fq_whole) & 15) == 0 ? fq_outer - 16 : fq_outer;
                    for (fq_start = fq_turn == 0 ? fq_inner : fq_turn == 1 ? fq_whole : fq_outer - 16; fq_start < fq_end; fq_start += 16) {
                        const long fq_id_0 = fq_start + fq_lane;
                        // blur
                        b[(long)fq_id_0] = (long)((ulong)a[(long)fq_id_0 - 1] + a[(long)fq_id_0] + a[(long)fq_id_0 + 1]);
                    }
                }
                fq_start = fq_outer;
            }
        }
    }
}

__attribute__((always_inline)) static void fq_stage_1(
    const int fq_lane,
    const long fq_first_0, const long fq_last_0,
    const ulong a_address,
    const long a_shape0,
    const ulong b_address) {
    __global const long* a = (__global const long*)a_address;
    __global long* b = (__global long*)b_address;
    {
        long fq_inner = fq_last_0 + 1, fq_outer = fq_inner;
        {
            const long fq_from = fq_first_0, fq_to = fq_last_0;
            if (fq_from + 15 <= fq_to) {
                fq_inner = fq_from;
                fq_outer = fq_from + ((fq_to + 1 - fq_from) & -16L);
            }
        }
        long fq_start = fq_first_0;
        for (int fq_part = 0; fq_part < 2; fq_part++) {
            const long fq_stop = fq_part == 0 ? fq_inner : fq_last_0 + 1;
            for (; fq_start < fq_stop; fq_start += 16) {
                const long fq_id_0 = fq_start + fq_lane;
                if (fq_start + fq_lane < fq_stop) {
                    // total
                    for (long k = 0; k < a_shape0; k++) {
                        b[(long)fq_id_0] = (long)((ulong)b[(long)fq_id_0] + a[k]);
                    }
                }
            }
            if (fq_part == 0)
                for (fq_start = fq_inner; fq_start < fq_outer; fq_start += 16) {
                    const long fq_id_0 = fq_start + fq_lane;
                    // total
                    for (long k = 0; k < a_shape0; k++) {
                        b[(long)fq_id_0] = (long)((ulong)b[(long)fq_id_0] + a[k]);
                    }
                }
        }
    }
}

__attribute__((always_inline)) static void fq_stage_2(
    const int fq_lane,
    const long fq_first_0, const long fq_last_0,
    const ulong a_address,
    const ulong b_address) {
    __global long* a = (__global long*)a_address;
    __global const long* b = (__global const long*)b_address;
    {
        long fq_inner = fq_last_0 + 1, fq_outer = fq_inner;
        {
            const long fq_from = fq_first_0, fq_to = fq_last_0;
            if (fq_from + 15 <= fq_to) {
                fq_inner = fq_from;
                fq_outer = fq_from + ((fq_to + 1 - fq_from) & -16L);
            }
        }
        long fq_start = fq_first_0;
        for (int fq_part = 0; fq_part < 2; fq_part++) {
            const long fq_stop = fq_part == 0 ? fq_inner : fq_last_0 + 1;
            for (; fq_start < fq_stop; fq_start += 16) {
                const long fq_id_0 = fq_start + fq_lane;
                if (fq_start + fq_lane < fq_stop) {
                    // scale
                    a[(long)fq_id_0] = (long)((ulong)a[(long)fq_id_0] * b[0]);
                }
            }
            if (fq_part == 0)
                for (fq_start = fq_inner; fq_start < fq_outer; fq_start += 16) {
                    const long fq_id_0 = fq_start + fq_lane;
                    // scale
                    a[(long)fq_id_0] = (long)((ulong)a[(long)fq_id_0] * b[0]);
                }
        }
    }
}

__attribute__((always_inline)) static void fq_stage_3(
    const int fq_lane,
    const long fq_first_0, const long fq_last_0,
    const ulong a_address,
    const long a_shape0,
    const ulong b_address) {
    __global const long* a = (__global const long*)a_address;
    __global long* b = (__global long*)b_address;
    {
        long fq_inner = fq_last_0 + 1, fq_outer = fq_inner;
        long fq_whole = fq_inner;
        {
            const long fq_from = fq_first_0, fq_to = fq_last_0;
            if (fq_from + 15 <= fq_to) {
                fq_inner = fq_from;
                fq_whole = (fq_from + 15) & -16L;
                fq_outer = fq_to + 1;
            }
        }
        long fq_start = fq_first_0;
        for (int fq_part = 0; fq_part < 2; fq_part++) {
            const long fq_stop = fq_part == 0 ? fq_inner : fq_last_0 + 1;
            if (fq_stop - fq_start <= 4) {
                for (; fq_start < fq_stop; fq_start += 1) {
                    const long fq_id_0 = fq_start;
                    // reverse
                    b[(long)fq_id_0] = a[((a_shape0 - 1) ^ (long)(get_work_dim() >> 2)) - (long)fq_id_0];
                }
            } else {
                for (; fq_start < fq_stop; fq_start += 16) {
                    const long fq_id_0 = fq_start + fq_lane;
                    if (fq_start + fq_lane < fq_stop) {
                        // reverse
                        b[(long)fq_id_0] = a[((a_shape0 - 1) ^ (long)(get_work_dim() >> 2)) - (long)fq_id_0];
                    }
                }
            }
            if (fq_part == 0 && fq_inner < fq_outer) {
                for (int fq_turn = 0; fq_turn < 3; fq_turn++) {
                    const long fq_end = fq_turn == 0 ? fq_whole : fq_turn == 1 ? fq_outer - 15 : ((fq_outer - fq_whole) & 15) == 0 ? fq_outer - 16 : fq_outer;
                    for (fq_start = fq_turn == 0 ? fq_inner : fq_turn == 1 ? fq_whole : fq_outer - 16; fq_start < fq_end; fq_start += 16) {
                        const long fq_id_0 = fq_start + fq_lane;
                        // reverse
                        b[(long)fq_id_0] = a[((a_shape0 - 1) ^ (long)(get_work_dim() >> 2)) - (long)fq_id_0];
                    }
                }
                fq_start = fq_outer;
            }
        }
    }
}
typedef struct {
    ulong given_a_address;
    long given_a_shape0;
    ulong given_b_address;
    long given_b_shape0;
    ulong given_b_1_address;
    ulong given_schedule_address;
    ulong given_control_address;
    uint given_epoch;
    long given_spin_limit;
} fq_arguments;
__attribute__((intel_reqd_sub_group_size(16), reqd_work_group_size(16, 1, 1)))
__kernel void megakernel4_blur_total_scale_reverse(
    const fq_arguments fq_passed) {
    const ulong given_a_address = fq_passed.given_a_address;
    const long given_a_shape0 = fq_passed.given_a_shape0;
    const ulong given_b_address = fq_passed.given_b_address;
    const long given_b_shape0 = fq_passed.given_b_shape0;
    const ulong given_b_1_address = fq_passed.given_b_1_address;
    const ulong given_schedule_address = fq_passed.given_schedule_address;
    const ulong given_control_address = fq_passed.given_control_address;
    const uint given_epoch = fq_passed.given_epoch;
    const long given_spin_limit = fq_passed.given_spin_limit;
    __global const long* const fq_schedule = (__global const long*)given_schedule_address;
    __global atomic_uint* const fq_control = (__global atomic_uint*)given_control_address;
    const int fq_lane = get_sub_group_local_id();
    if (fq_lane == 0) fq_count_at_work(fq_control, 1);
    const bool fq_static = fq_follows_assignment(fq_schedule, fq_control, given_epoch, fq_lane);
    const long fq_assigned = fq_schedule[5];
    long fq_next = fq_schedule[4], fq_stop = 0;
    if (fq_static) {
        fq_stop = fq_schedule[fq_next + get_group_id(0) + 1];
        fq_next = fq_schedule[fq_next + get_group_id(0)];
    }
    __global const long* const fq_stages = fq_schedule;
    for (;;) {
        const long fq_found = fq_static
            ? (fq_next < fq_stop ? fq_schedule[fq_assigned + fq_next++] : -1)
            : (fq_lane == 0 ? fq_ticket(fq_schedule, fq_control, given_epoch) : -1);
        const long fq_instruction = sub_group_broadcast(fq_found, 0);
        if (fq_instruction < 0 || fq_stalled(fq_control, fq_lane)) break;
        const int fq_stage = (int)(fq_instruction >> 40);
        const long fq_tile = fq_instruction & ((1L << 40) - 1);
        __global const long* const fq_record = fq_stages + 8 + 17 * fq_stage;
        int fq_waited = 0;
        const long fq_at_0 = fq_tile;
        const long fq_first_0 = fq_at_0 * fq_record[0];
        const long fq_last_0 = min(fq_first_0 + fq_record[0], fq_record[9]) - 1;
        if (fq_lane == 0)
            fq_waited = fq_wait_all(
                fq_stages, fq_control, given_epoch, given_spin_limit,
                fq_instruction, fq_record, fq_first_0, fq_last_0);
        fq_waited = sub_group_broadcast(fq_waited, 0);
        if (fq_waited >= 2) break;
        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
        switch ((int)fq_record[14]) {
        case 0: {
            const ulong a_address = given_a_address;
            const long a_shape0 = given_a_shape0;
            const ulong b_address = given_b_address;
            fq_stage_0(fq_lane, fq_first_0, fq_last_0, a_address, a_shape0, b_address);
            break;
        }
        case 1: {
            const ulong a_address = given_b_address;
            const long a_shape0 = given_b_shape0;
            const ulong b_address = given_b_1_address;
            fq_stage_1(fq_lane, fq_first_0, fq_last_0, a_address, a_shape0, b_address);
            break;
        }
        case 2: {
            const ulong a_address = given_b_address;
            const ulong b_address = given_b_1_address;
            fq_stage_2(fq_lane, fq_first_0, fq_last_0, a_address, b_address);
            break;
        }
        case 3: {
            const ulong a_address = given_b_address;
            const long a_shape0 = given_b_shape0;
            const ulong b_address = given_a_address;
            fq_stage_3(fq_lane, fq_first_0, fq_last_0, a_address, a_shape0, b_address);
            break;
        }
        }
        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
        if (fq_lane == 0) fq_publish(fq_record, fq_control, fq_counter(fq_record, fq_tile));
        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
    }
    if (fq_static && fq_lane == 0 && get_group_id(0) == 0) fq_skip_tickets(fq_schedule, fq_control);
    if (fq_lane == 0) fq_count_at_work(fq_control, -1);
}
