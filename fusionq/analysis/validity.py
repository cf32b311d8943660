"""For which sizes and integer scalars a plan holds."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import Operands, Sized, Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity_function import COMPILED, condition_function, note_asked
from fusionq.base.frozen import dataclass

if TYPE_CHECKING:
    import islpy as isl

    from fusionq.analysis.list_analysis import ListAnalysis


_NAME = re.compile(r"[a-z]\w*")

ScalarPlace = tuple[int, int]
"""A submission and the position of one of its scalar arguments."""


@dataclass(frozen=True, slots=True)
class Condition:
    """``text``, a Python expression over ``names``, is true with the symbols of each of ``uses`` in
    their place: proofs that differ in their symbols only share a text."""

    text: str
    names: tuple[str, ...]
    uses: tuple[tuple[str, ...], ...]

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether it is true of all uses, whose symbols have these ``values``."""
        holds = condition_function(self.text, self.names)
        return all([holds(*[values[symbol] for symbol in use]) for use in self.uses])


@dataclass(frozen=True, slots=True)
class Validity:
    """What the proofs behind a plan rest on.

    ``sources``: the places that each symbol stands for, all equal.  ``pinned``: symbols that
    must keep their value.  ``limits``: the largest magnitude without overflow.
    """

    sources: tuple[tuple[str, tuple[Source, ...]], ...]
    pinned: tuple[tuple[str, int], ...]
    limits: tuple[tuple[str, int], ...]
    conditions: tuple[Condition, ...] = ()
    constants: tuple[tuple[Source, int], ...] = ()
    """Integer scalars, and small extents of arrays, that the kernels have as constants."""

    @property
    def depends_on_scalars(self) -> bool:
        """Whether another value of some integer scalar may need another plan."""
        symbols = (source for _, sources in self.sources for source in sources)
        return any(source.dim is None for source in (*symbols, *(s for s, _ in self.constants)))

    @property
    def scalars(self) -> frozenset[int]:
        """The positions of the scalar arguments that the proofs rest on, for one submission."""
        return frozenset(
            source.argument
            for _, sources in self.sources
            for source in sources
            if source.dim is None and source.argument is not None
        )

    def missed_by(self, submissions: Sequence[Submission]) -> frozenset[ScalarPlace]:
        """The scalar arguments for whose values in ``submissions``, of the same structure, the
        proofs do not hold; none where they do, or where sizes or magnitudes are a reason too."""
        values = {name: sources[0].value(submissions) for name, sources in self.sources}
        failing: list[tuple[str, ...]] = [
            (name,)
            for name, sources in self.sources
            if any(source.value(submissions) != values[name] for source in sources)
        ]
        failing += [(name,) for name, value in self.pinned if values[name] != value]
        failing += [
            tuple(name for use in condition.uses for name in use)
            for condition in self.conditions
            if not condition.holds(values)
        ]
        scalars = {name: sources for name, sources in self.sources if sources[0].dim is None}
        if any(abs(values[name]) > limit for name, limit in self.limits) or any(
            scalars.keys().isdisjoint(names) for names in failing
        ):
            return frozenset()
        return frozenset(
            (source.submission, source.argument)
            for names in failing
            for name in names
            for source in scalars.get(name, ())
            if source.argument is not None
        )

    def holds(self, submissions: Sequence[Sized]) -> bool:
        """Whether the plan serves ``submissions`` (of the same structure)."""
        if submissions and type(submissions[0]) is Operands:
            compiled = COMPILED.get(id(self))
            if compiled is not None:
                return compiled[1](submissions)
            note_asked(self, submissions)
        for source, value in self.constants:
            if source.value(submissions) != value:
                return False
        values: dict[str, int] = {}
        for name, sources in self.sources:
            value = values[name] = sources[0].value(submissions)
            if len(sources) > 1 and any([s.value(submissions) != value for s in sources[1:]]):
                return False
        for name, value in self.pinned:
            if values[name] != value:
                return False
        for name, limit in self.limits:
            if abs(values[name]) > limit:
                return False
        return all([condition.holds(values) for condition in self.conditions])


def validity_of(
    analysis: ListAnalysis, constants: tuple[tuple[Source, int], ...] = (), check: bool = False
) -> Validity:
    """The validity of all that was proved in ``analysis`` so far, for kernels that have the
    scalars ``constants`` built in; of a ``check``, of all that could not be proved too, as
    smaller integers leave less open."""
    from fusionq.analysis.symbols import LEAST_BOUND

    symbols = analysis.symbols
    conditions = [(_text(analysis, v), inside) for v, inside in analysis.proofs.conditions]
    large = {
        name: 1 << abs(symbols.values[name]).bit_length() - 1
        for shape in analysis.shapes
        for name in shape.params.values()
        if check and symbols.bound(name) > LEAST_BOUND
    }
    today = analysis.proofs.today
    asked_for = large.keys() | today.union(*(names for (_, names), _ in conditions))
    sources = _sources(analysis, asked_for)
    used = tuple(name for name in symbols.names if name in sources)
    texts = []
    for (text, names), inside in conditions:
        if text is None:
            analysis.pinned |= names
        else:
            texts.append(text if inside else f"not ({text})")
    texts += [f"{name} >= {least} or {name} <= -{least}" for name, least in large.items()]
    return Validity(
        sources=tuple((name, sources[name]) for name in used),
        pinned=tuple((n, symbols.values[n]) for n in used if n in analysis.pinned or n in today),
        limits=tuple((n, symbols.bound(n)) for n in used),
        conditions=tuple(_condition(text, used) for text in dict.fromkeys(texts)),
        constants=constants,
    )


def _text(analysis: ListAnalysis, values: isl.Set) -> tuple[str | None, frozenset[str]]:
    """A parameter set as a Python expression, None where that is too hard, and its symbols."""
    from fusionq.analysis.condition import python_condition
    from fusionq.analysis.isl_operations import TooManyOperations, answered
    from fusionq.analysis.proof import symbols_of

    values = analysis.readings.canonical(values)
    known = analysis.readings.texts.get(id(values))
    if known is None:
        try:
            text = answered(partial(python_condition, values))
        except TooManyOperations:
            text = None
        known = analysis.readings.texts[id(values)] = values, text, symbols_of(values)
    return known[1:]


def _condition(text: str, symbols: Collection[str]) -> Condition:
    """``text`` about those of ``symbols`` that it names."""
    mentioned = set(_NAME.findall(text))
    names = tuple(name for name in symbols if name in mentioned)
    return Condition(text, names, (names,))


def between(name: str, low: int, beyond: int) -> Condition:
    """That a symbol is ``low`` or more and below ``beyond``."""
    return Condition(f"{low} <= size < {beyond}", ("size",), ((name,),))


def size_order(size: int, bits: int = 3) -> tuple[int, int]:
    """The sizes of the order of magnitude of ``size``, a factor of two to the power of ``bits``:
    from the first of the two on, below the second."""
    if size == 0:
        return 0, 1
    low = 1 << ((size.bit_length() - 1) // bits * bits)
    return low, low << bits


def largest_extent(submissions: Sequence[Sized]) -> int:
    """The largest extent of the submissions' ranges; what is profitable depends on its order."""
    return max([max(global_range(s)) for s in submissions])


def for_this_order(validity: Validity, submissions: Sequence[Submission]) -> Validity:
    """``validity``, which holds for ``submissions``, for sizes of the same order only."""
    largest = largest_extent(submissions)
    low, beyond = size_order(largest)
    name = next(
        name
        for name, places in validity.sources
        if places[0].dim is not None and places[0].value(submissions) == largest
    )
    return replace(validity, conditions=(*validity.conditions, between(name, low, beyond)))


def _sources(analysis: ListAnalysis, asked_for: Collection[str]) -> dict[str, tuple[Source, ...]]:
    """Sizes with their first source (the structure key says which are equal); integer scalars
    that an access depends on, and those ``asked_for``, with all of theirs."""
    of_sizes, of_scalars = analysis.symbol_sources
    sources = dict(of_sizes)
    for name, source in of_scalars:
        if name in asked_for or name in analysis.used_symbols(source.submission):
            sources[name] = (*sources.get(name, ()), source)
    return sources
