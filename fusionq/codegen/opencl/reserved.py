"""Identifiers that OpenCL C and its implementations keep for themselves."""

from __future__ import annotations

import re

RESERVED = re.compile(
    r"""
    # keywords and type names
    auto|break|case|complex|const|constant|continue|default|do|else|enum|event_t|extern|for|generic
    |global|goto|if|imaginary|inline|kernel|local|main|pipe|private|ptrdiff_t|read_only|read_write
    |register|restrict|return|sampler_t|signed|size_t|sizeof|static|struct|switch|typedef|uintptr_t
    |intptr_t|uniform|union|unsigned|void|volatile|while|write_only|queue_t|ndrange_t|clk_event_t
    |reserve_id_t|true|false|u?(char|short|int|long)\d*|(bool|half|float|double|quad)(\d+(x\d+)?)?
    |image\w*_t
    # macros
    |NULL|NAN|INFINITY|MAXFLOAT|HUGE_VALF?
    |(CLK?|M|FLT|DBL|HALF|FP|[SU]?CHAR|U?SHRT|U?INT|U?LONG|ATOMIC)_\w*
    # families of functions, and what implementations keep for themselves
    |(aliased|as|async|atom|atomic|cl|clock_read|convert|enqueue|fast|fq|get|half|intel|kernel_exec|native|read)_\w*
    |(sub_group|vload|vstore|wait_group|work_group|write)_\w*|v(load|store)\w*|(__|_[A-Z])\w*
    # functions
    |abs(_diff)?|a?(cos|sin|tan)(h|pi)?|atan2(pi)?|add_sat|all|any|barrier|bitselect|cbrt|ceil|clamp
    |clz|copysign|cross|ctz|degrees|distance|dot|erfc?|exp(2|10|m1)?|fabs|fdim|floor|fma|fmax|fmin
    |fmod|fract|frexp|hadd|hypot|ilogb|is(equal|finite|greater|greaterequal|inf|less|lessequal)
    |is(lessgreater|nan|normal|notequal|ordered|unordered)|ldexp|length|lgamma(_r)?|log(2|10|1p|b)?
    |mad(24|_hi|_sat)?|max|maxmag|mem_fence|min|minmag|mix|modf|mul(24|_hi)|nan|nextafter|normalize
    |popcount|pow[nr]?|prefetch|printf|radians|remainder|remquo|rhadd|rint|rootn|rotate|round|rsqrt
    |select|shuffle2?|sign|signbit|sincos|smoothstep|sqrt|step|sub_sat|tgamma|trunc|upsample
    |to_(global|local|private)|vec_step
    """,
    re.VERBOSE,
)
