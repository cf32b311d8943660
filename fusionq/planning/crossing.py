"""Work-group sizes for dependences between different work-items of a stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.item_space import ItemSpace, Mode
from fusionq.analysis.questions import Questions
from fusionq.analysis.work_groups import Tiles, candidates, stays_inside, tiles_of
from fusionq.base.target import Target


def group_sizes(
    questions: Questions,
    crossing: Iterable[PairScope],
    space: ItemSpace,
    extents: Sequence[int],
    target: Target,
) -> Iterator[tuple[int, ...]]:
    """Candidate work-group sizes, for dependences that have to stay inside work-groups."""
    tiles = (_tiles(questions, found, space.mode) for found in crossing)
    return candidates(tiles, space, extents, target)


def proved_sizes(
    questions: Questions,
    crossing: Sequence[PairScope],
    space: ItemSpace,
    extents: Sequence[int],
    target: Target,
) -> Iterator[tuple[int, ...]]:
    """Those of ``group_sizes`` that keep ``crossing`` inside work-groups, the best first: a size
    for which that is proved, or too hard to prove and a multiple of one for which it is."""
    hard: list[tuple[int, ...]] = []
    proved: list[tuple[int, ...]] = []
    for local in group_sizes(questions, crossing, space, extents, target):
        if any(_is_multiple(local, other) for other in proved):
            yield local
        elif keeps_inside(questions, crossing, space.mode, local):
            multiples = [size for size in hard if _is_multiple(size, local)]
            hard = [size for size in hard if size not in multiples]
            proved.append(local)
            yield from (*multiples, local)
        else:
            hard.append(local)


def _is_multiple(size: tuple[int, ...], of: tuple[int, ...]) -> bool:
    """Whether work-groups of ``size`` are made of whole ones of another."""
    return all(longer % shorter == 0 for longer, shorter in zip(size, of, strict=True))


def keeps_inside(
    questions: Questions, crossing: Iterable[PairScope], mode: Mode, local: tuple[int, ...]
) -> bool:
    """Whether all of ``crossing`` stay inside work-groups of ``local`` when submissions meet in
    ``mode``."""
    return all(_stays(questions, found, mode, local) for found in crossing)


def different(questions: Questions, crossing: Iterable[PairScope]) -> tuple[PairScope, ...]:
    """``crossing`` without those about which all answers are the same as about another."""
    return tuple({key_of(questions, found): found for found in crossing}.values())


def key_of(questions: Questions, found: PairScope) -> object:
    """Equal for dependences about which all answers are the same."""
    pair = found.producer, found.consumer
    if found.items is None or any(questions.integers(s) for s in pair):
        return id(found.items), pair
    # A relation of symbols is one object for all their values.
    return id(found.items), *(questions.extents(s) for s in pair)


def _tiles(questions: Questions, found: PairScope, mode: Mode) -> Tiles | None:
    items = found.items
    if items is None:
        return None
    return questions.ask(
        (found.producer, found.consumer),
        ("tiles", id(items), mode),
        lambda analysis: tiles_of(analysis, items, mode),
        ((), ()),
    )


def _stays(questions: Questions, found: PairScope, mode: Mode, local: tuple[int, ...]) -> bool:
    items = found.items
    if items is None:
        return False
    return questions.ask(
        (found.producer, found.consumer),
        ("inside", id(items), mode, local),
        lambda analysis: stays_inside(analysis, items, mode, local),
        ((), ()),
    )
