"""Do the work-items of a submission know nothing of each other's elements?"""

from __future__ import annotations

from fusionq.analysis.footprint import item_elements, shared_by_owners, union
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.ir.nodes import Atomic


def are_independent(analysis: ListAnalysis) -> bool:
    """Of one submission: whether each element that a work-item stores is touched by no other one,
    so that they may be done in any order; False where that is not known."""
    accesses = analysis.accesses[0].accesses
    group_of = {k: analysis.shares(0, access).group for k, access in enumerate(accesses)}
    written = {group_of[k] for k, access in enumerate(accesses) if access.kind == "write"}

    def found() -> bool:
        for group in sorted(written):
            uses = [access for k, access in enumerate(accesses) if group_of[k] == group]
            for access in uses:
                is_known = access.indices is not None and (
                    analysis.shares(0, access).by_address is None
                )
                if not is_known or isinstance(access.node, Atomic):
                    return False
            elements = union([item_elements(analysis, (0, access), "ids") for access in uses])
            if shared_by_owners(analysis, elements):
                return False
        return True

    try:
        return answered(found, questions=20)
    except TooManyOperations:
        return False
