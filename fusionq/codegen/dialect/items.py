"""The vocabulary of work-items: where one stands, and what time it is there."""

from __future__ import annotations

from typing import Protocol

from fusionq.ir.nodes import Query


class WorkItems(Protocol):
    """Ids and ranges.

    In CUDA C++ the global id is ``(unsigned long long)blockIdx.x * blockDim.x + threadIdx.x``, in
    parentheses, since a product of two ``unsigned`` has 32 bits; a sub-group is a warp; the clock
    is ``%globaltimer``, the cycle counter ``clock64()``.
    """

    def query(self, query: Query, dim: int, ndim: int) -> str:
        """An id or a range in dimension ``dim`` of ``ndim`` (SYCL order: the last is fastest): an
        expression that may be the operand of a cast.  Its type is an integer that holds it."""

    def device_function(self, function: str, *arguments: str) -> str:
        """The value of one of ``ir.functions.DEVICE_FUNCTIONS``, in parentheses where it is more
        than a cast of a call."""
