"""The kernels that combine the partial results of reductions: a work-group for each stretch."""

from __future__ import annotations

from functools import lru_cache
from types import FunctionType
from typing import Any, TypeAlias

from fusionq.frontend.callees import Callee
from fusionq.frontend.kernel import KernelFunction
from fusionq.ir.nodes import GroupOp
from fusionq.language.item import NdItem
from fusionq.language.joint import joint_reduce

Array: TypeAlias = Any
"""An argument that is an array in the kernel."""

STRETCH = 4096
"""Neighbouring partial results that one work-group combines."""

MOST_AT_ONCE = 65536
"""Partial results that one work-group combines by itself."""

WORK_GROUP = 256
"""Work-items of these kernels' work-groups."""


@lru_cache(maxsize=None)  # as many as there are operations
def combine_stretches(op: GroupOp) -> KernelFunction:
    """The kernel that combines each ``STRETCH`` of partial results to one."""

    def combine_partial_results(item: NdItem, stretches: Array, partial_results: Array) -> None:
        group = item.get_group()
        first = group.get_group_id(0) * STRETCH
        last = min(first + STRETCH, partial_results.shape[0])
        combined = joint_reduce(group, partial_results[first:last], op)
        if item.get_local_id(0) == 0:
            stretches[group.get_group_id(0)] = combined

    return _kernel(combine_partial_results)


@lru_cache(maxsize=None)
def combine_all(op: GroupOp, initialize: bool) -> KernelFunction:
    """The kernel that combines partial results to the result of a reduction."""
    if initialize:

        def initialize_result(item: NdItem, result: Array, partial_results: Array) -> None:
            combined = joint_reduce(item.get_group(), partial_results, op)
            if item.get_local_id(0) == 0:
                result[0] = combined

        return _kernel(initialize_result)

    def combine_result(item: NdItem, result: Array, partial_results: Array) -> None:
        present = partial_results.dtype.type(result[0])
        combined = joint_reduce(item.get_group(), partial_results, op, present)
        if item.get_local_id(0) == 0:
            result[0] = combined

    return _kernel(combine_result)


def _kernel(function: Any) -> KernelFunction:
    assert isinstance(function, FunctionType)
    return KernelFunction(Callee(function))
