"""Has a range so many times as many work-items as another has work-groups?"""

from __future__ import annotations

import islpy as isl

from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.list_analysis import ListAnalysis


def are_items_of_groups(analysis: ListAnalysis, each: int) -> bool:
    """Of two submissions, the first over work-groups that are rows, the second over a linear range:
    whether that has ``each`` work-items for each work-group."""
    symbols = analysis.symbols
    host, items = (global_range(s) for s in analysis.submissions)
    local = local_range(analysis.submissions[0])
    assert local is not None and len(items) == 1
    lanes, count = local[-1], symbols.size(items[0])
    if len(host) == 1:
        differ = [f"{lanes} * {count} != {each} * {symbols.size(host[0])}"]
    else:
        differ = [
            f"{count} != {each} * {symbols.size(host[0])}", f"{symbols.size(host[1])} != {lanes}"
        ]  # fmt: skip
    names = ", ".join(symbols.names)
    unlike = isl.Set(f"[{names}] -> {{ : {' or '.join(differ)} }}")
    return analysis.proofs.is_empty(unlike)
