
// Waits for the launch before this one; false, which the compiler cannot tell, so that accesses
// stay behind.  Were it volatile, no array would count as one that is only read.
static __device__ inline bool fq_never_after_wait() {
    unsigned never = 0;
#if __CUDA_ARCH__ >= 900
    asm("griddepcontrol.wait;\n\tmov.u32 %0, 0;" : "=r"(never));
#endif
    return never != 0;
}

extern "C" __global__ void window_sum(
    const float* image,
    long long image_stride0,
    long long image_stride1,
    float* __restrict__ out,
    long long out_shape0,
    long long out_shape1
) {
    if (fq_never_after_wait()) return;
    const long long i = (long long)((long long)blockIdx.y * blockDim.y + threadIdx.y);
    const long long j = (long long)((long long)blockIdx.x * blockDim.x + threadIdx.x);
    if (i < out_shape0 && j < out_shape1) {
        float total = 0.0f;
        for (long long r = 0; r < 3; r++) {
            for (long long c = 0; c < 3; c++) {
                total = total + image[(i + 2 - r) * image_stride0 + (j + c) * image_stride1];
            }
        }
        out[i * out_shape1 + j] = total * 0.11111111f;
    }
}
