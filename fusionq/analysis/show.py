"""The integer sets of an analysis as text, for ``FUSIONQ_DEBUG=3``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.list_analysis import ListAnalysis


def analysis_text(analysis: ListAnalysis, found: Sequence[PairScope]) -> str:
    """The symbols with their present values; each access as a relation from work-items and loop
    dimensions to elements (or addresses, where views differ); each dependence as a relation from
    the producer's work-items to the consumer's, where it is more than ``ITEM``."""
    return "\n".join(_lines(analysis, found))


def _lines(analysis: ListAnalysis, found: Sequence[PairScope]) -> Iterator[str]:
    values = analysis.symbols.values
    yield f"symbols: {', '.join(f'{n} = {v}' for n, v in values.items()) or 'none'}"
    for s, submission in enumerate(analysis.submissions):
        yield f"[{s}] {submission.ir.name}"
        for access in analysis.accesses[s].accesses:
            certain = "" if access.exact else " (may happen)"
            elements = analysis.elements(s, access)
            where = "unknown element" if elements is None else str(elements)
            yield f"  {access.kind} {access.array}{certain}: {where}"
            yield f"    {access.span}  {access.span.text.strip()}"
    for d in found:
        yield f"[{d.producer}] → [{d.consumer}] {d.kind} {d.scope}: {d.reason}"
        if d.items is not None:
            yield f"    {d.items}"
