"""Where the values of an analysis's symbols are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.submission import ArrayArgument
from fusionq.passes.sources import (
    ArgumentSource,
    ExtentSource,
    ParamSource,
    QueueSource,
    RangeSource,
)


def sources_of_symbols(analysis: ListAnalysis) -> dict[str, ParamSource]:
    """For each symbol an argument or range that has its value: the first."""
    symbols = analysis.symbols
    found: dict[str, ParamSource] = {}
    for s, submission in enumerate(analysis.submissions):
        for dim, extent in enumerate(global_range(submission)):
            found.setdefault(symbols.size(extent), RangeSource(s, dim))
        for k, argument in enumerate(submission.arguments):
            if isinstance(argument, ArrayArgument):
                for dim, extent in enumerate(argument.shape):
                    found.setdefault(symbols.size(extent), ExtentSource(s, k, dim))
            else:
                symbol = analysis.shapes[s].params.get(argument.name)
                if symbol is not None:
                    found.setdefault(symbol, ArgumentSource(s, k))
    return found


def of_members(
    source: ParamSource, members: Sequence[int] | Mapping[int, int]
) -> ParamSource:
    """A source in one of ``members``, given by its number among them, as one of the list; or the
    other way round."""
    match source:
        case ArgumentSource(s, k):
            return ArgumentSource(members[s], k)
        case RangeSource(s, dim):
            return RangeSource(members[s], dim)
        case ExtentSource(s, k, dim):
            return ExtentSource(members[s], k, dim)
        case QueueSource():
            return source
