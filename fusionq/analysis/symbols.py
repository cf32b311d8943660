"""The unknowns of an analysis: sizes and integer scalars, with the values they have now.

Equal sizes share a symbol, as do equal scalars.  Which sources share one, and which
symbols the analysis looked at, is kept: a proof holds for another list of submissions
only if the same sources are equal there (``analysis.validity``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what only names symbols need not load it
    import islpy as isl

LEAST_BOUND = 1 << 32
"""Proofs hold at least for values of this magnitude."""

HEADROOM_BITS = 4
"""A proof may serve values this many bits longer than today's without a new overflow check."""

NEARLY = 2
"""How far a scalar may be from a size that it is taken for: a last index, or the edges left out."""

MOST_BOUND = (1 << 63) - 1
"""Sizes and ids are int64, whatever they are tomorrow."""


@dataclass
class Symbols:
    """Symbols by value; ``values`` maps each name to its value in today's submissions.

    ``varying``: the values of scalars that vary from list to list, which are pinned only where
    another one cannot be instead; if ``for_all``, never: what is found out then holds for all of
    their values.
    """

    varying: frozenset[int] = frozenset()
    for_all: bool = False
    values: dict[str, int] = field(default_factory=dict)
    _sizes: dict[int, str] = field(default_factory=dict)
    _scalars: dict[int, str] = field(default_factory=dict)

    def size(self, value: int) -> str:
        """The symbol of a size (range extent or array extent)."""
        return self._named(self._sizes, "n", value)

    def known_size(self, value: int) -> str | None:
        """The symbol of a size that has one."""
        return self._sizes.get(value)

    def sizes_like(self, names: Iterable[str]) -> frozenset[str]:
        """The symbols of sizes that have the present value of one of ``names``."""
        values = {self.values[name] for name in names}
        return frozenset(name for value, name in self._sizes.items() if value in values)

    def scalar(self, value: int) -> str:
        """The symbol of an integer scalar argument."""
        return self._named(self._scalars, "s", value)

    def renamed_in(self, other: Symbols) -> dict[str, str]:
        """For each symbol that of ``other`` for the same size or scalar."""
        sizes = {name: other.size(value) for value, name in self._sizes.items()}
        return sizes | {name: other.scalar(value) for value, name in self._scalars.items()}

    def _named(self, known: dict[int, str], prefix: str, value: int) -> str:
        name = known.get(value)
        if name is None:
            name = known[value] = f"{prefix}{len(known)}"
            self.values[name] = value
        return name

    def bound(self, name: str) -> int:
        """The largest magnitude for which proofs about ``name`` are made."""
        value = abs(self.values[name])
        return max(LEAST_BOUND, value, min(MOST_BOUND, 1 << value.bit_length() + HEADROOM_BITS))

    @cached_property
    def varying_names(self) -> frozenset[str]:
        """The names of scalars that vary."""
        return frozenset(name for value, name in self._scalars.items() if value in self.varying)

    @cached_property
    def free(self) -> frozenset[str]:
        """The names of those for all of whose values what is found out has to hold."""
        return self.varying_names if self.for_all else frozenset()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names, in order; the symbols are complete from the first use on."""
        return tuple(self.values)

    @cached_property
    def alike(self) -> tuple[object, ...]:
        """Equal for symbols of which the same is to be found out, whatever their values are."""
        empty = tuple([n for n in self._sizes.values() if self.values[n] == 0])
        return self.names, empty, self.free

    @cached_property
    def today(self) -> tuple[object, ...]:
        """As ``alike``, with the values."""
        return self.alike, tuple(self.values.values())

    @cached_property
    def context(self) -> isl.Set:
        """What always holds: sizes are at least 1 (lists with empty ranges or arrays take
        their own plans)."""
        from fusionq.analysis.isl_texts import set_of

        parameters = ", ".join(self.names)
        sizes = [n for n in self._sizes.values() if self.values[n] >= 1]
        empty = [n for n in self._sizes.values() if self.values[n] == 0]
        constraints = [f"{n} >= 1" for n in sizes] + [f"{n} = 0" for n in empty]
        return set_of(f"[{parameters}] -> {{ : {' and '.join(constraints) or '1 = 1'} }}")

    @cached_property
    def point(self) -> isl.Set:
        """Today's values as a parameter set with one point, but for those that are free.

        (Not from text, as others are, of which each is asked for its own values: isl takes 13 ms
        for the equations of 60 symbols, and half of one for their point.)"""
        import islpy as isl

        kind = isl.dim_type.param
        point = isl.Point.zero(self.space(()).params())
        for position, value in enumerate(self.values.values()):
            point = point.set_coordinate_val(kind, position, isl.Val(str(value)))
        return self.for_any_free(isl.Set.from_point(point))

    def scalars_of(self, used: frozenset[str]) -> frozenset[str]:
        """The scalars of the symbols ``used``; none where one of them varies from list to list."""
        found = used.intersection(self._scalars.values())
        return found if self.varying_names.isdisjoint(found) else frozenset()

    def at_today(self, names: frozenset[str]) -> isl.Set:
        """The parameter values in which those of ``names`` are today's."""
        from fusionq.analysis.isl_texts import set_of

        pinned = " and ".join(f"{n} = {self.values[n]}" for n in sorted(names))
        return set_of(f"[{', '.join(self.names)}] -> {{ : {pinned} }}")

    def apart_as_today(self, groups: Iterable[Collection[str]]) -> isl.Set:
        """The parameter values in which those of each of ``groups`` are as far apart as today."""
        return self._where(
            f"{n} - {first} = {self.values[n] - self.values[first]}"
            for first, *others in map(sorted, groups)
            for n in others
        )

    @cached_property
    def sizes_in_scalars(self) -> isl.Set | None:
        """The parameter values in which scalars that are sizes today, or nearly so, are these:
        ``n`` of ``min(i + 1, n - 1)`` is the extent of the range.  None where none is."""
        groups = []
        for value, name in self._scalars.items():
            size = min(self._sizes, key=lambda size: abs(size - value), default=0)
            if name not in self.free and abs(size - value) <= NEARLY < size >> 3:
                groups.append((self._sizes[size], name))
        return self.apart_as_today(groups) if groups else None

    def ordered_as_today(self, groups: Iterable[Collection[str]]) -> isl.Set:
        """The parameter values in which those of each of ``groups`` have today's order."""
        in_order = (sorted(names, key=self.values.__getitem__) for names in groups)
        return self._where(f"{a} < {b}" for names in in_order for a, b in pairwise(names))

    def _where(self, constraints: Iterable[str]) -> isl.Set:
        from fusionq.analysis.isl_texts import set_of

        text = " and ".join(constraints) or "1 = 1"
        return set_of(f"[{', '.join(self.names)}] -> {{ : {text} }}")

    def for_any_free(self, values: isl.Set) -> isl.Set:
        """The parameter values that differ from some of ``values`` in those that are free only."""
        import islpy as isl

        for position, name in enumerate(self.names):
            if name in self.free:
                values = values.eliminate(isl.dim_type.param, position, 1)
        return values

    def space(self, dims: Sequence[str]) -> isl.Space:
        """A set space over ``dims`` with all symbols as parameters."""
        import islpy as isl

        return isl.Space.create_from_names(
            isl.DEFAULT_CONTEXT, set=list(dims), params=list(self.names)
        )
