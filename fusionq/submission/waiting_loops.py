"""Loops without an end, and those that need progress of other work-items, which SYCL does not
promise, are refused."""

from __future__ import annotations

from fusionq.base.errors import KernelLanguageError
from fusionq.ir.nodes import Kernel
from fusionq.ir.waiting_loops import (
    endless_loops,
    loops_that_wait_for_other_items,
    retries_that_wait,
)


def refuse_waiting_loops(kernel: Kernel) -> None:
    for endless in endless_loops(kernel):
        raise KernelLanguageError(
            f"{endless.span}: in {kernel.name!r}: this loop has no end: its condition is always "
            f"true, and nothing leaves it\n    {endless.span.text}\n  Give it a condition, or "
            "leave it by break or return."
        )
    for loop, array in loops_that_wait_for_other_items(kernel):
        raise KernelLanguageError(
            f"{loop.span}: in {kernel.name!r}: this loop ends only when another work-item has "
            f"changed {array!r}\n    {loop.span.text}\n  SYCL does not promise that a work-item "
            "makes progress while others wait for it, so it need never end.  Submit two kernels, "
            "of which the first writes and the second reads, or meet at a group_barrier."
        )
    for loop, array in retries_that_wait(kernel):
        raise KernelLanguageError(
            f"{loop.span}: in {kernel.name!r}: this loop repeats a compare_exchange on {array!r} "
            "until another work-item has stored what it expects\n"
            f"    {loop.span.text}\n  SYCL does not promise that a work-item makes progress while "
            "others wait for it, so it need never end.  Try again with the value that was seen, "
            "which compare_exchange leaves in its PrivateArray; or submit two kernels."
        )
