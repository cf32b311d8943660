#pragma OPENCL FP_CONTRACT OFF

__kernel void mul_sub_mul_sub(
    ulong a_address,
    ulong b_address,
    ulong c_address,
    ulong d_address,
    ulong out_address,
    long n
) {
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
