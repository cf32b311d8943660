"""Plans as they are kept on disk: dependences that differ in their submissions alone share what
else there is to say of them.

A list of hundreds of submissions that use one memory has a dependence for each pair of them; each
by itself, they take several times as long to write and to read as the list takes to plan.
"""

from __future__ import annotations

from dataclasses import replace

from fusionq.base.frozen import dataclass
from fusionq.cache.serialise import MalformedData
from fusionq.planning.plan import Dependence, Plan


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """``plan`` without its dependences: of each three numbers, its place among ``kinds``, its
    producer, and its consumer.  The submissions of ``kinds`` say nothing."""

    plan: Plan
    kinds: tuple[Dependence, ...]
    dependences: tuple[int, ...]


def kept_plan(plan: Plan) -> KeptPlan:
    """``plan`` as it is kept: without times."""
    places: dict[tuple[object, ...], int] = {}
    kinds: list[Dependence] = []
    numbers: list[int] = []
    for dependence in plan.dependences:
        key = (
            dependence.buffer,
            dependence.argument,
            dependence.kind,
            dependence.scope,
            dependence.reason,
            id(dependence.producer_span),  # most are one object; those that are not, are two kinds
            id(dependence.consumer_span),
        )
        place = places.get(key)
        if place is None:
            place = places[key] = len(kinds)
            kinds.append(replace(dependence, producer=0, consumer=0))
        numbers += (place, dependence.producer, dependence.consumer)
    return KeptPlan(replace(plan, timings={}, dependences=()), tuple(kinds), tuple(numbers))


def plan_of(kept: KeptPlan) -> Plan:
    """The plan that ``kept_plan`` was given, without times; MalformedData if it is none."""
    if len(kept.dependences) % 3:
        raise MalformedData("a dependence of less than three numbers")
    numbers = iter(kept.dependences)
    found = []
    for place, producer, consumer in zip(numbers, numbers, numbers, strict=True):
        if not 0 <= place < len(kept.kinds):
            raise MalformedData(f"there is no kind {place} of dependences")
        kind = kept.kinds[place]
        found.append(
            Dependence(
                producer, consumer, kind.buffer, kind.argument, kind.kind, kind.scope, kind.reason,
                kind.producer_span, kind.consumer_span,
            )
        )  # fmt: skip
    return replace(kept.plan, dependences=tuple(found))
