"""Is an element stored by one work-item at most, of all that a fused kernel's submissions do?"""

from __future__ import annotations

from fusionq.analysis.footprint import item_elements, shared_by_owners, union
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.item_space import Mode
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.ir.nodes import Atomic


def is_stored_by_one(analysis: ListAnalysis, group: int, mode: Mode) -> bool:
    """Whether no two work-items of the kernel that all submissions become store to one element of
    a memory, which one view of it has; False where that is not known."""
    stores = [
        (s, access)
        for s, accesses in enumerate(analysis.accesses)
        for access in accesses.accesses
        if access.kind == "write" and analysis.shares(s, access).group == group
    ]
    for s, access in stores:
        is_known = access.indices is not None and analysis.shares(s, access).by_address is None
        if not is_known or isinstance(access.node, Atomic):
            return False

    def found() -> bool:
        elements = union([item_elements(analysis, use, mode) for use in stores])
        return not shared_by_owners(analysis, elements)

    try:
        return bool(stores) and answered(found, questions=20)
    except TooManyOperations:
        return False
