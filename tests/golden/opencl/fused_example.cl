#pragma OPENCL FP_CONTRACT OFF

typedef struct {
    ulong a_address;
    ulong b_address;
    ulong c_address;
    ulong d_address;
    ulong out_address;
    long n;
} fq_arguments;
__kernel void mul_sub_mul_sub(
    const fq_arguments fq_passed
) {
    const ulong a_address = fq_passed.a_address;
    const ulong b_address = fq_passed.b_address;
    const ulong c_address = fq_passed.c_address;
    const ulong d_address = fq_passed.d_address;
    const ulong out_address = fq_passed.out_address;
    const long n = fq_passed.n;
    const uint fq_zero = (get_work_dim() >> 2);
    __global const float* restrict a = (__global const float*)a_address;
    __global const float* restrict b = (__global const float*)b_address;
    __global const float* restrict c = (__global const float*)c_address;
    __global const float* restrict d = (__global const float*)d_address;
    __global float* restrict out = (__global float*)out_address;

    const long i = (long)get_global_id(0);
    if (i < n) {
        // submission 0: mul
        const float t1 = a[i] * b[i];
        // submission 1: sub
        const float t2 = a[i] - c[i];
        // submission 2: mul
        const float t3 = as_float(as_uint(t2) + fq_zero) * d[i];
        // submission 3: sub
        out[i] = t1 - t3;
    }
}
