"""The kernels that combine the partial results of reductions: a work-group for each stretch."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeAlias

from fusionq.base.call_site import argument_labels
from fusionq.base.span import Span
from fusionq.frontend.callees import Callee
from fusionq.frontend.kernel import KernelFunction
from fusionq.ir.nodes import GroupOp
from fusionq.language.item import NdItem
from fusionq.language.joint import joint_reduce
from fusionq.submission.reducing_kernel import partial_results_of

Array: TypeAlias = Any
"""An argument that is an array in the kernel."""

STRETCH = 4096
"""Neighbouring partial results that one work-group combines."""

MOST_AT_ONCE = 65536
"""Partial results that one work-group combines by itself."""

WORK_GROUP = 256
"""Work-items of these kernels' work-groups."""


class CombiningKernel(KernelFunction):
    """A kernel that stores in its first argument what it makes of the second, partial results of
    the reduction at a ``position`` of a call, whose kernel has the parameters ``called``.
    ``level``: whether the first argument are partial results, too."""

    def __init__(
        self, function: Any, called: tuple[str, ...], position: int, level: bool = False
    ) -> None:
        assert isinstance(function, FunctionType)
        super().__init__(Callee(function))
        self._called, self._position, self._level = called, position, level

    def labels(self, span: Span, names: tuple[str, ...]) -> tuple[str, ...]:
        """See ``KernelFunction``."""
        label = argument_labels(span, self._called)[self._position]
        partial = partial_results_of(label)
        return partial if self._level else label, partial


def combine_stretches(op: GroupOp, called: tuple[str, ...], position: int) -> CombiningKernel:
    """The kernel that combines each ``STRETCH`` of partial results to one."""

    def combine_partial_results(item: NdItem, combined: Array, partial_results: Array) -> None:
        group = item.get_group()
        first = group.get_group_id(0) * STRETCH
        last = min(first + STRETCH, partial_results.shape[0])
        total = joint_reduce(group, partial_results[first:last], op)
        if item.get_local_id(0) == 0:
            combined[group.get_group_id(0)] = total

    return CombiningKernel(combine_partial_results, called, position, True)


def combine_all(
    op: GroupOp, initialize: bool, called: tuple[str, ...], position: int
) -> CombiningKernel:
    """The kernel that combines partial results to the result of a reduction."""

    def initialize_result(item: NdItem, result: Array, partial_results: Array) -> None:
        total = joint_reduce(item.get_group(), partial_results, op)
        if item.get_local_id(0) == 0:
            result[0] = total

    def combine_result(item: NdItem, result: Array, partial_results: Array) -> None:
        present = partial_results.dtype.type(result[0])
        total = joint_reduce(item.get_group(), partial_results, op, present)
        if item.get_local_id(0) == 0:
            result[0] = total

    return CombiningKernel(
        initialize_result if initialize else combine_result, called, position
    )
