"""Which arrays a submission alone stores to as a whole, and for which others of its structure."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.isl_operations import CHECK_LOST, ISL_LOCK, PlanOperations, plan_operations
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.stored_whole import WholeStores, only_stored, stored_whole
from fusionq.analysis.submission import Submission
from fusionq.analysis.validity import validity_of
from fusionq.planning.specialise import values_of, varying_since

OPERATIONS = 400_000
"""That the proofs may take: 0.1 s, which a kernel takes that has been read within a few ms."""


def whole_stores(submission: Submission, known: Sequence[WholeStores] = ()) -> WholeStores:
    """What is proved of ``submission``; ``known``: what was of others of its structure."""
    if not only_stored(submission.ir):
        return WholeStores(None, frozenset())
    allowed = PlanOperations(lost=CHECK_LOST, operations=OPERATIONS)
    with ISL_LOCK, plan_operations(allowed):
        before = [one.validity for one in known if one.validity is not None]
        varying = values_of(varying_since(before, [submission], 1), [submission])
        analysis = analyse([submission], varying=varying)
        found = stored_whole(analysis)
        return WholeStores(validity_of(analysis), found)
