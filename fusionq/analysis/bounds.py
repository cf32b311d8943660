"""Indices that provably leave their array."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import islpy as isl

from fusionq.analysis.counterexample import counterexamples
from fusionq.analysis.list_analysis import ListAnalysis, bounds_box
from fusionq.analysis.submission import ArrayArgument
from fusionq.base.errors import ArgumentError


def check_bounds(analysis: ListAnalysis) -> None:
    """Raise ArgumentError if an access of the only submission that certainly happens is outside
    its array.

    What cannot be decided passes: as in SYCL, it is the kernel's own responsibility.
    """
    (submission,) = analysis.submissions
    symbols = analysis.symbols
    own = {a.name: a for a in submission.ir.arrays}
    for access in analysis.accesses[0].accesses:
        if access.indices is None or not access.happens:
            continue
        declared = own.get(access.array)
        if declared is None:
            argument = submission.arguments[analysis.argument_index(0, access.array)]
            assert isinstance(argument, ArrayArgument)
            shape = argument.shape[:-1] if argument.is_complex else argument.shape
            what = f"array {argument.parameter_text!r} (argument `{argument.text}`, shape {shape})"
            parts = argument.is_complex
            extents = [symbols.size(n) for n in argument.shape]
            remedy = "Submit a smaller range, pass a larger array, or guard"
        else:
            parts = False
            what = f"the {declared.space} array {declared.name!r} (shape {declared.shape})"
            extents = [str(n) for n in declared.shape]  # the same for every size of the range
            remedy = "Make it larger, or guard"
        box = bounds_box(extents, symbols)
        outside = counterexamples(analysis, _outside(access.instances, access.indices, box))
        if outside is None:
            continue
        item, element = _example(outside, analysis.accesses[0].ndim, parts)
        if "-" in element:
            remedy = (
                "The element's number counts from the first one. An index counts from the end only "
                "where it is negative whatever the arguments are: write a.shape[0] - 1 for the "
                f"last element of an array a. {remedy}"
            )
        raise ArgumentError(
            f"{submission.ir.name}: {access.kind} outside {what}: work-item {item} "
            f"{access.kind}s element {element}\n"
            f"  in the kernel at {access.span}: {access.span.text}\n"
            f"  submitted at {submission.span}: {submission.span.text}\n"
            f"  {remedy} the access with an `if`."
        )


def touched(instances: isl.Set, indices: Sequence[isl.PwAff]) -> isl.Map:
    """The elements that ``instances`` touch."""
    elements = isl.Map.from_domain(instances)
    for index in indices:
        elements = elements.flat_range_product(isl.Map.from_pw_aff(index))
    return elements


def _outside(
    instances: isl.Set, indices: Sequence[isl.PwAff], box: isl.Set
) -> Callable[[isl.Set], isl.Map]:
    """The elements with ``indices`` that ``instances`` touch outside ``box``, for some parameter
    values."""

    def outside(params: isl.Set) -> isl.Map:
        return touched(instances.intersect_params(params), indices).subtract_range(box)

    return outside


def _example(outside: isl.Map, ndim: int, parts: bool) -> tuple[str, str]:
    """One work-item and the element it touches; ``parts``: it is a part of that, by the last
    index."""
    inputs, outputs = outside.dim(isl.dim_type.in_), outside.dim(isl.dim_type.out)
    point = outside.wrap().sample_point()

    def coordinate(position: int) -> str:
        return str(point.get_coordinate_val(isl.dim_type.set, position))

    item = ", ".join(coordinate(d) for d in range(ndim))
    element = ", ".join(coordinate(inputs + d) for d in range(outputs - parts))
    return f"({item})", f"[{element}]"
