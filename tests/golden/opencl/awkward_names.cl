#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF

static inline long fq_floordiv_short_same_i64(long a, long b) {
    #if defined(cl_khr_fp64)
    const long divisor = b == 0 ? 1 : b;
    const double inverse = 1.0 / (((double)(int)(divisor >> 32) * 4294967296.0 + (double)(uint)divisor));
    const double whole = floor(((as_double((long)a + 0x4338000000000000L) - 6755399441055744.0) + (divisor < 0 ? -0.5 : 0.5)) * inverse);
    const long quotient = as_long(whole + 6755399441055744.0) - 0x4338000000000000L;
    return b == 0 ? 0 : (long)quotient;
    #else
    const long divisor = b == 0 || b == -1 ? 1 : b;
    const long quotient = a / divisor;
    const long remainder = a - quotient * divisor;
    const long floored = quotient - (remainder != 0 && (remainder < 0) != (divisor < 0));
    return b == 0 ? 0 : b == -1 ? (long)((get_work_dim() >> 2) - (ulong)a) : floored;
    #endif
}

static inline long fq_mod_short_same_i64(long a, long b) {
    #if defined(cl_khr_fp64)
    const long divisor = b == 0 ? 1 : b;
    const double inverse = 1.0 / (((double)(int)(divisor >> 32) * 4294967296.0 + (double)(uint)divisor));
    const double whole = floor(((as_double((long)a + 0x4338000000000000L) - 6755399441055744.0) + (divisor < 0 ? -0.5 : 0.5)) * inverse);
    const long quotient = as_long(whole + 6755399441055744.0) - 0x4338000000000000L;
    return (long)((ulong)a - (ulong)quotient * (ulong)divisor);
    #else
    const long divisor = b == 0 || b == -1 ? 1 : b;
    const long remainder = a % divisor;
    const bool opposite = remainder != 0 && (remainder < 0) != (divisor < 0);
    return opposite ? remainder + divisor : remainder;
    #endif
}

typedef struct {
    ulong local_address;
    long local_shape1;
    long local_shape2;
    int v_half;
    half u03bc;
} fq_arguments;
__kernel void v_float(
    const fq_arguments fq_passed
) {
    const ulong local_address = fq_passed.local_address;
    const long local_shape1 = fq_passed.local_shape1;
    const long local_shape2 = fq_passed.local_shape2;
    const int v_half = fq_passed.v_half;
    const half u03bc = fq_passed.u03bc;
    __global half* v_local = (__global half*)local_address;

    const long i = (long)get_global_id(0);
    const half v_exp = v_local[(fq_floordiv_short_same_i64(i, 3) * local_shape1 + fq_mod_short_same_i64(i, 3)) * local_shape2 + 1] + u03bc;
    v_local[(fq_floordiv_short_same_i64(i, 3) * local_shape1 + fq_mod_short_same_i64(i, 3)) * local_shape2 + 1] = (half)exp((float)v_exp) / (half)v_half;
}
