"""Loops that have to run, since what their bodies bind is read after them."""

from __future__ import annotations

import islpy as isl

from fusionq.analysis.isl_operations import TooManyOperations
from fusionq.analysis.kernel_accesses import BindingLoop
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.base.errors import ArgumentError


def check_binding_loops(analysis: ListAnalysis) -> None:
    """Raise ArgumentError if a loop of the only submission that has to run may not: in Python the
    name would be unbound after it.  What cannot be decided is refused."""
    (submission,) = analysis.submissions
    for loop in analysis.accesses[0].binding_loops:
        why = _may_be_idle(analysis, loop)
        if why is None:
            continue
        raise ArgumentError(
            f"{submission.ir.name}: {loop.name!r} is read after a loop that alone binds it, and "
            f"{why}\n"
            f"  in the kernel at {loop.span}: {loop.span.text}\n"
            f"  submitted at {submission.span}: {submission.span.text}\n"
            f"  Give {loop.name} a value before the loop, or read it only where the loop has run; "
            "or submit it with sizes and numbers for which the loop runs."
        )


def _may_be_idle(analysis: ListAnalysis, loop: BindingLoop) -> str | None:
    """How a loop may have no iteration; None if it has one for each work-item that reaches it."""
    if loop.idle is None:
        return "whether that runs does not follow from sizes, ids and numbers that are passed"
    try:
        if analysis.proofs.is_empty(loop.idle):
            return None
        ndim = analysis.accesses[0].ndim
        here = loop.idle.intersect_params(analysis.symbols.point)
        items = here.project_out(isl.dim_type.set, ndim, here.dim(isl.dim_type.set) - ndim)
        item = items.sample_point()
        ids = [str(item.get_coordinate_val(isl.dim_type.set, d)) for d in range(ndim)]
    except TooManyOperations as error:
        return f"whether that runs is not known: {error}"
    return f"that loop does not run: work-item ({', '.join(ids)}) finds its range empty"
