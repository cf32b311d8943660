"""Has a range so many times as many work-items, or as many rows, as another has work-groups?"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.submission import ArrayArgument


def are_items_of_groups(analysis: ListAnalysis, each: int, alone: bool) -> bool:
    """Of two submissions, the first over work-groups that are rows, the second over a linear range:
    whether that has ``each`` work-items for each work-group, of which there is one if ``alone``."""
    (items,) = global_range(analysis.submissions[1])
    differ = _other_groups(analysis, items, each)
    if alone:
        differ += [f"{analysis.symbols.size(items)} != {each}"]
    return _is_empty(analysis, differ)


def are_rows_of_groups(
    analysis: ListAnalysis, inner: Sequence[tuple[int, int]], whole: Sequence[tuple[int, int]]
) -> bool:
    """Of two submissions, the first over work-groups that are rows: whether the second, over a
    plain range, has a first id for each work-group, and the extents at ``inner`` (an array
    argument, a dimension) behind that.  ``whole``: all extents of the rows of which the second has
    linear ids."""
    symbols, submission = analysis.symbols, analysis.submissions[1]

    def extent(k: int, dim: int) -> int:
        array = submission.arguments[k]
        assert isinstance(array, ArrayArgument)
        return array.shape[dim]

    if whole:
        return _is_empty(analysis, _other_groups(analysis, extent(*whole[0]), 1))
    first, *others = global_range(submission)
    differ = _other_groups(analysis, first, 1)
    differ += [
        f"{symbols.size(size)} != {symbols.size(extent(k, dim))}"
        for size, (k, dim) in zip(others, inner, strict=True)
    ]
    return _is_empty(analysis, differ)


def _other_groups(analysis: ListAnalysis, count: int, each: int) -> list[str]:
    """When the first submission has another number of work-groups than ``count`` over ``each``."""
    symbols, host = analysis.symbols, global_range(analysis.submissions[0])
    local = local_range(analysis.submissions[0])
    assert local is not None
    lanes, name = local[-1], symbols.size(count)
    if len(host) == 1:
        return [f"{lanes} * {name} != {each} * {symbols.size(host[0])}"]
    return [f"{name} != {each} * {symbols.size(host[0])}", f"{symbols.size(host[1])} != {lanes}"]


def _is_empty(analysis: ListAnalysis, differ: Sequence[str]) -> bool:
    names = ", ".join(analysis.symbols.names)
    return analysis.proofs.is_empty(isl.Set(f"[{names}] -> {{ : {' or '.join(differ)} }}"))
