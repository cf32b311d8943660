#pragma OPENCL FP_CONTRACT OFF

typedef struct {
    ulong source_address;
    ulong out_address;
    long n;
} fq_arguments;
__kernel void private_array(
    const fq_arguments fq_passed
) {
    const ulong source_address = fq_passed.source_address;
    const ulong out_address = fq_passed.out_address;
    const long n = fq_passed.n;
    __global const uchar* restrict source = (__global const uchar*)source_address;
    __global uchar* restrict out = (__global uchar*)out_address;
    uchar kept[4];

    const long i = (long)get_global_id(0);
    if (i < n) {
        for (long k = 0; k < 4; k++) {
            kept[k] = source[i * 4 + k];
        }
        for (long k = 0; k < 4; k++) {
            out[i * 4 + k] = (uchar)((uint)kept[3 - k] * 2);
        }
    }
}
