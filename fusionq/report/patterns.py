"""Dependences that repeat with a stride, as one pattern: ``[k] → [k + 1], k = 0 … 14``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from fusionq.planning.plan import Dependence
from fusionq.report.progressions import FEWEST, progressions, sum_of, written, written_to


@dataclass(frozen=True, slots=True)
class DependencePattern:
    """Dependences that differ in their submissions only.

    ``first``: the first of them.  ``count``: how many they are.  ``producer`` and ``consumer``:
    their submissions, such as ``k`` and ``k + 1``; ``where``: the range of what varies, such as
    ``k = 0 … 14``, empty for a single dependence.
    """

    first: Dependence
    count: int
    producer: str
    consumer: str
    where: str


def dependence_patterns(
    dependences: Sequence[Dependence], kernel: Callable[[int], str]
) -> list[DependencePattern]:
    """Each of ``dependences`` in one pattern, in the order of the patterns' first dependences.

    ``kernel`` gives the name of a submission's kernel: dependences of different kernels are no
    pattern.
    """
    alike: dict[object, dict[tuple[int, int], Dependence]] = defaultdict(dict)
    order: dict[Dependence, int] = {}
    for position, d in enumerate(dependences):
        label = (
            kernel(d.producer), kernel(d.consumer), d.buffer, d.argument, d.kind, d.scope,
            d.reason, d.producer_span, d.consumer_span,
        )  # fmt: skip
        alike[label][d.producer, d.consumer] = d
        order[d] = position
    found = [pattern for points in alike.values() for pattern in _patterns(points)]
    return sorted(found, key=lambda pattern: order[pattern.first])


def _patterns(points: dict[tuple[int, int], Dependence]) -> list[DependencePattern]:
    """The way to write ``points`` that takes the fewest patterns."""
    all_pairs = _all_pairs(points)
    if all_pairs is not None:
        return [all_pairs]
    ways = [list(way(points)) for way in (_equal_distance, _one_producer, _one_consumer)]
    return min(ways, key=len)


def _all_pairs(points: dict[tuple[int, int], Dependence]) -> DependencePattern | None:
    """``[k] → [k + d]`` for all ``k`` and ``d``, where each of some steps depends on each of the
    steps that lie a multiple of a distance before it."""
    distances = progressions(consumer - producer for producer, consumer in points)
    if len(distances) != 1 or len(distances[0]) < 2:
        return None
    (far,) = distances
    first, last = min(p for p, _ in points), max(c for _, c in points)
    stride = gcd(*(p - first for p, _ in points))
    if stride == 0:
        return None
    square = {(p, p + d) for d in far for p in range(first, last - d + 1, stride)}
    if square != points.keys():
        return None
    near = range(first, last - far[0] + 1, stride)
    return DependencePattern(
        points[min(points)],
        len(points),
        "k",
        "k + d",
        f"d = {written(far)}, k = {written_to(near, f'{last} - d')}",
    )


def _equal_distance(points: dict[tuple[int, int], Dependence]) -> Iterator[DependencePattern]:
    producers: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in points:
        producers[consumer - producer].append(producer)
    for distance, at in producers.items():
        for steps in progressions(at):
            first = points[steps[0], steps[0] + distance]
            yield _pattern(first, steps, "k", sum_of("k", distance))


def _one_producer(points: dict[tuple[int, int], Dependence]) -> Iterator[DependencePattern]:
    consumers: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in points:
        consumers[producer].append(consumer)
    for producer, at in consumers.items():
        for steps in progressions(at):
            yield _pattern(points[producer, steps[0]], steps, str(producer), "k")


def _one_consumer(points: dict[tuple[int, int], Dependence]) -> Iterator[DependencePattern]:
    producers: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in points:
        producers[consumer].append(producer)
    for consumer, at in producers.items():
        for steps in progressions(at):
            yield _pattern(points[steps[0], consumer], steps, "k", str(consumer))


def _pattern(
    first: Dependence, steps: range, producer: str, consumer: str
) -> DependencePattern:
    if len(steps) < FEWEST:
        return DependencePattern(first, 1, str(first.producer), str(first.consumer), "")
    return DependencePattern(first, len(steps), producer, consumer, f"k = {written(steps)}")
