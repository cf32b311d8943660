"""Which earlier stages a stage of a persistent kernel has to wait for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import islpy as isl

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.isl_operations import (
    LOOKED_UP,
    OPERATIONS_FOR_OTHERS,
    TooManyOperations,
    count_operations,
    found_within,
)
from fusionq.analysis.list_analysis import ListAnalysis, kernel_shape
from fusionq.analysis.proof import symbols_of
from fusionq.analysis.questions import Questions
from fusionq.analysis.relation_boxes import RelationBoxes, may_follow, relation_boxes
from fusionq.analysis.scalar_cells import cell_of
from fusionq.analysis.stage_relations import Relation, StageItems, is_implied, relation_between
from fusionq.analysis.symbols import Symbols

T = TypeVar("T")

MOST_TOGETHER = 4
"""Stages through which, together, a dependence may follow from others: by each one for a part of
the elements, as by the kernels of an array's inside and its borders."""

Answer = Callable[[ListAnalysis, tuple[StageItems, ...]], T]
"""Answers a question about some stages, whose members are the submissions of the analysis."""


class StageRelations:
    """The relations between the ``stages`` of a list whose submissions have the direct
    ``dependences``; equal questions are answered once.

    A dependence that follows from others does so for work-items too: what a stage waits for has
    waited for it.
    """

    def __init__(
        self,
        questions: Questions,
        stages: Sequence[StageItems],
        dependences: Sequence[Sequence[PairScope]],
    ) -> None:
        self.questions = questions
        self.stages = tuple(stages)
        self._between: dict[tuple[int, int], Relation | None] = {}
        self._boxes: dict[tuple[int, int], RelationBoxes | None] = {}
        self._covered: dict[tuple[int, ...], bool] = {}
        stage_of = {s: k for k, stage in enumerate(stages) for s in stage.members}
        self._producers = [
            sorted(
                {
                    stage_of[d.producer]
                    for s in stage.members
                    for d in dependences[s]
                    if d.scope != "NONE" and d.producer in stage_of
                }
                - {k},
                reverse=True,
            )
            for k, stage in enumerate(stages)
        ]

    def producers(self, stage: int) -> list[int]:
        """The earlier stages on which ``stage`` depends directly, the latest first."""
        return [p for p in self._producers[stage] if self.between(p, stage) is not None]

    def between(self, producer: int, consumer: int) -> Relation | None:
        """The relation from the consumer's to the producer's work-items, in the symbols of their
        submissions; None if they need not wait for each other, whatever the sizes."""
        stages = producer, consumer
        if stages not in self._between:
            self._between[stages] = self.ask(stages, "relation", _between)
        return self._between[stages]

    def covered(self, producer: int, through: Sequence[int], consumer: int) -> bool:
        """Whether a consumer's work-item that waits for those of the stages ``through``, the latest
        first, that it is related to, which waited for those of ``producer``, need not wait for
        ``producer`` itself: by one of these stages, or by some of the latest together."""
        if self.between(producer, consumer) is None:
            return True
        between = [k for k in through if producer < k and self.between(producer, k) is not None]
        ways: list[tuple[int, ...]] = [(k,) for k in between]
        if len(between) > 1:
            ways.append(tuple(between[:MOST_TOGETHER]))
        return any(self._covered_by(producer, way, consumer) for way in ways)

    def _covered_by(self, producer: int, through: tuple[int, ...], consumer: int) -> bool:
        stages = producer, *through, consumer
        if stages not in self._covered:
            self._covered[stages] = self._is_covered(stages)
        return self._covered[stages]

    def _is_covered(self, stages: tuple[int, ...]) -> bool:
        """Whether the first of ``stages`` is covered for the last by those between."""
        last = len(stages) - 1
        pairs = [(0, last), *((0, k) for k in range(1, last)), *((k, last) for k in range(1, last))]
        count_operations(LOOKED_UP * len(pairs))
        relations: dict[tuple[int, int], Relation] = {}
        for first, second in pairs:
            relation = self.between(stages[first], stages[second])
            if relation is None:
                return False
            relations[first, second] = relation
        question = "covered", *map(id, relations.values())
        known = self._known(stages, question)  # which is sooner found out than boxes are
        if known is not None:
            return bool(known[0])
        ways = [(self._box(k, stages[-1]), self._box(stages[0], k)) for k in stages[1:-1]]
        if not may_follow(self._box(stages[0], stages[-1]), ways):
            return False
        return self.ask(
            stages, question, lambda analysis, of_all: _covered(analysis, of_all, relations)
        )

    def _box(self, producer: int, consumer: int) -> RelationBoxes | None:
        """The boxes around today's work-items of a relation that there is."""
        stages = producer, consumer
        if stages not in self._boxes:
            relation = self.between(*stages)
            assert relation is not None
            submissions = [self.questions.submissions[s] for s in self.members(stages)]
            self._boxes[stages] = relation_boxes(relation.items, submissions)
        return self._boxes[stages]

    def waits(self, consumer: int) -> list[int]:
        """The earlier stages that a stage has to wait for itself, latest first: those on which it
        depends and for which waiting for others does not do."""
        direct: list[int] = []
        for producer in self.producers(consumer):
            if not self.covered(producer, direct, consumer):
                direct.append(producer)
        return direct

    def members(self, stages: Sequence[int]) -> tuple[int, ...]:
        """The submissions of some stages, stage by stage."""
        return tuple([s for k in stages for s in self.stages[k].members])

    def ask(self, stages: Sequence[int], question: Hashable, answer: Answer[T]) -> T:
        """The ``answer`` to ``question`` about some stages."""

        def asked(analysis: ListAnalysis) -> T:
            return answer(analysis, self._renumbered(stages))

        about, any_sizes = self._about(stages, question)
        return self.questions.ask(self.members(stages), about, asked, other_sizes=any_sizes)

    def _known(self, stages: Sequence[int], question: Hashable) -> tuple[Any] | None:
        """What ``ask`` gives, as a tuple of it, where that is known already; else None."""
        about, any_sizes = self._about(stages, question)
        return self.questions.known(self.members(stages), about, any_sizes)

    def _about(self, stages: Sequence[int], question: Hashable) -> tuple[Hashable, bool]:
        """The question about the members of some stages, and whether its answer serves others of
        other sizes: the extents of a stage by linear ids are products, whose order is not known."""
        modes = tuple([(len(self.stages[k].members), self.stages[k].mode) for k in stages])
        return (question, modes), all(self.stages[k].mode != "linear" for k in stages)

    def _renumbered(self, stages: Sequence[int]) -> tuple[StageItems, ...]:
        """The stages with their members' numbers among the members of all of them."""
        found = []
        first = 0
        for k in stages:
            stage = self.stages[k]
            count = len(stage.members)
            found.append(StageItems(tuple(range(first, first + count)), stage.mode, stage.extents))
            first += count
        return tuple(found)


def _between(analysis: ListAnalysis, stages: tuple[StageItems, ...]) -> Relation | None:
    """The relation between two stages; of one of several parts those of today's side of each
    constraint on scalars alone, which the answer then serves."""
    relation = relation_between(analysis, *stages)
    if relation is None or relation.items.n_basic_map() == 1:
        return relation
    symbols, items = analysis.symbols, relation.items
    scalars = symbols.scalars_of(symbols_of(items))

    def in_cell() -> tuple[isl.Map, isl.Set] | None:
        cell = cell_of([items.wrap()], scalars, symbols.values)
        return None if cell is None else (items.intersect_params(cell).coalesce(), cell)

    try:
        found = found_within(OPERATIONS_FOR_OTHERS, in_cell)
    except TooManyOperations:  # nothing about the list is answered any longer
        return relation
    if found is None:
        return relation
    analysis.proofs.add([(found[1], True)])
    return Relation(found[0], relation.exact)


def _covered(
    analysis: ListAnalysis,
    stages: tuple[StageItems, ...],
    relations: Mapping[tuple[int, int], Relation],
) -> bool:
    """Whether the first of some stages is covered for the last by those between; ``relations`` has
    those of pairs, by the stages' numbers."""
    items = {
        pair: _in_symbols(analysis, [stages[k] for k in pair], relation.items)
        for pair, relation in relations.items()
    }
    last = len(stages) - 1
    ways = [(items[k, last], items[0, k]) for k in range(1, last)]
    return is_implied(analysis.proofs, items[0, last], ways, _numbering(analysis))


def _numbering(analysis: ListAnalysis) -> list[set[str]]:
    """The integer scalars of the submissions, by what they number: those that kernels call by the
    same name, as the ``k`` of each step; a scalar that has several names joins their groups."""
    names: dict[str, set[str]] = {}
    for shape in analysis.shapes:
        for name, symbol in shape.params.items():
            names.setdefault(name, set()).add(symbol)
    found: list[set[str]] = []
    for symbols in names.values():
        apart = [other for other in found if other.isdisjoint(symbols)]
        found = [*apart, symbols.union(*(o for o in found if not o.isdisjoint(symbols)))]
    return found


def _in_symbols(analysis: ListAnalysis, stages: Sequence[StageItems], items: isl.Map) -> isl.Map:
    """``items``, in the symbols of some of the stages alone, in those of ``analysis``."""
    own = Symbols()
    for stage in stages:
        for s in stage.members:
            kernel_shape(analysis.submissions[s], own)
    names = own.renamed_in(analysis.symbols)
    for prefix in ("other_", ""):  # a name may be another's: first none of both
        for position in range(items.dim(isl.dim_type.param)):
            name = items.get_dim_name(isl.dim_type.param, position)
            assert name is not None
            new = f"other_{name}" if prefix else names[name.removeprefix("other_")]
            items = items.set_dim_name(isl.dim_type.param, position, new)
    return items
