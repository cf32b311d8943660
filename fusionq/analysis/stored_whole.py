"""Arrays of which a submission stores every element, and loads none."""

from __future__ import annotations

from typing import NamedTuple

import islpy as isl

from fusionq.analysis.bounds import touched
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.list_analysis import ListAnalysis, bounds_box
from fusionq.analysis.submission import ArrayArgument
from fusionq.analysis.validity import Validity
from fusionq.ir.nodes import Atomic, Kernel
from fusionq.ir.walk import loaded_arrays, statements, stored_arrays


class WholeStores(NamedTuple):
    """What was found of a submission: the ``arrays``, counted among its array arguments, and for
    which sizes and scalars that is so, None for all."""

    validity: Validity | None
    arrays: frozenset[int]


def only_stored(kernel: Kernel) -> frozenset[str]:
    """The arrays that ``kernel`` stores to and does nothing else with."""
    combined = {s.array for s in statements(kernel.body) if isinstance(s, Atomic)}
    return frozenset(stored_arrays(kernel.body) - loaded_arrays(kernel.body) - combined)


def stored_whole(analysis: ListAnalysis) -> frozenset[int]:
    """Which of the array arguments of the only submission, counted among these, it only stores to,
    each element for certain; for today's sizes and scalars, and others that the proofs say."""
    (submission,) = analysis.submissions
    names = only_stored(submission.ir)
    arrays = [a for a in submission.arguments if isinstance(a, ArrayArgument)]
    return frozenset(
        k
        for k, argument in enumerate(arrays)
        if argument.name in names and _is_stored_whole(analysis, argument)
    )


def _is_stored_whole(analysis: ListAnalysis, argument: ArrayArgument) -> bool:
    stores = [
        (access.instances, access.indices)
        for access in analysis.accesses[0].accesses
        if access.array == argument.name and access.happens and access.indices is not None
    ]
    if not stores:
        return False

    def left() -> isl.Set:
        extents = [analysis.symbols.size(n) for n in argument.shape]
        elements = bounds_box(extents, analysis.symbols)
        for instances, indices in stores:
            elements = elements.subtract(touched(instances, indices).range())
        return elements

    try:
        return analysis.proofs.is_empty(answered(left))
    except TooManyOperations:
        return False
