"""What a submission alone has to be for ``submit`` to take it."""

from __future__ import annotations

from collections.abc import Sequence

from fusionq.analysis.binding_loops import check_binding_loops
from fusionq.analysis.bounds import check_bounds
from fusionq.analysis.convergence import check_convergence
from fusionq.analysis.isl_operations import CHECK_LOST, ISL_LOCK, PlanOperations, plan_operations
from fusionq.analysis.list_analysis import KernelsRead, analyse
from fusionq.analysis.submission import Submission
from fusionq.analysis.validity import Validity, validity_of
from fusionq.planning.flags import check_flags
from fusionq.planning.specialise import values_of, varying_since


def check_submission(submission: Submission, known: Sequence[Validity] = ()) -> Validity:
    """Raise ArgumentError if an index provably exceeds an extent, KernelLanguageError if a barrier
    is provably missed, PromotionConflict if flags contradict each other.

    Returns for which submissions of the same structure the same is known to be right; ``known``
    are those for which that was known before.
    """
    check_flags(submission)
    with ISL_LOCK, plan_operations(PlanOperations(lost=CHECK_LOST)):
        varying = values_of(varying_since(known, [submission], 1), [submission])
        analysis = analyse([submission], read=KernelsRead(own_arrays=True), varying=varying)
        check_bounds(analysis)
        check_binding_loops(analysis)
        check_convergence(analysis, 0)
        return validity_of(analysis, check=True)
