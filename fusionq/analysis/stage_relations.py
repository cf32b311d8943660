"""Which work-items of an earlier stage have to be done before a work-item of a later one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from fusionq.analysis.access import Access, item_dims
from fusionq.analysis.item_relations import to_space
from fusionq.analysis.item_space import Mode, global_range, largest
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.proof import TooManyOperations, limited_operations


@dataclass(frozen=True, slots=True)
class StageItems:
    """Submissions that run as one kernel over one index space, with that space's extents."""

    members: tuple[int, ...]
    mode: Mode
    extents: tuple[int, ...]


def stage_items(analysis: ListAnalysis, members: Sequence[int], mode: Mode) -> StageItems:
    """The stage of ``members``; its range is that of the largest of them."""
    whole = global_range(analysis.submissions[largest(analysis.submissions, members)])
    extents = (whole.size,) if mode == "linear" else tuple(whole)
    return StageItems(tuple(members), mode, extents)


@dataclass(frozen=True)
class Relation:
    """Work-items of a later stage to those of an earlier one that touch the same element, one of
    the two writing it.  ``exact`` is False where that is not known: then it relates all to all."""

    items: isl.Map
    exact: bool


class StageRelations:
    """Answers for pairs of stages; equal questions (a kernel used many times) once."""

    def __init__(self, analysis: ListAnalysis, stages: Sequence[StageItems]) -> None:
        self.analysis = analysis
        self.stages = tuple(stages)
        self._keys = [self._key(stage) for stage in stages]
        self._between: dict[tuple[object, object], Relation | None] = {}
        self._covered: dict[tuple[object, object, object], bool] = {}

    def _key(self, stage: StageItems) -> object:
        """Equal for stages with the same accesses to the same memory."""
        analysis = self.analysis
        parts = []
        for s in stage.members:
            accesses = analysis.accesses[s]
            lie = tuple(
                (place.group, place.view, place.by_address)
                for a in accesses.accesses
                for place in (analysis.shares(s, a),)
            )
            parts.append((id(accesses), lie, analysis.shapes[s].global_range))
        return (tuple(parts), stage.mode, stage.extents)

    def key(self, stage: int) -> object:
        """Equal for stages that touch the same memory in the same way."""
        return self._keys[stage]

    def between(self, producer: int, consumer: int) -> Relation | None:
        """The relation from the consumer's to the producer's work-items; None if they need not
        wait for each other, whatever the sizes."""
        key = self._keys[producer], self._keys[consumer]
        if key not in self._between:
            first, second = self.stages[producer], self.stages[consumer]
            try:
                with limited_operations(1 + len(self._pairs(first, second))):
                    self._between[key] = self._relation(first, second)
            except TooManyOperations:
                self._between[key] = self._everything(first, second)
        return self._between[key]

    def covered(self, producer: int, through: int, consumer: int) -> bool:
        """Whether a consumer's work-item that waits for those of ``through`` that it is related
        to, which waited for those of ``producer``, need not wait for ``producer`` itself."""
        key = self._keys[producer], self._keys[through], self._keys[consumer]
        if key not in self._covered:
            needed = self.between(producer, consumer)
            near, far = self.between(through, consumer), self.between(producer, through)
            assert needed is not None
            self._covered[key] = (
                near is not None and far is not None and self._implied(needed, near, far)
            )
        return self._covered[key]

    def _implied(self, needed: Relation, near: Relation, far: Relation) -> bool:
        try:
            with limited_operations():
                both = near.items.apply_range(far.items)
                here = needed.items.intersect_params(self.analysis.symbols.context)
                return bool(here.is_subset(both))
        except TooManyOperations:
            return False

    def context(self, stage: int) -> isl.Set:
        """What holds for the parameters of a tile of ``stage``: sizes are positive, and the tile
        has work-items, all inside the range."""
        items = self.stages[stage]
        names = item_dims(len(items.extents))
        first = ", ".join(f"first_{d}" for d in range(len(names)))
        last = ", ".join(f"last_{d}" for d in range(len(names)))
        ordered = " and ".join(f"first_{d} <= last_{d}" for d in range(len(names)))
        space = self.space(items)
        result = isl.Set(f"[{first}, {last}] -> {{ : {ordered} }}")
        for end, ends in (("first", first), ("last", last)):
            equal = " and ".join(f"{name} = {end}_{d}" for d, name in enumerate(names))
            corner = isl.Map(f"[{ends}] -> {{ [{', '.join(names)}] -> [] : {equal} }}")
            result = result.intersect(space.apply(corner).params())
        return result.intersect(self.analysis.symbols.context)

    def waits(self) -> list[list[int]]:
        """For each stage the earlier ones that it has to wait for itself, latest first: those on
        which it depends and for which waiting for others does not do."""
        found: list[list[int]] = []
        for consumer in range(len(self.stages)):
            direct: list[int] = []
            for producer in reversed(range(consumer)):
                if self.between(producer, consumer) is None:
                    continue
                if not any(self.covered(producer, through, consumer) for through in direct):
                    direct.append(producer)
            found.append(direct)
        return found

    # ------------------------------------------------------------------------- relations
    def _relation(self, first: StageItems, second: StageItems) -> Relation | None:
        union: isl.Map | None = None
        for p, a, c, b in self._pairs(first, second):
            one = self._items(first, p, a, second, c, b)
            if one is None:
                return self._everything(first, second)
            union = one if union is None else union.union(one)
        if union is None or union.is_empty():
            return None
        return Relation(union.coalesce(), True)

    def _pairs(
        self, first: StageItems, second: StageItems
    ) -> list[tuple[int, Access, int, Access]]:
        """The accesses to the same memory of which one writes, each with its submission."""
        accesses = self.analysis.accesses
        return [
            (p, a, c, b)
            for p in first.members
            for c in second.members
            for a in accesses[p].accesses
            for b in accesses[c].accesses
            if not a.kind == b.kind == "read" and self._same_memory(p, a, c, b)
        ]

    def _same_memory(self, p: int, a: Access, c: int, b: Access) -> bool:
        analysis = self.analysis
        if a.instances.is_empty() or b.instances.is_empty():
            return False
        return analysis.shares(p, a).group == analysis.shares(c, b).group

    def _items(
        self, first: StageItems, p: int, a: Access, second: StageItems, c: int, b: Access
    ) -> isl.Map | None:
        analysis = self.analysis
        from_a, from_b = analysis.item_elements(p, a), analysis.item_elements(c, b)
        if from_a is None or from_b is None:
            return None
        to_a, pins_a = to_space(analysis.submissions[p], analysis.symbols, first.mode)
        to_b, pins_b = to_space(analysis.submissions[c], analysis.symbols, second.mode)
        analysis.pinned |= pins_a | pins_b
        items = from_b.apply_range(from_a.reverse())
        return items.apply_domain(to_b).apply_range(to_a)

    def _everything(self, first: StageItems, second: StageItems) -> Relation:
        domain, range_ = self.space(second), self.space(first)
        return Relation(isl.Map.from_domain_and_range(domain, range_), False)

    def space(self, stage: StageItems) -> isl.Set:
        """All work-items of a stage."""
        symbols = self.analysis.symbols
        names = item_dims(len(stage.extents))
        inside = []
        for name, extent in zip(names, stage.extents, strict=True):
            known = symbols.known_size(extent)
            if known is None:  # a product of extents
                self.analysis.pinned.update(
                    symbols.size(e)
                    for s in stage.members
                    for e in global_range(self.analysis.submissions[s])
                )
            inside.append(f"0 <= {name} < {extent if known is None else known}")
        return isl.Set(
            f"[{', '.join(symbols.names)}] -> {{ [{', '.join(names)}] : {' and '.join(inside)} }}"
        )
