"""OpenCL C 3.0 (Khronos, The OpenCL C Specification, version 3.0)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fusionq.base.target import FloatMode
from fusionq.ir.nodes import Query, Space
from fusionq.ir.types import FLOAT16, FLOAT64, ScalarType

_TYPE_NAMES = {
    "bool": "bool", "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "float16": "half", "float32": "float", "float64": "double",
}  # fmt: skip

_QUERY_NAMES: dict[Query, str] = {
    "global_id": "get_global_id",
    "global_range": "get_global_size",
    "local_id": "get_local_id",
    "local_range": "get_local_size",
    "group_id": "get_group_id",
    "group_range": "get_num_groups",
}

_SPACE_QUALIFIERS: dict[Space, str] = {"global": "__global ", "local": "__local ", "private": ""}

_FUNCTION_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "gamma": "tgamma",
}  # fmt: skip
"""Where OpenCL C's name is not NumPy's."""

_FIRST_ITEM = "broadcast((uint)get_local_linear_id(), 0)"
"""The linear local id of a sub-group's first work-item.  ``get_sub_group_id()`` would do too, but
Intel's CPU compiler computes it anew in each turn of its loop over work-items."""

_GROUP_SIZE = "get_local_size(0) * get_local_size(1) * get_local_size(2)"

_DEVICE_FUNCTIONS = {
    "clock": "(long)clock_read_device()",  # cl_khr_kernel_clock
    # No part of OpenCL: Clang's, which Intel's CPU compiler makes one instruction.  The clock is a
    # call, for which vector registers have to be saved.
    "cycle_counter": "(long)__builtin_readcyclecounter()",
    "first_sub_group": f"(sub_group_{_FIRST_ITEM} == 0)",
    "first_sub_group_here": f"(sub_group_non_uniform_{_FIRST_ITEM} == 0)",  # …_subgroup_ballot
    "last_sub_group": f"(sub_group_{_FIRST_ITEM} + get_sub_group_size() == {_GROUP_SIZE})",
    # cl_khr_subgroup_non_uniform_vote
    "sub_group_has_here": "sub_group_non_uniform_any((uint)get_local_linear_id() == (uint)({}))",
    "leads_sub_group": "(get_sub_group_local_id() == 0)",
}

_RESERVED = re.compile(
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


class OpenCLC:
    """See ``Dialect``."""

    kernel_qualifier = "__kernel void"
    function_qualifier = "static inline"
    restrict = "restrict"

    def type_name(self, type: ScalarType) -> str:
        return _TYPE_NAMES[type.name]

    def storage_name(self, type: ScalarType) -> str:
        return "uchar" if type.is_bool else _TYPE_NAMES[type.name]

    def aliased_type(self, type: ScalarType) -> tuple[str, str]:
        storage = self.storage_name(type)
        name = f"aliased_{storage}"
        return name, f"typedef {storage} __attribute__((may_alias)) {name};"

    def space_qualifier(self, space: Space) -> str:
        return _SPACE_QUALIFIERS[space]

    def work_item_query(self, query: Query, dim: int, ndim: int) -> str:
        return f"{_QUERY_NAMES[query]}({ndim - 1 - dim})"

    def function_name(self, function: str, type: ScalarType) -> str:
        return _FUNCTION_NAMES.get(function, function)

    def device_function(self, function: str, *arguments: str) -> str:
        return _DEVICE_FUNCTIONS[function].format(*arguments)

    def saturating_cast(self, target: ScalarType, source: ScalarType) -> str:
        return f"convert_{_TYPE_NAMES[target.name]}_sat_rtz"

    def infinity(self, type: ScalarType) -> str:
        return "INFINITY" if type.name == "float32" else f"({self.type_name(type)})INFINITY"

    def not_a_number(self, type: ScalarType) -> str:
        return "NAN" if type.name == "float32" else f"({self.type_name(type)})NAN"

    def loop_in_order(self) -> list[str]:
        # Intel's CPU compiler vectorises loops in its scalar version of a kernel, which runs the
        # work-items that do not fill a vector, and adds up in another order there.
        return ["#pragma clang loop vectorize(disable)"]

    def is_reserved(self, identifier: str) -> bool:
        return _RESERVED.fullmatch(identifier) is not None

    def prologue(
        self, types: Iterable[ScalarType], fp: FloatMode, functions: Iterable[str] = ()
    ) -> list[str]:
        used = set(types)
        lines = []
        if "clock" in functions:
            lines.append("#pragma OPENCL EXTENSION cl_khr_kernel_clock : enable")
        if FLOAT16 in used:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp16 : enable")
        if FLOAT64 in used:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        lines.append(f"#pragma OPENCL FP_CONTRACT {'OFF' if fp == 'strict' else 'ON'}")
        return lines

    def build_options(self, fp: FloatMode) -> str:
        """``strict``: every operation rounds once, division and square root correctly; no
        contraction, denormals kept.  ``fast`` also lets ``a * b + c`` become one operation
        (``FP_CONTRACT ON``, ``-cl-mad-enable``); NaN, infinities, signed zeros and the order of
        operations stay as written."""
        options = "-cl-std=CL3.0 -cl-fp32-correctly-rounded-divide-sqrt"
        return options if fp == "strict" else f"{options} -cl-mad-enable"


OPENCL_C = OpenCLC()
