"""All that planning asks about a list of submissions: accesses, aliasing, element relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from fusionq.analysis.access import Access, KernelAccesses, KernelShape, read_accesses
from fusionq.analysis.aliasing import Place, places
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.proof import Proofs
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.analysis.symbols import Symbols
from fusionq.ir.nodes import Kernel


@dataclass
class ListAnalysis:
    """The accesses of each submission, where each array argument lies, and the proofs made.

    ``pinned``: the symbols that a result rests on with their present value.
    """

    submissions: tuple[Submission, ...]
    shapes: tuple[KernelShape, ...]
    symbols: Symbols
    proofs: Proofs
    accesses: tuple[KernelAccesses, ...]
    place: dict[tuple[int, int], Place]
    pinned: set[str]

    def argument_index(self, submission: int, name: str) -> int:
        """The position of the argument called ``name``."""
        return self._positions[submission][name]

    def used_symbols(self, submission: int) -> frozenset[str]:
        """The symbols that some access of the submission depends on."""
        names = self.symbols.names
        used = set(self.accesses[submission].pinned)
        for access in self.accesses[submission].accesses:
            parts: list[isl.Set | isl.PwAff] = [access.instances, *(access.indices or ())]
            for part in parts:
                used.update(
                    name
                    for position, name in enumerate(names)
                    if part.involves_dims(isl.dim_type.param, position, 1)
                )
        return frozenset(used)

    def __post_init__(self) -> None:
        self._positions = [{a.name: k for k, a in enumerate(s.arguments)} for s in self.submissions]
        self.stays_inside: dict[tuple[object, ...], tuple[isl.Map, bool]] = {}
        """Answers of ``work_groups.keeps_inside``, with the relation that each is about."""
        self._elements: dict[tuple[int, tuple[object, ...]], isl.Map | None] = {}

    def shares(self, submission: int, access: Access) -> Place:
        """Where the array of ``access`` lies."""
        return self.place[submission, self.argument_index(submission, access.array)]

    def elements(self, submission: int, access: Access) -> isl.Map | None:
        """Instances to elements: indices, or addresses where the array's group needs them;
        None if unknown.  In-bounds elements only: others are the kernel's own error."""
        place = self.shares(submission, access)
        argument = self.submissions[submission].arguments[
            self.argument_index(submission, access.array)
        ]
        assert isinstance(argument, ArrayArgument)
        extents = tuple(self.symbols.size(n) for n in argument.shape)
        key = (id(access), (place.by_address, extents))
        if key not in self._elements:
            self._elements[key] = element_map(access, extents, place, self.symbols)
        return self._elements[key]

    def item_elements(self, submission: int, access: Access) -> isl.Map | None:
        """Work-item ids to elements."""
        elements = self.elements(submission, access)
        if elements is None:
            return None
        ndim = self.accesses[submission].ndim
        loops = elements.dim(isl.dim_type.in_) - ndim
        return elements.project_out(isl.dim_type.in_, ndim, loops).coalesce()


def element_map(
    access: Access, extents: Sequence[str], place: Place, symbols: Symbols
) -> isl.Map | None:
    """The relation from instances of ``access`` to elements or addresses."""
    if access.indices is None:
        return None
    relation = None
    for index in access.indices:
        one = isl.Map.from_pw_aff(index)
        relation = one if relation is None else relation.flat_range_product(one)
    assert relation is not None
    relation = relation.intersect_domain(access.instances).intersect_range(
        bounds_box(extents, symbols)
    )
    if place.by_address is None:
        return relation
    lie = place.by_address
    names = [f"e{d}" for d in range(len(extents))]
    terms = " + ".join(
        [str(lie.offset), *(f"{s}{n}" for s, n in zip(lie.strides, names, strict=True) if s)]
    ).replace("+ -", "- ")
    parameters = ", ".join(symbols.names)
    constraint = f"b = {terms}" if lie.width == 1 else f"{terms} <= b and b < {terms} + {lie.width}"
    address = isl.Map(f"[{parameters}] -> {{ [{', '.join(names)}] -> [b] : {constraint} }}")
    return relation.apply_range(address)


def bounds_box(extents: Sequence[str], symbols: Symbols) -> isl.Set:
    """All valid indices of an array with these extents, symbols or numbers."""
    names = [f"e{d}" for d in range(len(extents))]
    inside = " and ".join(f"0 <= {e} < {n}" for e, n in zip(names, extents, strict=True))
    return isl.Set(
        f"[{', '.join(symbols.names)}] -> {{ [{', '.join(names)}] : {inside or '1 = 1'} }}"
    )


def kernel_shape(submission: Submission, symbols: Symbols) -> KernelShape:
    """The submission's index space, extents and integer scalars as symbols."""
    extents: dict[tuple[str, int], str] = {}
    params: dict[str, str] = {}
    for argument in submission.arguments:
        if isinstance(argument, ArrayArgument):
            for dim, extent in enumerate(argument.shape):
                extents[argument.name, dim] = symbols.size(extent)
        elif isinstance(argument, ScalarArgument) and argument.type.is_integer:
            params[argument.name] = symbols.scalar(int(argument.value))
    return KernelShape(
        tuple(symbols.size(extent) for extent in global_range(submission)),
        local_range(submission),
        extents,
        params,
    )


def analyse(submissions: Sequence[Submission], own_arrays: bool = False) -> ListAnalysis:
    """Analyse ``submissions``; kernels that occur several times in the same shape once.

    ``own_arrays``: also the kernels' accesses to their private and local arrays.
    """
    symbols = Symbols()
    shapes = [kernel_shape(s, symbols) for s in submissions]
    known: dict[tuple[object, ...], tuple[Kernel, KernelAccesses]] = {}
    accesses = []
    for submission, shape in zip(submissions, shapes, strict=True):
        key = (
            id(submission.ir),
            shape.global_range,
            shape.local_range,
            tuple(shape.extents.items()),
            tuple(shape.params.items()),
        )
        if key not in known:
            known[key] = (submission.ir, read_accesses(submission.ir, shape, symbols, own_arrays))
        accesses.append(known[key][1])
    arrays = [
        (s, k)
        for s, submission in enumerate(submissions)
        for k, argument in enumerate(submission.arguments)
        if isinstance(argument, ArrayArgument)
    ]
    found = places([_array(submissions, s, k) for s, k in arrays])
    pinned = {name for a in accesses for name in a.pinned}
    return ListAnalysis(
        tuple(submissions),
        tuple(shapes),
        symbols,
        Proofs(symbols),
        tuple(accesses),
        dict(zip(arrays, found, strict=True)),
        pinned,
    )


def _array(submissions: Sequence[Submission], s: int, k: int) -> ArrayArgument:
    argument = submissions[s].arguments[k]
    assert isinstance(argument, ArrayArgument)
    return argument
