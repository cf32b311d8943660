"""float16 as a class of CUDA C++: NVRTC has no such type without the toolkit's headers.

Arithmetic is float32's, rounded to float16.  That rounds once in effect: float32 has more than
twice float16's digits and two more, for which the second rounding of a sum, difference, product or
quotient changes nothing (Figueroa, When is double rounding innocuous?, SIGNUM Newsletter 30, 1995).
The conversions are PTX's ``cvt``, round to nearest even; subnormal numbers are kept.  Those of
float32 are libdevice's functions: over assembly the compiler moves no load, and makes no vector of
several.
"""

from __future__ import annotations

_ARITHMETIC = "\n".join(
    f"    friend __device__ fq_half operator{op}(fq_half a, fq_half b) {{\n"
    f"        return fq_half((float)a {op} (float)b);\n    }}"
    for op in ("+", "-", "*", "/")
)
_COMPARISONS = "\n".join(
    f"    friend __device__ bool operator{op}(fq_half a, fq_half b) {{\n"
    f"        return (float)a {op} (float)b;\n    }}"
    for op in ("<", "<=", ">", ">=", "==", "!=")
)
_CONVERSIONS = "\n".join(
    f"    {'' if c_type == 'int' else 'explicit '}__device__ fq_half({c_type} x) {{\n"
    f'        asm("cvt.rn.f16.{ptx} %0, %1;" : "=h"(bits) : "{constraint}"(x));\n    }}'
    for c_type, ptx, constraint in (
        ("int", "s32", "r"), ("unsigned", "u32", "r"), ("long long", "s64", "l"),
        ("unsigned long long", "u64", "l"), ("double", "f64", "d"),
    )
)  # fmt: skip

HALF = f"""\
extern "C" __device__ float __nv_half2float(unsigned short);
extern "C" __device__ unsigned short __nv_float2half_rn(float);
struct __attribute__((may_alias)) fq_half {{
    unsigned short bits;
    fq_half() = default;
{_CONVERSIONS}
    explicit __device__ fq_half(float x) : bits(__nv_float2half_rn(x)) {{}}
    explicit __device__ operator float() const {{ return __nv_half2float(bits); }}
    explicit __device__ operator double() const {{ return (float)*this; }}
{_ARITHMETIC}
{_COMPARISONS}
    friend __device__ fq_half operator-(fq_half a) {{
        a.bits ^= 0x8000;
        return a;
    }}
}};
// The number with these bits.
static __device__ inline fq_half fq_half_of(unsigned short bits) {{
    fq_half x;
    x.bits = bits;
    return x;
}}
static __device__ inline unsigned short fq_half_bits(fq_half a) {{ return a.bits; }}
// The sign of a NaN does not outlive a conversion.
static __device__ inline bool fq_half_signbit(fq_half a) {{ return a.bits >> 15; }}
static __device__ inline fq_half fq_half_fabs(fq_half a) {{
    return fq_half_of(a.bits & 0x7fff);
}}
static __device__ inline fq_half fq_half_copysign(fq_half a, fq_half b) {{
    return fq_half_of((a.bits & 0x7fff) | (b.bits & 0x8000));
}}
// The neighbour of a towards b; a and b differ.
static __device__ inline fq_half fq_half_nextafter(fq_half a, fq_half b) {{
    if (a != a || b != b) return fq_half_of(0x7e00);
    if (a == 0) return fq_half_of(b > 0 ? 0x0001 : 0x8001);
    return fq_half_of(a.bits + ((a < b) == (a > 0) ? 1 : -1));
}}
static __device__ inline fq_half __shfl_sync(unsigned mask, fq_half x, int lane) {{
    return fq_half_of(__shfl_sync(mask, (unsigned)x.bits, lane));
}}
static __device__ inline fq_half __shfl_up_sync(unsigned mask, fq_half x, unsigned lanes) {{
    return fq_half_of(__shfl_up_sync(mask, (unsigned)x.bits, lanes));
}}
static __device__ inline fq_half __shfl_down_sync(unsigned mask, fq_half x, unsigned lanes) {{
    return fq_half_of(__shfl_down_sync(mask, (unsigned)x.bits, lanes));
}}"""
"""The class ``fq_half``, functions that look at its bits, and the shuffles of warps for it."""
