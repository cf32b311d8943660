#pragma OPENCL FP_CONTRACT OFF

static inline ulong fq_range_length(long start, long stop, long step) {
    if (step > 0 && start < stop) {
        return ((ulong)stop - (ulong)start - 1) / (ulong)step + 1;
    }
    if (step < 0 && start > stop) {
        return ((ulong)start - (ulong)stop - 1) / (0 - (ulong)step) + 1;
    }
    return 0;
}

static inline int fq_floordiv_i32(int a, int b) {
    const int divisor = b == 0 || b == -1 ? 1 : b;
    const int quotient = a / divisor;
    const int remainder = a - quotient * divisor;
    const int floored = quotient - (remainder != 0 && (remainder < 0) != (divisor < 0));
    return b == 0 ? 0 : b == -1 ? (int)((get_work_dim() >> 2) - (uint)a) : floored;
}

typedef struct {
    ulong a_address;
    ulong out_address;
    long n;
    long v_step;
} fq_arguments;
__kernel void loops(
    const fq_arguments fq_passed
) {
    const ulong a_address = fq_passed.a_address;
    const ulong out_address = fq_passed.out_address;
    const long n = fq_passed.n;
    const long v_step = fq_passed.v_step;
    __global const int* restrict a = (__global const int*)a_address;
    __global int* restrict out = (__global int*)out_address;

    const long global_id_0 = (long)get_global_id(0);
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE, memory_order_relaxed, memory_scope_work_item);
    const long i = global_id_0;
    long last = n;
    int x = 0;
    const long k_start = 0;
    const long k_step = 2;
    const ulong k_count = fq_range_length(k_start, last, k_step);
    for (ulong k_turn = 0; k_turn < k_count; k_turn++) {
        const long k = (long)(k_start + k_turn * (ulong)k_step);
        last = (long)((ulong)last - 1);
        if (a[k] == 0) {
            continue;
        }
        const int v_half = fq_floordiv_i32(a[k], 2);
        x = (int)((uint)x + v_half);
    }
    for (long k = (long)((ulong)n - 1); k > -1; k--) {
        x = (int)((uint)x * a[k]);
    }
    int seen;
    const long k_start_2 = i;
    const long k_step_2 = v_step;
    const ulong k_count_2 = fq_range_length(k_start_2, n, k_step_2);
    for (ulong k_turn_2 = 0; k_turn_2 < k_count_2; k_turn_2++) {
        const long k = (long)(k_start_2 + k_turn_2 * (ulong)k_step_2);
        if (k == i) {
            seen = a[k];
        } else {
            x = (int)((uint)x + seen);
        }
    }
    while (x < 100) {
        x = (int)((uint)x * 3);
        if (x == 0) {
            break;
        }
    }
    out[i] = x;
}
