"""OpenCL C's work-items: ids, ranges, sub-groups, clocks.

Source: Khronos, The OpenCL C Specification 3.0, sections 6.15.1 (work-item functions) and 6.15.19
(sub-group functions), and the extensions named below.
"""

from __future__ import annotations

from fusionq.ir.nodes import Query

_QUERY_NAMES: dict[Query, str] = {
    "global_id": "get_global_id",
    "global_range": "get_global_size",
    "local_id": "get_local_id",
    "local_range": "get_local_size",
    "group_id": "get_group_id",
    "group_range": "get_num_groups",
}

UNKNOWN_ZERO = "(get_work_dim() >> 2)"
"""0, which compilers do not know."""

LINEAR_LOCAL_ID = "get_local_linear_id()"
LINEAR_LOCAL_RANGE = "get_local_size(0) * get_local_size(1) * get_local_size(2)"

_FIRST_ITEM = "broadcast((uint)get_local_linear_id(), 0)"
"""The linear local id of a sub-group's first work-item.  ``get_sub_group_id()`` would do too, but
Intel's CPU compiler computes it anew in each turn of its loop over work-items."""

_DEVICE_FUNCTIONS = {
    "clock": "(long)clock_read_device()",  # cl_khr_kernel_clock
    # No part of OpenCL: Clang's, which Intel's CPU compiler makes one instruction.  The clock is a
    # call, for which vector registers have to be saved.
    "cycle_counter": "(long)__builtin_readcyclecounter()",
    "first_sub_group": f"(sub_group_{_FIRST_ITEM} == 0)",
    "first_sub_group_here": f"(sub_group_non_uniform_{_FIRST_ITEM} == 0)",  # …_subgroup_ballot
    "last_sub_group": f"(sub_group_{_FIRST_ITEM} + get_sub_group_size() == {LINEAR_LOCAL_RANGE})",
    # cl_khr_subgroup_non_uniform_vote
    "sub_group_has_here": "sub_group_non_uniform_any((uint)get_local_linear_id() == (uint)({}))",
    "leads_sub_group": "(get_sub_group_local_id() == 0)",
    # Without the exclusive or with a 0 that it does not know, Intel's CPU compiler compares an id
    # and a place where their difference, which is one for all lanes, is compared.
    "first_of_sub_group": f"(({{}} - (long)get_sub_group_local_id()) ^ (long){UNKNOWN_ZERO})",
    "hidden": f"(({{}}) ^ (long){UNKNOWN_ZERO})",
    "sub_group_local_id": "(long)get_sub_group_local_id()",
    "sub_group_local_range": "(long)get_sub_group_size()",
}


class OpenCLWorkItems:
    """See ``WorkItems``."""

    def query(self, query: Query, dim: int, ndim: int) -> str:
        return f"{_QUERY_NAMES[query]}({ndim - 1 - dim})"

    def device_function(self, function: str, *arguments: str) -> str:
        return _DEVICE_FUNCTIONS[function].format(*arguments)
