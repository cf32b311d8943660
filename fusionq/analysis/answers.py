"""What questions about the lists of one plan have been answered with, and when two are equal.

Two questions are equal if their submissions run the same kernels over the same ranges with arrays
of the same layouts, share memory in the same way, and their integer scalars are equal where those
of the other question are.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import field
from itertools import chain

from fusionq.analysis.aliasing import Place
from fusionq.analysis.item_space import global_range
from fusionq.analysis.list_analysis import KernelsRead, ListAnalysis
from fusionq.analysis.readings import Readings
from fusionq.analysis.serving import LARGEST, Serving
from fusionq.analysis.shared_memory import Memory, SharedMemory
from fusionq.analysis.submission import Argument, ArrayArgument, ScalarArgument, Submission
from fusionq.analysis.validity import ScalarPlace, Validity
from fusionq.base.frozen import dataclass
from fusionq.ir.nodes import Kernel
from fusionq.language.ranges import NdRange


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    value: object
    validity: Validity
    of_scalars: bool
    """Whether it depends on scalars for which values the answer holds."""
    serves: Serving
    """Whether the validity holds for members with these sizes and integer scalars (``numbers`` of
    their shapes)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A submission as far as answers depend on it: ``kind`` (kernel, range, layouts; equal numbers
    for equal ones), the memory of its array arguments, its integer scalars."""

    kind: int
    family: int
    """The kind but for the sizes."""
    pattern: int
    """The family and which of the sizes are equal."""
    sizes: tuple[int, ...]
    """The extents of the arrays and of the range."""
    different: tuple[int, ...]
    """Those, once each."""
    memory: tuple[Memory, ...]
    memory_number: int
    integers: tuple[int, ...]
    varying: frozenset[int]
    """The values of those that vary."""
    numbers: tuple[int, ...]
    """The sizes and the integers."""

    @property
    def form(self) -> Hashable:
        """Equal for submissions of one family in the same memory, whose sizes are ordered and whose
        integers are equal alike, and none of which vary; None where numbers are too large to be
        asked about in arrays."""
        if self.varying or any(abs(number) >= LARGEST for number in self.numbers):
            return None
        sizes, integers = self.sizes, self.integers
        order = tuple([sum([a < b for a in sizes]) for b in sizes])
        equal = tuple([integers.index(value) for value in integers])
        return self.family, self.memory, order, equal, tuple([size == 0 for size in sizes])


Structure = tuple[tuple[int, ...], tuple[int, ...], int, frozenset[int]]
"""The kinds of some submissions, which of their integer scalars are equal, where their arrays lie
(``SharedMemory``), and which scalars vary: equal where all questions about them are, but for
scalars' values."""


@dataclass
class Answers:
    """What questions about the lists of one plan have been answered with, for all of them: equal
    ``kernels``, ``kinds`` and ``families`` of their submissions have equal numbers."""

    readings: Readings = field(default_factory=Readings)
    kernels: dict[Kernel, int] = field(default_factory=dict)
    _numbers: dict[int, tuple[Kernel, int]] = field(default_factory=dict)
    kinds: dict[Hashable, int] = field(default_factory=dict)
    families: dict[Hashable, int] = field(default_factory=dict)
    patterns: dict[Hashable, int] = field(default_factory=dict)
    memory: SharedMemory = field(default_factory=SharedMemory)
    analyses: dict[Hashable, ListAnalysis] = field(default_factory=dict)
    read: dict[Hashable, KernelsRead] = field(default_factory=dict)
    found: dict[Hashable, list[KnownAnswer]] = field(default_factory=dict)

    def number(self, kernel: Kernel) -> int:
        """Equal for equal kernels, which lists of one plan make anew; compared once each."""
        known = self._numbers.get(id(kernel))
        if known is None:
            number = self.kernels.setdefault(kernel, len(self.kernels))
            known = self._numbers[id(kernel)] = kernel, number
        return known[1]

    def shape(
        self,
        s: int,
        submission: Submission,
        places: Mapping[tuple[int, int], Place],
        varying_scalars: Collection[ScalarPlace],
    ) -> Shape:
        """That of the ``s``-th submission of a list, whose arrays are at ``places``."""
        kinds, families = self.kinds, self.families
        of_user, *made = submission.fingerprint.split(" ", 1)
        # What is made of a user's kernel has a name that is its own in one list only.
        kernel = self.number(submission.ir) if made else None
        code = of_user, kernel, submission.signature, submission.ir.span
        layouts = tuple(_kind_of(argument) for argument in submission.arguments)
        kind = code, submission.range, layouts
        extents = global_range(submission)
        in_groups = isinstance(submission.range, NdRange)
        of_range = submission.range if in_groups else len(extents)
        family = code, of_range, tuple(layout and layout[1:] for layout in layouts)
        shapes = [a.shape for a in submission.arguments if isinstance(a, ArrayArgument)]
        memory = tuple(
            (k, place.group, place.view, place.by_address)
            for k, argument in enumerate(submission.arguments)
            if isinstance(argument, ArrayArgument)
            for place in (places[s, k],)
        )
        integers = tuple(
            int(a.value)
            for a in submission.arguments
            if isinstance(a, ScalarArgument) and a.type.is_integer
        )
        varying = frozenset(
            int(a.value)
            for k, a in enumerate(submission.arguments)
            if isinstance(a, ScalarArgument) and a.type.is_integer and (s, k) in varying_scalars
        )
        sizes = (*chain.from_iterable(shapes), *extents)
        different = tuple(dict.fromkeys(sizes))
        number, patterns = families.setdefault(family, len(families)), self.patterns
        equal = number, *map(different.index, sizes)
        return Shape(
            kinds.setdefault(kind, len(kinds)),
            number,
            patterns.setdefault(equal, len(patterns)),
            sizes,
            different,
            memory,
            self.memory.own(memory),
            integers,
            varying,
            sizes + integers,
        )

    def structure(
        self, shapes: Sequence[Shape], arguments: Sequence[Sequence[int]] | None
    ) -> tuple[Structure, tuple[int, ...]]:
        """The structure of submissions of these shapes, and the values of their integer scalars."""
        kinds = tuple([shape.kind for shape in shapes])
        integers = tuple([value for shape in shapes for value in shape.integers])
        equal: dict[int, int] = {}
        which = tuple([equal.setdefault(value, len(equal)) for value in integers])
        varying = frozenset([equal[value] for shape in shapes for value in shape.varying])
        memory = [shape.memory for shape in shapes]
        if arguments is None:
            own = tuple([shape.memory_number for shape in shapes])
            return (kinds, which, self.memory.of(own, memory), varying), integers
        of_arguments = self.memory.of_arguments(memory, arguments)
        return (kinds, which, of_arguments, varying), integers


def but_sizes(structure: Structure, shapes: Sequence[Shape]) -> Hashable:
    """The ``structure`` of submissions of these shapes but for their sizes, of which it has which
    are equal, zero, and in what order."""
    number: dict[int, int] = {}
    which = [number.setdefault(size, len(number)) for shape in shapes for size in shape.different]
    order = tuple([number[size] for size in sorted(number)])
    patterns = tuple([shape.pattern for shape in shapes])
    return patterns, *structure[1:], tuple(which), order, number.get(0)


def _kind_of(argument: Argument) -> tuple[Hashable, ...] | None:
    """What a kind of submission has of an argument, the extents first."""
    match argument:
        case ArrayArgument():
            return (
                argument.shape,
                len(argument.shape),
                argument.strides,
                argument.alignment,
                argument.buffer_flag,
                argument.access_flag,
                argument.internal,
            )
        case _:
            return None
