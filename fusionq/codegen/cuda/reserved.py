"""Identifiers that CUDA C++ and NVRTC keep for themselves."""

from __future__ import annotations

import re

RESERVED = re.compile(
    r"""
    # keywords and names of types
    alignas|alignof|and(_eq)?|asm|auto|bit(and|or)|bool|break|case|catch|char(8_t|16_t|32_t)?|class
    |co_(await|return|yield)|compl|concept|const(_cast|eval|expr|init)?|continue|decltype|default
    |delete|do|double|dynamic_cast|else|enum|explicit|export|extern|false|float|for|friend|goto|if
    |inline|int|long|mutable|namespace|new|noexcept|not(_eq)?|nullptr|operator|or(_eq)?|private
    |protected|public|register|reinterpret_cast|requires|restrict|return|short|signed|sizeof
    |static(_assert|_cast)?|struct|switch|template|this|thread_local|throw|true|try|type(def|id|name)
    |union|unsigned|using|virtual|void|volatile|wchar_t|while|xor(_eq)?|main
    |u?(char|short|int|long|longlong)\d*(_\w+)?|(float|double)\d(_\w+)?|dim3|half2?|nv_bfloat162?
    |\w+_t
    # variables and macros
    |threadIdx|blockIdx|blockDim|gridDim|warpSize|NULL|NAN|INFINITY|(CU|CUDA|FLT|DBL)_\w*|CU[A-Z]\w*
    # families of functions, and what implementations keep for themselves
    |(cuda|nv|fq)_?\w*|atomic[A-Z]\w*|(tex|surf)(ture|ace|\d|Cube)\w*|mem(cpy|set|cmp|move|chr)
    |(__|_[A-Z])\w*|std|cooperative_groups|nvcuda|printf|v?f?printf|assert|malloc|free|clock(64)?|trap
    # functions
    |l?l?abs|u?ll(abs|max|min)|u?(max|min)
    |(a?(cos|sin|tan)(h|pi)?|atan2|cbrt|ceil|copysign|cyl_bessel_i[01]|erf(c|cx|inv|cinv)?
    |exp(2|10|m1)?|fabs|fdim|fdivide|floor|fma|fmax|fmin|fmod|frexp|hypot|ilogb|j[01n]|ldexp|lgamma
    |ll?rint|ll?round|log(2|10|1p|b)?|max|min|modf|nan|nearbyint|nextafter|norm(3d|4d|cdf|cdfinv)?
    |pow|powi|rcbrt|remainder|remquo|rhypot|rint|rnorm(3d|4d)?|round|rsqrt|scalbl?n|sincos(pi)?|sqrt
    |tgamma|trunc|y[01n])[fl]?
    |is(finite|greater|greaterequal|inf|less|lessequal|lessgreater|nan|normal|unordered)|signbit
    |fpclassify|nexttoward|nanf|gamma|div|swap|move|forward|isfinited?|saturate
    """,
    re.VERBOSE,
)
