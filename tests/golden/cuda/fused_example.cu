
// Waits for the launch before this one; false, which the compiler cannot tell, so that accesses
// stay behind.  Were it volatile, no array would count as one that is only read.
static __device__ inline bool fq_never_after_wait() {
    unsigned never = 0;
#if __CUDA_ARCH__ >= 900
    asm("griddepcontrol.wait;\n\tmov.u32 %0, 0;" : "=r"(never));
#endif
    return never != 0;
}

extern "C" __global__ void mul_sub_mul_sub(
    const float* __restrict__ a,
    const float* __restrict__ b,
    const float* __restrict__ c,
    const float* __restrict__ d,
    float* __restrict__ out,
    long long n
) {
    if (fq_never_after_wait()) return;
    const long long i = (long long)((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        // submission 0: mul
        const float t1 = a[i] * b[i];
        // submission 1: sub
        const float t2 = a[i] - c[i];
        // submission 2: mul
        const float t3 = t2 * d[i];
        // submission 3: sub
        out[i] = t1 - t3;
    }
}
