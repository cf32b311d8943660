"""Dependence scopes: how far apart the work-items are that touch the same element.

For an ordered pair of submissions and each memory they share, the relation from producing to
consuming work-items is composed from their access relations and compared with the identity
and with "same work-group".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import islpy as isl

from fusionq.analysis.access import Access
from fusionq.analysis.item_relations import same_group, to_space
from fusionq.analysis.item_space import common_space
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import TooManyOperations, limited_operations
from fusionq.analysis.scope import DependenceKind, Scope
from fusionq.base.span import Span

SEVERITY: dict[Scope, int] = {"NONE": 0, "ITEM": 1, "GROUP": 2, "GLOBAL": 3, "UNKNOWN": 4}

KINDS: dict[tuple[str, str], DependenceKind] = {
    ("write", "read"): "RAW",
    ("read", "write"): "WAR",
    ("write", "write"): "WAW",
}


@dataclass(frozen=True, slots=True)
class Found:
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
    """For ``GROUP`` and ``GLOBAL``: the producer's to the consumer's ids."""


def dependences(analysis: ListAnalysis) -> tuple[Found, ...]:
    """Every dependence of the list, in order of producer and consumer; scope ``NONE`` where
    memory is shared but no element is."""
    relations = _Relations(analysis)
    found: list[Found] = []
    for consumer in range(len(analysis.submissions)):
        for producer in range(consumer):
            worst: dict[tuple[int, DependenceKind], Found] = {}
            for a, b, kind in _pairs(analysis, producer, consumer):
                one = relations.between(producer, a, consumer, b, kind)
                group = analysis.shares(producer, a).group
                known = worst.get((group, kind))
                worst[group, kind] = one if known is None else relations.worse(known, one)
            found.extend(worst.values())
    return tuple(sorted(found, key=lambda f: (f.producer, f.consumer)))


def _pairs(
    analysis: ListAnalysis, producer: int, consumer: int
) -> Iterator[tuple[Access, Access, DependenceKind]]:
    by_group: dict[int, list[Access]] = {}
    for b in analysis.accesses[consumer].accesses:
        by_group.setdefault(analysis.shares(consumer, b).group, []).append(b)
    for a in analysis.accesses[producer].accesses:
        for b in by_group.get(analysis.shares(producer, a).group, ()):
            kind = KINDS.get((a.kind, b.kind))
            if kind is not None:
                yield a, b, kind


class _Relations:
    """Compares accesses; equal questions (a kernel used many times) are answered once."""

    def __init__(self, analysis: ListAnalysis) -> None:
        self.analysis = analysis
        self.answers: dict[tuple[object, ...], tuple[Scope, str, isl.Map | None]] = {}
        self.unions: dict[tuple[int, int], tuple[isl.Map, isl.Map, isl.Map]] = {}

    def between(
        self, producer: int, a: Access, consumer: int, b: Access, kind: DependenceKind
    ) -> Found:
        analysis = self.analysis
        first, second = analysis.submissions[producer], analysis.submissions[consumer]
        place_a, place_b = analysis.shares(producer, a), analysis.shares(consumer, b)
        key = (
            id(a), id(b), place_a.by_address, place_b.by_address, first.range, second.range,
        )  # fmt: skip
        if key not in self.answers:
            try:
                with limited_operations():
                    self.answers[key] = self._scope(producer, a, consumer, b, kind)
            except TooManyOperations as error:
                reason = f"which elements {a.span} and {b.span} share is not known: {error}"
                self.answers[key] = "UNKNOWN", reason, None
        scope, reason, items = self.answers[key]
        return Found(
            producer,
            consumer,
            analysis.argument_index(producer, a.array),
            analysis.argument_index(consumer, b.array),
            kind,
            scope,
            reason,
            a.span,
            b.span,
            items,
        )

    def worse(self, known: Found, one: Found) -> Found:
        """The wider scope of the two; where work-items have to wait for others, with those of
        both."""
        wider = one if SEVERITY[one.scope] > SEVERITY[known.scope] else known
        if known.items is None or one.items is None or known.items is one.items:
            return wider
        key = id(known.items), id(one.items)
        if key not in self.unions:
            both = known.items.union(one.items)
            self.unions[key] = known.items, one.items, both
        return replace(wider, items=self.unions[key][2])

    def _scope(
        self, producer: int, a: Access, consumer: int, b: Access, kind: DependenceKind
    ) -> tuple[Scope, str, isl.Map | None]:
        proofs, symbols = self.analysis.proofs, self.analysis.symbols
        for access in (a, b):
            if proofs.is_empty(access.instances):
                return "NONE", "one of the two never happens", None
        from_a = self.analysis.item_elements(producer, a)
        from_b = self.analysis.item_elements(consumer, b)
        if from_a is None or from_b is None:
            where = (a if from_a is None else b).span
            return (
                "UNKNOWN",
                (
                    f"the index at {where} is not an affine function of ids, loop variables, "
                    "sizes and integer scalars, so it may touch any element"
                ),
                None,
            )
        first, second = self.analysis.submissions[producer], self.analysis.submissions[consumer]
        items = from_a.apply_range(from_b.reverse())
        if proofs.is_empty(items):
            return "NONE", "they touch different elements of the same memory", None
        space = common_space([first, second])
        if isinstance(space, str):
            return "GLOBAL", space, None
        to_a, pins_a = to_space(first, symbols, space.mode)
        to_b, pins_b = to_space(second, symbols, space.mode)
        self.analysis.pinned |= pins_a | pins_b
        ids, items = items, items.apply_domain(to_a).apply_range(to_b)
        others = items.subtract(isl.Map.identity(items.get_space()))
        if proofs.is_empty(others):
            return "ITEM", "each element is touched by one and the same work-item", None
        if space.local_range is not None and proofs.is_empty(
            items.subtract(same_group(symbols, space.local_range))
        ):
            return "GROUP", inside_groups(space.local_range), ids
        return "GLOBAL", f"different work-items touch the same element: {describe(others)}", ids


def inside_groups(local: tuple[int, ...]) -> str:
    """Why a dependence has scope ``GROUP``."""
    size = " x ".join(map(str, local))
    return f"each element is touched inside one work-group of {size} only"


def describe(relation: isl.Map) -> str:
    """A relation between work-items as short text, without its parameters."""
    try:
        with limited_operations():
            relation = relation.coalesce()
    except TooManyOperations:
        pass  # then the text is longer than it need be
    text = str(relation.to_str())
    text = text[text.index("{") :]
    return text if len(text) <= 160 else text[:157] + "..."
