#pragma OPENCL FP_CONTRACT OFF

typedef struct {
    ulong image_address;
    long image_stride0;
    long image_stride1;
    ulong out_address;
    long out_shape0;
    long out_shape1;
} fq_arguments;
__kernel void window_sum(
    const fq_arguments fq_passed
) {
    const ulong image_address = fq_passed.image_address;
    const long image_stride0 = fq_passed.image_stride0;
    const long image_stride1 = fq_passed.image_stride1;
    const ulong out_address = fq_passed.out_address;
    const long out_shape0 = fq_passed.out_shape0;
    const long out_shape1 = fq_passed.out_shape1;
    const uint fq_zero = (get_work_dim() >> 2);
    __global const float* image = (__global const float*)image_address;
    __global float* restrict out = (__global float*)out_address;

    const long i = (long)get_global_id(1);
    const long j = (long)get_global_id(0);
    if (i < out_shape0 && j < out_shape1) {
        float total = 0.0f;
        #pragma clang loop vectorize(disable)
        for (long r = 0; r < 3; r++) {
            #pragma clang loop vectorize(disable)
            for (long c = 0; c < 3; c++) {
                total = total + image[(i + 2 - r) * image_stride0 + (j + c) * image_stride1];
            }
        }
        out[i * out_shape1 + j] = total * as_float(as_uint(0.11111111f) + fq_zero);
    }
}
