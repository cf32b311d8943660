"""Is a range as long as the product of some extents, so that its linear ids are those of rows?"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.submission import ArrayArgument


def are_rows(analysis: ListAnalysis, places: Sequence[tuple[int, int]]) -> bool:
    """Of one submission over a linear range: whether its length is the product of the extents at
    ``places`` (an array argument, a dimension), for any first one and the others of today."""
    symbols, submission = analysis.symbols, analysis.submissions[0]
    names: list[str] = []
    factor = 1
    for number, (k, dim) in enumerate(places):
        array = submission.arguments[k]
        assert isinstance(array, ArrayArgument)
        names.append(symbols.size(array.shape[dim]))
        if number > 0:
            factor *= array.shape[dim]
            analysis.pinned.add(names[-1])
    whole = symbols.size(global_range(submission)[0])
    differ = isl.Set(f"[{', '.join(symbols.names)}] -> {{ : {whole} != {factor} * {names[0]} }}")
    return analysis.proofs.is_empty(differ)
