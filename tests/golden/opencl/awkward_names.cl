#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel void v_float(
    ulong local_address,
    long local_shape1,
    long local_shape2,
    int v_half,
    half u03bc
) {
    __global half* v_local = (__global half*)local_address;

    const long i = (long)get_global_id(0);
    const half v_exp = v_local[(i / 3 * local_shape1 + i % 3) * local_shape2 + 1] + u03bc;
    v_local[(i / 3 * local_shape1 + i % 3) * local_shape2 + 1] = (half)exp((float)v_exp) / (half)v_half;
}
