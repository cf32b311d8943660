"""Barriers and group functions that some work-items of a group provably miss."""

from __future__ import annotations

import islpy as isl

from fusionq.analysis.item_space import local_range, same_group
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.errors import KernelLanguageError


def check_convergence(analysis: ListAnalysis, submission: int) -> None:
    """Raise KernelLanguageError if a barrier is certainly reached by one work-item and not by
    another of the same group.  What depends on data is the kernel's own responsibility, as in
    SYCL (SYCL 2020, section 4.17.3)."""
    local = local_range(analysis.submissions[submission])
    if local is None:
        return
    symbols = analysis.symbols
    found = analysis.accesses[submission]
    for meeting in found.meetings:
        if not meeting.exact:
            continue
        here = meeting.instances.intersect_params(symbols.point)
        loops = here.dim(isl.dim_type.set) - found.ndim
        here = here.project_out(isl.dim_type.set, found.ndim, loops)
        extents = [symbols.values[n] for n in analysis.shapes[submission].global_range]
        names = [f"i{d}" for d in range(found.ndim)]
        inside = " and ".join(f"0 <= {i} < {n}" for i, n in zip(names, extents, strict=True))
        everyone = isl.Set(f"{{ [{', '.join(names)}] : {inside} }}")
        company = here.apply(same_group(symbols, local)).intersect(everyone)
        missing = company.subtract(here)
        if missing.is_empty():
            continue
        raise KernelLanguageError(
            f"{meeting.span}: some work-items of a work-group of {local} reach this barrier or "
            f"group function and others do not, which never ends: {meeting.span.text}\n"
            "  Move it out of the condition, or make the condition the same for the whole group."
        )
