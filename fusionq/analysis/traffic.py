"""Bytes that kernels must move: the sizes of the footprints that access relations give.

What a launch reads is the union of the elements that its submissions read, without those that an
earlier submission of the launch has certainly written; what it writes is the union of what they
write.  Caches may save less than that between launches, and never more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import islpy as isl

from fusionq.analysis.kernel_accesses import Access
from fusionq.analysis.list_analysis import ListAnalysis, bounds_box
from fusionq.analysis.submission import ArrayArgument
from fusionq.base.frozen import dataclass

_MOST_COUNTED = 1 << 16
"""Elements that are counted one by one where a set is no box."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of global memory; ``exact`` unless some access is only known to be inside a box."""

    read_bytes: int
    written_bytes: int
    exact: bool

    @property
    def bytes(self) -> int:
        """Both."""
        return self.read_bytes + self.written_bytes


def traffic(
    analysis: ListAnalysis, members: Sequence[int], promoted: Collection[tuple[int, int]] = ()
) -> Traffic:
    """What one launch of the submissions ``members`` moves, today's sizes put in; the memory
    ``promoted`` (alias group and view) is not in global memory."""
    exact = True
    read = written = 0
    groups: dict[int, list[tuple[int, Access]]] = {}
    for s in members:
        for access in analysis.accesses[s].accesses:
            place = analysis.shares(s, access)
            if (place.group, place.view) not in promoted:
                groups.setdefault(place.group, []).append((s, access))
    for uses in groups.values():
        reads: isl.Set | None = None
        writes: isl.Set | None = None
        certain: isl.Set | None = None
        """What submissions before the present one have certainly written."""
        present, own = uses[0][0], certain
        unit = 1
        for s, access in uses:
            if s != present:
                present, certain = s, _union(certain, own)
                own = None
            elements, unit, known = _elements(analysis, s, access)
            exact = exact and known
            if access.kind == "read":
                missing = elements if certain is None else elements.subtract(certain)
                reads = _union(reads, missing)
            else:
                writes = _union(writes, elements)
                if access.exact:
                    own = _union(own, elements)
        if reads is not None:
            count, counted = _count(reads)
            read, exact = read + count * unit, exact and counted
        if writes is not None:
            count, counted = _count(writes)
            written, exact = written + count * unit, exact and counted
    return Traffic(read, written, exact)


def _union(a: isl.Set | None, b: isl.Set | None) -> isl.Set | None:
    return b if a is None else a if b is None else a.union(b).coalesce()


def _elements(analysis: ListAnalysis, submission: int, access: Access) -> tuple[isl.Set, int, bool]:
    """The elements (or addresses) that an access touches with today's sizes, the bytes of each,
    and whether they are known."""
    argument = analysis.submissions[submission].arguments[
        analysis.argument_index(submission, access.array)
    ]
    assert isinstance(argument, ArrayArgument)
    symbols = analysis.symbols
    relation = analysis.elements(submission, access)
    lie = analysis.shares(submission, access).by_address
    if relation is None:
        unit = argument.dtype.nbytes
        if lie is not None:  # all addresses from the first to the last
            unit //= lie.width
            reach = [(n - 1) * st for n, st in zip(argument.shape, lie.strides, strict=True)]
            low = lie.offset + sum(r for r in reach if r < 0)
            high = lie.offset + sum(r for r in reach if r > 0) + lie.width
            return isl.Set(f"{{ [b] : {low} <= b < {high} }}"), unit, False
        box = bounds_box([symbols.size(n) for n in argument.shape], symbols)
        return _present(analysis, box), unit, False
    unit = argument.dtype.nbytes // (1 if lie is None else lie.width)
    return _present(analysis, relation.range()), unit, access.exact


def _present(analysis: ListAnalysis, elements: isl.Set) -> isl.Set:
    """``elements`` with today's values for the symbols."""
    here = elements.intersect_params(analysis.symbols.point)
    return here.project_out(isl.dim_type.param, 0, here.dim(isl.dim_type.param)).coalesce()


def _count(elements: isl.Set) -> tuple[int, bool]:
    """How many there are; or in the boxes around them, where they are many and no boxes."""
    total, exact = 0, True
    for piece in elements.make_disjoint().coalesce().get_basic_sets():
        count, known = _count_piece(isl.Set.from_basic_set(piece))
        total, exact = total + count, exact and known
    return total, exact


def _count_piece(piece: isl.Set) -> tuple[int, bool]:
    box, size = isl.Set.universe(piece.get_space()), 1
    for dim in range(piece.dim(isl.dim_type.set)):
        low, high = (
            int(bound.max_val().to_python()) for bound in (piece.dim_min(dim), piece.dim_max(dim))
        )
        stride = int(piece.get_stride(dim).to_python())
        name = ", ".join(f"d{n}" for n in range(piece.dim(isl.dim_type.set)))
        box = box.intersect(
            isl.Set(
                f"{{ [{name}] : {low} <= d{dim} <= {high} and (d{dim} - {low}) mod {stride} = 0 }}"
            )
        )
        size *= (high - low) // stride + 1
    if box.is_subset(piece):
        return size, True
    if size <= _MOST_COUNTED:
        return int(piece.count_val().to_python()), True
    return size, False
