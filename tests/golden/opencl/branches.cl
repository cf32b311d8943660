#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

static inline double fq_maximum_f64(double a, double b) {
    return a > b || a != a ? a : b;
}

typedef struct {
    ulong a_address;
    ulong flags_address;
    ulong out_address;
    uchar negate;
    long n;
} fq_arguments;
__kernel void branches(
    const fq_arguments fq_passed
) {
    const ulong a_address = fq_passed.a_address;
    const ulong flags_address = fq_passed.flags_address;
    const ulong out_address = fq_passed.out_address;
    const uchar negate = fq_passed.negate;
    const long n = fq_passed.n;
    __global const double* restrict a = (__global const double*)a_address;
    __global uchar* restrict flags = (__global uchar*)flags_address;
    __global double* restrict out = (__global double*)out_address;

    const long i = (long)get_global_id(0);
    if (i < n) {
        const double x = a[i];
        const bool near = x < 1.0 || (flags[i] != 0) & !isnan(x);
        double y;
        if (near) {
            y = x < 0.0 ? -1.0 : x > 0.0 ? 1.0 : 0.0;
        } else if (negate != 0) {
            y = -x;
        } else {
            y = fq_maximum_f64(x, -(double)INFINITY);
        }
        flags[i] = near;
        out[i] = y;
    }
}
