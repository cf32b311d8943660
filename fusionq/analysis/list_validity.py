"""For which sizes and integer scalars all that was answered about the parts of a list holds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from math import prod

from fusionq.analysis.item_space import global_range
from fusionq.analysis.submission import ArrayArgument, Submission
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.symbols import Symbols
from fusionq.analysis.validity import Condition, Validity, between
from fusionq.ir.nodes import SMALL

_ANY = 1 << 62
"""More than there are."""

Place = tuple[int, int]
"""A submission and the position of one of its scalar arguments."""


class ListValidity:
    """Collects what answers rest on; scalars that some answer takes to be equal share a symbol.

    Equal sizes share one in any case: the structure of a list says which are equal.
    """

    def __init__(self, submissions: Sequence[Submission]) -> None:
        self._submissions = submissions
        self._answers: dict[int, tuple[Validity, bool, dict[Hashable, tuple[int, ...]]]] = {}
        """Validities, whether they depend on scalars, and the submissions that they are about, one
        of those of which they say the same."""
        self._between: dict[tuple[int, int, int], None] = {}
        self._small: dict[tuple[int, ...], None] = {}
        self._items: dict[tuple[tuple[int, ...], int, int], None] = {}

    def add(self, validity: Validity, members: Sequence[int], other_sizes: bool = False) -> None:
        """``validity`` is about ``members``, by their numbers among them.  ``other_sizes``: it may
        be about others, too, whose sizes are not the same."""
        known = self._answers.get(id(validity))
        if known is None:
            known = self._answers[id(validity)] = validity, validity.depends_on_scalars, {}
        elif not known[1] and not other_sizes:
            # Sizes are what they are in equal questions: of an answer that rests on them alone,
            # one use says all.
            return
        about = tuple(members)
        if known[1] or not other_sizes:
            known[2][about] = about
        else:
            known[2].setdefault(tuple([self._extents[m] for m in members]), about)

    @cached_property
    def _extents(self) -> list[int]:
        """A number for the range and the shapes of each submission, equal for equal ones."""
        numbers: dict[Hashable, int] = {}
        return [
            numbers.setdefault((s.range, tuple(s.shapes())), len(numbers))
            for s in self._submissions
        ]

    def demand_between(self, extent: int, low: int, beyond: int) -> None:
        """The size that is ``extent`` today has to be ``low`` or more and below ``beyond``."""
        self._between[extent, low, beyond] = None

    def demand_small(self, extents: tuple[int, ...]) -> None:
        """The product of the sizes that are ``extents`` today, which are not 0, has to be ``SMALL``
        at most."""
        self._small[extents] = None

    def demand_items(self, extents: tuple[int, ...], low: int, beyond: int) -> None:
        """The product of the sizes that are ``extents`` today has to be ``low`` or more and below
        ``beyond``."""
        self._items[extents, low, beyond] = None

    def are_at_least(self, extents: tuple[int, ...], fewest: int) -> bool:
        """Whether the product of the sizes that are ``extents`` today is ``fewest`` or more; that
        has to stay so."""
        found = prod(extents) >= fewest
        self.demand_items(extents, *((fewest, _ANY) if found else (0, fewest)))
        return found

    def demand(self, condition: Condition, places: Mapping[str, Source]) -> None:
        """``condition`` has to hold of what is at ``places``, by the symbols that it uses."""
        sources = tuple((name, (place,)) for name, place in places.items())
        found = Validity(sources, (), (), (condition,))
        self.add(found, range(len(self._submissions)))

    def pinned(self) -> dict[Place, int]:
        """The scalar arguments that have to keep their values, with these."""
        found: dict[Place, int] = {}
        for validity, _, uses in self._answers.values():
            if not validity.pinned:
                continue
            sources = dict(validity.sources)
            for name, value in validity.pinned:
                for place in sources[name]:
                    if place.dim is None and place.argument is not None:
                        for numbers in uses.values():
                            found[numbers[place.submission], place.argument] = value
        return found

    def result(self, constants: tuple[tuple[Source, int], ...] = ()) -> Validity:
        """The validity of all answers, for kernels that have the scalars ``constants`` built in."""
        sizes, sources = _sizes(self._submissions)
        scalars = _Classes()
        answers = [(validity, list(uses.values())) for validity, _, uses in self._answers.values()]
        for validity, about in answers:
            for _, places in validity.sources:
                if places[0].dim is None:
                    at = [(p.submission, p.argument) for p in places if p.argument is not None]
                    for one in {tuple([(n[s], k) for s, k in at]) for n in about}:
                        scalars.unite(one)
        symbol_of: dict[Place, str] = {}
        for number, equal in enumerate(scalars.classes()):
            name = f"s{number}"
            symbol_of.update(dict.fromkeys(equal, name))
            sources[name] = tuple(Source(s, k, None) for s, k in equal)
        pinned: dict[str, int] = {}
        limits = {name: sizes.bound(name) for name in sizes.values}
        uses: dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], None]] = {}
        for extents in self._small:
            small = tuple(map(sizes.size, extents))
            limits |= {name: min(limits[name], SMALL) for name in small}
            if len(small) > 1:
                factors = tuple(f"size{dim}" for dim in range(len(small)))
                text = f"{' * '.join(factors)} <= {SMALL}"
                uses.setdefault((text, factors), {})[small] = None
        for extents, low, beyond in self._items:
            use = tuple(map(sizes.size, extents))
            factors = tuple(f"size{dim}" for dim in range(len(use)))
            text = f"{low} <= {' * '.join(factors)} < {beyond}"
            uses.setdefault((text, factors), {})[use] = None

        def symbols(place: Source, about: Sequence[Sequence[int]]) -> list[str]:
            """Of what has its ``place`` among members, for each of those that an answer is
            about."""
            members = [numbers[place.submission] for numbers in about]
            argument, dim = place.argument, place.dim
            if dim is None:
                assert argument is not None
                return [symbol_of[m, argument] for m in members]
            own = {m: self._submissions[m].number(argument, dim) for m in set(members)}
            of_member = {m: sizes.size(value) for m, value in own.items()}
            return [of_member[m] for m in members]

        for validity, about in answers:
            own = {name: symbols(places[0], about) for name, places in validity.sources}
            for name, value in validity.pinned:
                pinned.update(dict.fromkeys(own[name], value))
            for name, limit in validity.limits:
                for known in dict.fromkeys(own[name]):
                    limits[known] = min(limit, limits.get(known, limit))
            for condition in validity.conditions:
                found = uses.setdefault((condition.text, condition.names), {})
                for use in condition.uses:
                    columns = [own[name] for name in use]
                    found.update(dict.fromkeys(zip(*columns, strict=True) if columns else [()]))
        conditions = _joined(
            [Condition(text, names, tuple(found)) for (text, names), found in uses.items()]
        )
        conditions += [
            between(sizes.size(extent), low, beyond) for extent, low, beyond in self._between
        ]
        return Validity(
            tuple(sources.items()),
            tuple(pinned.items()),
            tuple(limits.items()),
            tuple(conditions),
            constants,
        )


LONGEST = 10_000
"""Characters of the text of conditions that are joined."""


def _joined(conditions: Sequence[Condition]) -> list[Condition]:
    """``conditions`` with those about the same symbols as one, which is evaluated faster."""
    texts: list[list[str]] = []
    abouts: list[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]] = []
    latest: dict[object, int] = {}
    for condition in conditions:
        about = condition.names, condition.uses
        place = latest.get(about)
        if place is None or sum(map(len, texts[place])) + len(condition.text) > LONGEST:
            latest[about] = len(texts)
            texts.append([condition.text])
            abouts.append(about)
        else:
            texts[place].append(condition.text)
    return [
        Condition(of_one[0] if len(of_one) == 1 else " and ".join(f"({t})" for t in of_one), *about)
        for of_one, about in zip(texts, abouts, strict=True)
    ]


def _sizes(
    submissions: Sequence[Submission],
) -> tuple[Symbols, dict[str, tuple[Source, ...]]]:
    """A symbol for each size, and the first place where it is found."""
    symbols = Symbols()
    sources: dict[str, tuple[Source, ...]] = {}
    for s, submission in enumerate(submissions):
        for dim, extent in enumerate(global_range(submission)):
            sources.setdefault(symbols.size(extent), (Source(s, None, dim),))
        for k, argument in enumerate(submission.arguments):
            if isinstance(argument, ArrayArgument):
                for dim, extent in enumerate(argument.shape):
                    sources.setdefault(symbols.size(extent), (Source(s, k, dim),))
    return symbols, sources


class _Classes:
    """Places in classes of equal ones (union-find)."""

    def __init__(self) -> None:
        self._root: dict[Place, Place] = {}

    def _find(self, place: Place) -> Place:
        root = self._root
        while root[place] != place:
            root[place] = place = root[root[place]]
        return place

    def unite(self, places: Sequence[Place]) -> None:
        for place in places:
            self._root.setdefault(place, place)
        for place in places[1:]:
            low, high = sorted((self._find(places[0]), self._find(place)))
            self._root[high] = low

    def classes(self) -> list[list[Place]]:
        """The classes, by their first places."""
        found: dict[Place, list[Place]] = {}
        for place in sorted(self._root):
            found.setdefault(self._find(place), []).append(place)
        return list(found.values())
