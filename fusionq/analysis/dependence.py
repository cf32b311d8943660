"""Dependence scopes: how far apart the work-items are that touch the same element.

For an ordered pair of submissions and each memory they share, the relation from producing to
consuming work-items is composed from their access relations and compared with the identity
and with "same work-group".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal, cast

import islpy as isl

from fusionq.analysis.isl_operations import TooManyOperations, answered
from fusionq.analysis.item_relations import between_different, same_group, to_space
from fusionq.analysis.item_space import common_space
from fusionq.analysis.kernel_accesses import Access
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.scope import DependenceKind, Scope
from fusionq.base.frozen import dataclass
from fusionq.base.span import Span

SEVERITY: dict[Scope, int] = {"NONE": 0, "ITEM": 1, "GROUP": 2, "GLOBAL": 3, "UNKNOWN": 4}

DIFFERENT_ELEMENTS = "they touch different elements of the same memory"

KINDS: dict[tuple[str, str], DependenceKind] = {
    ("write", "read"): "RAW",
    ("read", "write"): "WAR",
    ("write", "write"): "WAW",
}


@dataclass(frozen=True, slots=True)
class PairScope:
    """The scope of one kind of dependence through one memory, with its reason.

    ``producer_argument`` and ``consumer_argument`` are the positions of the arguments.
    """

    producer: int
    consumer: int
    producer_argument: int
    consumer_argument: int
    kind: DependenceKind
    scope: Scope
    reason: str
    producer_span: Span
    consumer_span: Span
    items: isl.Map | None = None
    """For ``GROUP`` and ``GLOBAL``: the producer's to the consumer's ids.  For ``UNKNOWN``: those
    that may touch the same element, if that is known."""
    number: int = 0
    """Its place among the dependences between the two submissions."""

    def between(self, producer: int, consumer: int) -> PairScope:
        """The same between two other submissions."""
        return PairScope(  # ``dataclasses.replace`` takes several times as long
            producer, consumer, self.producer_argument, self.consumer_argument, self.kind,
            self.scope, self.reason, self.producer_span, self.consumer_span, self.items,
            self.number,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """How two accesses depend on each other; ``items`` as of ``PairScope``."""

    scope: Scope
    reason: str
    items: isl.Map | None = None


@dataclass(frozen=True, slots=True)
class Accessed:
    """An access as far as it matters to which others it is compared: its argument, the alias
    group of that, whether it reads or writes, where it stands."""

    argument: int
    group: int
    kind: Literal["read", "write"]
    span: Span


def accesses_of(analysis: ListAnalysis, submission: int) -> tuple[Accessed, ...]:
    """The accesses of a submission, in program order."""
    return tuple(
        Accessed(
            analysis.argument_index(submission, access.array),
            analysis.shares(submission, access).group,
            access.kind,
            access.span,
        )
        for access in analysis.accesses[submission].accesses
    )


class Unions:
    """Unions of relations; the same object for the same two."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], tuple[isl.Map, isl.Map, isl.Map]] = {}

    def of(self, a: isl.Map, b: isl.Map) -> isl.Map:
        key = id(a), id(b)
        if key not in self._made:
            self._made[key] = a, b, a.union(b)
        return self._made[key][2]


def dependences_between(
    producer: int,
    consumer: int,
    first: Sequence[Accessed],
    second: Sequence[Accessed],
    compare: Callable[[int, int], Between],
    unions: Unions,
) -> tuple[PairScope, ...]:
    """The dependences of one submission on another, which have the accesses ``first`` and
    ``second``; ``compare`` gives what there is between two of them, by position."""
    by_group: dict[int, list[int]] = {}
    for position, b in enumerate(second):
        by_group.setdefault(b.group, []).append(position)
    worst: dict[tuple[int, DependenceKind], PairScope] = {}
    for k, a in enumerate(first):
        for position in by_group.get(a.group, ()):
            b = second[position]
            kind = KINDS.get((a.kind, b.kind))
            if kind is None:
                continue
            found = compare(k, position)
            one = PairScope(
                producer, consumer, a.argument, b.argument, kind, found.scope, found.reason,
                a.span, b.span, found.items,
            )  # fmt: skip
            known = worst.get((a.group, kind))
            worst[a.group, kind] = one if known is None else _worse(known, one, unions)
    return tuple(replace(found, number=number) for number, found in enumerate(worst.values()))


def _worse(known: PairScope, one: PairScope, unions: Unions) -> PairScope:
    """The wider scope of the two; where work-items have to wait for others, with those of both."""
    wider = one if SEVERITY[one.scope] > SEVERITY[known.scope] else known
    if known.items is None or one.items is None or known.items is one.items:
        if one.scope == known.scope and one.items is None:  # of both it is not known
            return replace(wider, items=None)
        return wider
    return replace(wider, items=unions.of(known.items, one.items))


def between(analysis: ListAnalysis, producer: int, a: int, consumer: int, b: int) -> Between:
    """How access ``b`` of ``consumer`` depends on access ``a`` of ``producer``, by position."""
    first = analysis.accesses[producer].accesses[a]
    second = analysis.accesses[consumer].accesses[b]

    def unknown(why: str) -> Between:
        reason = f"which elements {first.span} and {second.span} share is not known: {why}"
        return Between("UNKNOWN", reason)

    pair = tuple([analysis.submissions[s].range for s in (producer, consumer)])
    key = "between", analysis.lies(producer, first), analysis.lies(consumer, second), pair
    find = partial(_between, analysis, producer, first, consumer, second)
    return analysis.answered_once(key, find, unknown)


def _between(analysis: ListAnalysis, producer: int, a: Access, consumer: int, b: Access) -> Between:
    for access in (a, b):
        if analysis.never_happens(access):
            return Between("NONE", "one of the two never happens")
    from_a = analysis.item_elements(producer, a)
    from_b = analysis.item_elements(consumer, b)
    meeting = _meeting(analysis, (producer, consumer))
    if from_a is None or from_b is None:
        where = (a if from_a is None else b).span
        by_a, by_b = analysis.items(producer, a), analysis.items(consumer, b)
        found = analysis.once(
            ("between any", id(by_a), id(by_b), meeting),
            lambda: _of_any_elements(analysis, by_a, by_b, meeting),
        )
        if found.scope != "UNKNOWN":
            return found
        return replace(
            found,
            reason=f"the index at {where} is not an affine function of ids, loop variables, sizes "
            "and integer scalars, so it may touch any element",
        )
    return analysis.once(
        ("between", id(from_a), id(from_b), meeting),
        lambda: _of_elements(analysis, from_a, from_b, meeting),
    )


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Which ids of two submissions are the same work-item: maps, the symbols whose values they
    have, explicit work-groups."""

    to_a: isl.Map
    to_b: isl.Map
    pinned: frozenset[str]
    local_range: tuple[int, ...] | None


def _meeting(analysis: ListAnalysis, pair: tuple[int, int]) -> _Meeting | str:
    """Equal for pairs whose work-items meet alike; why there are no such work-items."""
    symbols, readings = analysis.symbols, analysis.readings
    submissions = [analysis.submissions[s] for s in pair]
    key = *[s.range for s in submissions], symbols.today
    known = cast("_Meeting | str | None", readings.meetings.get(key))
    if known is None:
        space = common_space(submissions)
        if isinstance(space, str):
            known = space
        else:
            (to_a, pins_a), (to_b, pins_b) = (
                to_space(submission, symbols, space.mode) for submission in submissions
            )
            known = _Meeting(
                readings.canonical(to_a), readings.canonical(to_b), pins_a | pins_b,
                space.local_range,
            )  # fmt: skip
        readings.meetings[key] = known
    return known


def _of_elements(
    analysis: ListAnalysis, from_a: isl.Map, from_b: isl.Map, meeting: _Meeting | str
) -> Between:
    """How two accesses, from work-items to elements, depend on each other; ``meeting``: which are
    the same work-item, or why there is none such."""
    proofs = analysis.proofs
    ids = from_a.apply_range(from_b.reverse())
    if isinstance(meeting, str):
        if proofs.is_empty(ids):
            return Between("NONE", DIFFERENT_ELEMENTS)
        return Between("GLOBAL", meeting)
    touched = proofs.is_found_today(ids)
    if not touched and proofs.is_empty(ids):
        return Between("NONE", DIFFERENT_ELEMENTS)
    items = ids.apply_domain(meeting.to_a).apply_range(meeting.to_b)
    others = between_different(items)
    # That different work-items touch one element says that some do.
    if touched and not proofs.is_found_today(others) and proofs.is_empty(ids):
        return Between("NONE", DIFFERENT_ELEMENTS)
    analysis.pinned |= meeting.pinned
    if proofs.is_empty(others):
        return Between("ITEM", "each element is touched by one and the same work-item")
    local = meeting.local_range
    if local is not None and proofs.is_empty(items.subtract(same_group(analysis.symbols, local))):
        return Between("GROUP", inside_groups(local), ids)
    return Between(
        "GLOBAL", f"different work-items touch the same element: {describe(others)}", ids
    )


def _of_any_elements(
    analysis: ListAnalysis, by_a: isl.Set, by_b: isl.Set, meeting: _Meeting | str
) -> Between:
    """How two accesses by the work-items ``by_a`` and ``by_b``, one of which may touch any element,
    depend on each other: it is known where one work-item, or one work-group, does both."""
    if isinstance(meeting, str):
        return Between("UNKNOWN", meeting)
    proofs = analysis.proofs
    ids = analysis.readings.canonical(isl.Map.from_domain_and_range(by_a, by_b))
    items = ids.apply_domain(meeting.to_a).apply_range(meeting.to_b)
    others = between_different(items)
    # What is found today is asked no further: only that there is nothing is remembered.
    if not proofs.is_found_today(others) and proofs.is_empty(others):
        analysis.pinned |= meeting.pinned
        return Between("ITEM", "one and the same work-item does both")
    local = meeting.local_range
    if local is not None:
        beyond = items.subtract(same_group(analysis.symbols, local))
        if not proofs.is_found_today(beyond) and proofs.is_empty(beyond):
            analysis.pinned |= meeting.pinned
            return Between("GROUP", f"one work-group of {_by(local)} does both", ids)
    return Between("UNKNOWN", "", ids)


def inside_groups(local: tuple[int, ...]) -> str:
    """Why a dependence has scope ``GROUP``."""
    return f"each element is touched inside one work-group of {_by(local)} only"


def _by(local: tuple[int, ...]) -> str:
    return " x ".join(map(str, local))


def describe(relation: isl.Map) -> str:
    """A relation between work-items as short text, without its parameters."""
    with suppress(TooManyOperations):  # then the text is longer than it need be
        relation = answered(relation.coalesce)
    text = str(relation.to_str())
    text = text[text.index("{") :]
    return text if len(text) <= 160 else text[:157] + "..."
