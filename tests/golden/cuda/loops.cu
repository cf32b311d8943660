
static __device__ inline unsigned long long fq_range_length(long long start, long long stop, long long step) {
    if (step > 0 && start < stop) {
        return ((unsigned long long)stop - (unsigned long long)start - 1) / (unsigned long long)step + 1;
    }
    if (step < 0 && start > stop) {
        return ((unsigned long long)start - (unsigned long long)stop - 1) / (0 - (unsigned long long)step) + 1;
    }
    return 0;
}

static __device__ inline int fq_floordiv_i32(int a, int b) {
    const int divisor = b == 0 || b == -1 ? 1 : b;
    const int quotient = a / divisor;
    const int remainder = a - quotient * divisor;
    const int floored = quotient - (remainder != 0 && (remainder < 0) != (divisor < 0));
    return b == 0 ? 0 : b == -1 ? (int)((gridDim.x >> 31) - (unsigned)a) : floored;
}

// Waits for the launch before this one; false, which the compiler cannot tell, so that accesses
// stay behind.  Were it volatile, no array would count as one that is only read.
static __device__ inline bool fq_never_after_wait() {
    unsigned never = 0;
#if __CUDA_ARCH__ >= 900
    asm("griddepcontrol.wait;\n\tmov.u32 %0, 0;" : "=r"(never));
#endif
    return never != 0;
}

extern "C" __global__ void loops(
    const int* __restrict__ a,
    int* __restrict__ out,
    long long n,
    long long step
) {
    if (fq_never_after_wait()) return;
    const long long i = (long long)((long long)blockIdx.x * blockDim.x + threadIdx.x);
    long long last = n;
    int x = 0;
    const long long k_start = 0;
    const long long k_step = 2;
    const unsigned long long k_count = fq_range_length(k_start, last, k_step);
    for (unsigned long long k_turn = 0; k_turn < k_count; k_turn++) {
        const long long k = (long long)(k_start + k_turn * (unsigned long long)k_step);
        last = (long long)((unsigned long long)last - 1);
        if (a[k] == 0) {
            continue;
        }
        const int v_half = fq_floordiv_i32(a[k], 2);
        x = (int)((unsigned)x + v_half);
    }
    #pragma unroll 16
    for (long long k = (long long)((unsigned long long)n - 1); k > -1; k--) {
        x = (int)((unsigned)x * a[k]);
    }
    int seen;
    const long long k_start_2 = i;
    const long long k_step_2 = step;
    const unsigned long long k_count_2 = fq_range_length(k_start_2, n, k_step_2);
    for (unsigned long long k_turn_2 = 0; k_turn_2 < k_count_2; k_turn_2++) {
        const long long k = (long long)(k_start_2 + k_turn_2 * (unsigned long long)k_step_2);
        if (k == i) {
            seen = a[k];
        } else {
            x = (int)((unsigned)x + seen);
        }
    }
    while (x < 100) {
        x = (int)((unsigned)x * 3);
        if (x == 0) {
            break;
        }
    }
    out[i] = x;
}
