#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF

typedef ushort __attribute__((aligned(32))) fq_streamed_ushort;

typedef uchar __attribute__((aligned(16))) fq_streamed_uchar;

static inline uchar fq_u8_of_f16(half a) {
    const float x = a;
    return (uchar)(int)(x != x ? 0 : x < 0.0f ? 0.0f : x > 255.0f ? 255.0f : x);
}

__kernel void nontemporal(
    ulong a_address,
    long a_shape1,
    ulong image_address,
    long image_stride0,
    ulong out_address,
    long out_shape0,
    long out_shape1
) {
    const bool fq_streams = get_local_size(0) % 16 == 0 && image_address % 32 == 0 && image_stride0 % 16 == 0 && out_address % 16 == 0 && out_shape1 % 16 == 0;
    __global const half* restrict a = (__global const half*)a_address;
    __global half* restrict image = (__global half*)image_address;
    __global uchar* restrict out = (__global uchar*)out_address;

    const long i = (long)get_global_id(1);
    const long j = (long)get_global_id(0);
    if (i < out_shape0 && j < out_shape1) {
        {
            const half fq_value = a[i * a_shape1 + j] + a[i * a_shape1 + j];
            if (fq_streams) {
                atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_relaxed, memory_scope_work_item);
                __builtin_nontemporal_store((ushort)(as_ushort(fq_value) ^ (get_work_dim() >> 2)), (__global fq_streamed_ushort*)&image[i * image_stride0 + j]);
            } else
                image[i * image_stride0 + j] = fq_value;
        }
        {
            const uchar fq_value = fq_u8_of_f16(a[i * a_shape1 + j]);
            if (fq_streams) {
                atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_relaxed, memory_scope_work_item);
                __builtin_nontemporal_store(fq_value, (__global fq_streamed_uchar*)&out[i * out_shape1 + j]);
            } else
                out[i * out_shape1 + j] = fq_value;
        }
    }
}
