"""Barriers and group functions that some work-items of a group provably miss."""

from __future__ import annotations

from collections.abc import Callable

import islpy as isl

from fusionq.analysis.counterexample import counterexamples
from fusionq.analysis.item_relations import same_group
from fusionq.analysis.item_space import local_range
from fusionq.analysis.list_analysis import ListAnalysis, bounds_box
from fusionq.base.errors import KernelLanguageError


def check_convergence(analysis: ListAnalysis, submission: int) -> None:
    """Raise KernelLanguageError if a barrier is certainly reached by one work-item and not by
    another of the same group.  What depends on data is the kernel's own responsibility, as in
    SYCL (SYCL 2020, section 4.17.3)."""
    local = local_range(analysis.submissions[submission])
    if local is None:
        return
    symbols = analysis.symbols
    found = analysis.accesses[submission]
    everyone = bounds_box(analysis.shapes[submission].global_range, symbols)
    for meeting in found.meetings:
        if not meeting.exact:
            continue
        loops = meeting.instances.dim(isl.dim_type.set) - found.ndim
        arriving = meeting.instances.project_out(isl.dim_type.set, found.ndim, loops)
        size = meeting.sub_group
        # A sub-group is a piece of the last dimension: a small group.
        together = local if size is None else (*(1 for _ in local[1:]), size)
        company = same_group(symbols, together).intersect_range(everyone)
        if counterexamples(analysis, _missing(arriving, company)) is None:
            continue
        raise KernelLanguageError(
            f"{meeting.span}: some work-items of a {'sub' if size else 'work'}-group of "
            f"{size or local} reach this barrier or group function and others do not, which never "
            f"ends: {meeting.span.text}\n"
            "  Move it out of the condition, or make the condition the same for the whole group."
        )


def _missing(arriving: isl.Set, company: isl.Map) -> Callable[[isl.Set], isl.Set]:
    """The work-items that are not ``arriving`` though some of their ``company`` are, for some
    parameter values."""

    def missing(params: isl.Set) -> isl.Set:
        here = arriving.intersect_params(params)
        return here.apply(company).subtract(here)

    return missing
