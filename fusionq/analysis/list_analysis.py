"""All that planning asks about a list of submissions: accesses, aliasing, element relations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import islpy as isl

from fusionq.analysis.aliasing import Place, ViewPlace, places
from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.isl_texts import map_of, set_of
from fusionq.analysis.item_space import global_range, local_range
from fusionq.analysis.kept_readings import known_accesses
from fusionq.analysis.kernel_accesses import Access, KernelAccesses, KernelShape
from fusionq.analysis.proof import Proofs
from fusionq.analysis.readings import Answer, Readings
from fusionq.analysis.submission import ArrayArgument, ScalarArgument, Submission
from fusionq.analysis.symbol_sources import SymbolSources, symbol_sources
from fusionq.analysis.symbols import Symbols

T = TypeVar("T")

MOST_VERSIONS = 24
"""Values of pinned symbols for which a kernel is read.  Each pair of them is a question of its own,
some milliseconds: a sorting network of 78 submissions took 16 s of planning, and 210 would minutes.
What other values access is not analysable."""


@dataclass
class KernelsRead:
    """What is read of some submissions' kernels.  ``own_arrays``: also their accesses to their
    private and local arrays."""

    own_arrays: bool = False
    readings: Readings = field(default_factory=Readings)
    accesses: tuple[KernelAccesses, ...] | None = None
    pinned: frozenset[str] = frozenset()


@dataclass
class ListAnalysis:
    """The accesses of each submission, where each array argument lies, and the proofs made.

    Kernels are read when their accesses are first asked for.  ``pinned``: the symbols that a
    result rests on with their present value.
    """

    submissions: tuple[Submission, ...]
    shapes: tuple[KernelShape, ...]
    symbols: Symbols
    place: Mapping[tuple[int, int], Place]
    proofs: Proofs
    pinned: set[str] = field(default_factory=set)
    _read: KernelsRead = field(default_factory=KernelsRead)
    _sources: list[SymbolSources] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._positions = [{a.name: k for k, a in enumerate(s.arguments)} for s in self.submissions]

    def for_question(self) -> ListAnalysis:
        """The same analysis with no proofs made yet."""
        return replace(self, proofs=Proofs(self.symbols), pinned=set())

    @property
    def accesses(self) -> tuple[KernelAccesses, ...]:
        """The accesses of each submission."""
        read = self._read
        if read.accesses is None:
            read.accesses = _accesses(self.submissions, self.shapes, self.symbols, read)
            read.pinned = frozenset(name for a in read.accesses for name in a.pinned)
        self.pinned |= read.pinned
        return read.accesses

    @property
    def readings(self) -> Readings:
        """What is read of kernels for all analyses of a plan."""
        return self._read.readings

    @property
    def symbol_sources(self) -> SymbolSources:
        """Where the symbols of the submissions come from."""
        if not self._sources:  # one for all questions
            params = [shape.params for shape in self.shapes]
            self._sources.append(symbol_sources(self.submissions, params, self.symbols))
        return self._sources[0]

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """What ``find`` returns, which asks this analysis' proofs about what is in ``key`` only,
        sets and relations by the identity of their canonical objects; it is not asked again where
        the symbols have values for which that is the same."""
        used = self.proofs.used
        if key in used:
            return cast(T, used[key])
        symbols = self.symbols
        answers = self.readings.answers.setdefault((symbols.alike, key), [])
        rest_on = self.proofs.rest_on
        answer = next((one for one in answers if rest_on(one.conditions, one.today)), None)
        if answer is None:
            outer = self.proofs, self.pinned
            self.proofs, self.pinned = Proofs(symbols), set()
            try:
                value = find()
                proofs = self.proofs
                today = tuple((name, symbols.values[name]) for name in sorted(proofs.today))
                answer = Answer(value, tuple(proofs.conditions), frozenset(self.pinned), today)
            finally:
                self.proofs, self.pinned = outer
            answers.append(answer)
        self.proofs.add(answer.conditions)
        self.proofs.today.update(name for name, _ in answer.today)
        self.pinned |= answer.pinned
        used[key] = answer.value
        return cast(T, answer.value)

    def answered_once(
        self,
        key: Hashable,
        find: Callable[[], T],
        unknown: Callable[[str], T],
        questions: int = 1,
    ) -> T:
        """What ``find`` returns, which asks isl about that many ``questions`` (``answered``), about
        what is in ``key`` and today's values; what is ``unknown``, and why, where it takes too
        long, which is not tried again."""
        key = key, self.symbols.today
        too_hard = self.readings.too_hard.get(key)
        if too_hard is None:
            try:
                return answered(find, questions)
            except TooManyOperations as error:
                too_hard = str(error)
                if type(error) is TooManyOperations:  # others say what is left, not what it takes
                    self.readings.too_hard[key] = too_hard
        return unknown(too_hard)

    def never_happens(self, access: Access) -> bool:
        """Whether no work-item does ``access``."""
        instances = self.readings.canonical(access.instances)
        return self.once(("never", id(instances)), lambda: self.proofs.is_empty(instances))

    def argument_index(self, submission: int, name: str) -> int:
        """The position of the argument called ``name``."""
        return self._positions[submission][name]

    def used_symbols(
        self, submission: int, kinds: Sequence[str] = ("read", "write")
    ) -> frozenset[str]:
        """The symbols that some access of one of ``kinds`` of the submission depends on; none where
        its kernel was not read."""
        if self._read.accesses is None:
            return frozenset()
        own = self.accesses[submission]
        key = (id(own), tuple(kinds))
        known = self.readings.symbols
        if key not in known:
            known[key] = _used_symbols(own, kinds, self.symbols.names)
        return known[key]

    def shares(self, submission: int, access: Access) -> Place:
        """Where the array of ``access`` lies."""
        return self.place[submission, self.argument_index(submission, access.array)]

    def is_placed(self, submission: int, access: Access, group: int) -> bool:
        """Whether the array of ``access`` lies in a group; False, too, where that is left open."""
        place = self.place.get((submission, self.argument_index(submission, access.array)))
        return place is not None and place.group == group

    def lies(self, submission: int, access: Access) -> Hashable:
        """Equal for accesses in whose place the same elements are."""
        return self._lies(submission, access)[0]

    def elements(self, submission: int, access: Access) -> isl.Map | None:
        """Instances to elements: indices, or addresses where the array's group needs them;
        None if unknown.  In-bounds elements only: others are the kernel's own error."""
        key, extents, place = self._lies(submission, access)
        known = self.readings.elements
        if key not in known:
            known[key] = element_map(access, extents, place, self.symbols)
        return known[key]

    def item_elements(self, submission: int, access: Access) -> isl.Map | None:
        """Work-item ids to elements."""
        key, _, _ = self._lies(submission, access)
        known = self.readings.item_elements
        if key not in known:
            elements = self.elements(submission, access)
            if elements is not None:
                ndim = self.accesses[submission].ndim
                loops = elements.dim(isl.dim_type.in_) - ndim
                elements = elements.project_out(isl.dim_type.in_, ndim, loops).coalesce()
                elements = self.readings.canonical(elements)
            known[key] = elements
        return known[key]

    def items(self, submission: int, access: Access) -> isl.Set:
        """The work-items, by id, that may do ``access``."""
        known = self.readings.items
        if id(access) not in known:
            ndim = self.accesses[submission].ndim
            items = access.instances
            loops = items.dim(isl.dim_type.set) - ndim
            items = items.project_out(isl.dim_type.set, ndim, loops).coalesce()
            known[id(access)] = access, self.readings.canonical(items)
        return known[id(access)][1]

    def touched(self, submission: int, accesses: Sequence[Access]) -> isl.Set:
        """The elements (or addresses) that ``accesses`` to one memory may touch."""
        key = tuple([self._lies(submission, access)[0] for access in accesses])
        known = self.readings.touched
        if key not in known:
            whole: isl.Set | None = None
            for access in accesses:
                relation = self.elements(submission, access)
                if relation is None:
                    one = self._all_elements(submission, access)
                else:
                    one = relation.range()
                whole = one if whole is None else whole.union(one)
            assert whole is not None
            known[key] = self.readings.canonical(whole.coalesce())
        return known[key]

    def _all_elements(self, submission: int, access: Access) -> isl.Set:
        """All elements of the array of ``access``, whose index is not known."""
        _, extents, place = self._lies(submission, access)
        box = bounds_box(extents, self.symbols)
        lie = place.by_address
        return box if lie is None else box.apply(addresses(lie, self.symbols))

    def _lies(self, submission: int, access: Access) -> tuple[Hashable, tuple[str, ...], Place]:
        """What the elements of ``access`` depend on, as a key; its array's extents and place."""
        place = self.shares(submission, access)
        argument = self.submissions[submission].arguments[
            self.argument_index(submission, access.array)
        ]
        assert isinstance(argument, ArrayArgument)
        extents = tuple([self.symbols.size(n) for n in argument.shape])
        return (id(access), place.by_address, extents), extents, place


def _used_symbols(
    accesses: KernelAccesses, kinds: Sequence[str], names: Sequence[str]
) -> frozenset[str]:
    used = set(accesses.pinned)
    for access in accesses.accesses:
        if access.kind not in kinds:
            continue
        parts: list[isl.Set | isl.PwAff] = [access.instances, *(access.indices or ())]
        for part in parts:
            used.update(
                name
                for position, name in enumerate(names)
                if part.involves_dims(isl.dim_type.param, position, 1)
            )
    return frozenset(used)


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
    return relation.apply_range(addresses(place.by_address, symbols))


def addresses(lie: ViewPlace, symbols: Symbols) -> isl.Map:
    """The relation from the indices of a view to the addresses of its elements."""
    names = [f"e{d}" for d in range(len(lie.strides))]
    terms = " + ".join(
        [str(lie.offset), *(f"{s}{n}" for s, n in zip(lie.strides, names, strict=True) if s)]
    ).replace("+ -", "- ")
    parameters = ", ".join(symbols.names)
    constraint = f"b = {terms}" if lie.width == 1 else f"{terms} <= b and b < {terms} + {lie.width}"
    return map_of(f"[{parameters}] -> {{ [{', '.join(names)}] -> [b] : {constraint} }}")


def bounds_box(extents: Sequence[str], symbols: Symbols) -> isl.Set:
    """All valid indices of an array with these extents, symbols or numbers."""
    names = [f"e{d}" for d in range(len(extents))]
    inside = " and ".join(f"0 <= {e} < {n}" for e, n in zip(names, extents, strict=True))
    return set_of(
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


def analyse(
    submissions: Sequence[Submission],
    place: Mapping[tuple[int, int], Place] | None = None,
    read: KernelsRead | None = None,
    varying: frozenset[int] = frozenset(),
    for_all: bool = False,
) -> ListAnalysis:
    """The analysis of ``submissions``, whose array arguments lie at ``place`` (by submission and
    position), which is found out where it is not given; ``read``: what is read of the same kernels
    over the same sizes already; ``varying``, ``for_all``: see ``Symbols``."""
    symbols = Symbols(varying, for_all)
    shapes = tuple(kernel_shape(s, symbols) for s in submissions)
    if place is None:
        place = places_of(submissions)
    return ListAnalysis(
        tuple(submissions), shapes, symbols, place, Proofs(symbols), set(), read or KernelsRead()
    )


def _accesses(
    submissions: Sequence[Submission],
    shapes: Sequence[KernelShape],
    symbols: Symbols,
    read: KernelsRead,
) -> tuple[KernelAccesses, ...]:
    """Those of each submission; kernels that occur several times in the same shape are read
    once."""
    readings = read.readings
    bounds = tuple([symbols.bound(name) for name in symbols.names])
    alike = symbols.alike, bounds, symbols.varying_names, read.own_arrays
    accesses = []
    for submission, shape in zip(submissions, shapes, strict=True):
        key = (
            id(submission.ir),
            shape.global_range,
            shape.local_range,
            tuple(shape.extents.items()),
            tuple(shape.params.items()),
            alike,
        )
        known = readings.kernels.setdefault(key, (submission.ir, {}))[1]
        found = next(
            (
                one
                for pinned, one in known.items()
                if all(symbols.values[name] == value for name, value in pinned)
            ),
            None,
        )
        if found is None:
            found = known_accesses(submission.ir, shape, symbols, read.own_arrays)
            names: Iterable[str] = found.pinned
            values = tuple(sorted(symbols.values[name] for name in names))
            versions = readings.versions.setdefault(id(submission.ir), {()})
            if len(versions) <= MOST_VERSIONS:
                versions.add(values)
            elif values not in versions:
                found = known_accesses(submission.ir, shape, symbols, read.own_arrays, pins=False)
                names = shape.params.values()
            known[tuple((name, symbols.values[name]) for name in sorted(names))] = found
        accesses.append(found)
    return tuple(accesses)


def places_of(submissions: Sequence[Submission]) -> dict[tuple[int, int], Place]:
    """Where each array argument lies, by submission and position."""
    arrays = {
        (s, k): argument
        for s, submission in enumerate(submissions)
        for k, argument in enumerate(submission.arguments)
        if isinstance(argument, ArrayArgument)
    }
    return dict(zip(arrays, places(tuple(arrays.values())), strict=True))
