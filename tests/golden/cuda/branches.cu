
static __device__ inline double fq_maximum_f64(double a, double b) {
    return a > b || a != a ? a : b;
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

extern "C" __global__ void branches(
    const double* __restrict__ a,
    unsigned char* __restrict__ flags,
    double* __restrict__ out,
    unsigned char negate,
    long long n
) {
    if (fq_never_after_wait()) return;
    const long long i = (long long)((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        const double x = a[i];
        const bool near = x < 1.0 || flags[i] != 0 && !isnan(x);
        double y;
        if (near) {
            y = x < 0.0 ? -1.0 : x > 0.0 ? 1.0 : 0.0;
        } else if (negate != 0) {
            y = -x;
        } else {
            y = fq_maximum_f64(x, -__longlong_as_double(0x7ff0000000000000ll));
        }
        flags[i] = near;
        out[i] = y;
    }
}
