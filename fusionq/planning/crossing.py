"""Work-group sizes for dependences between different work-items of a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, cast

from fusionq.analysis.dependence import PairScope
from fusionq.analysis.item_space import ItemSpace, Mode
from fusionq.analysis.list_analysis import ListAnalysis
from fusionq.analysis.questions import Questions
from fusionq.analysis.work_groups import Tiles, candidates, stays_inside, tiles_of
from fusionq.base.target import Target

T = TypeVar("T")

Asked = dict[tuple[object, ...], object]
"""Answers about dependences of one list, by these."""


def group_sizes(
    questions: Questions,
    crossing: Iterable[PairScope],
    space: ItemSpace,
    extents: Sequence[int],
    target: Target,
    asked: Asked | None = None,
) -> Iterator[tuple[int, ...]]:
    """Candidate work-group sizes, for dependences that have to stay inside work-groups;
    ``asked``: what has been answered about some of them."""
    tiles = (_tiles(questions, found, space.mode, asked) for found in crossing)
    return candidates(tiles, space, extents, target)


def proved_sizes(
    questions: Questions,
    crossing: Sequence[PairScope],
    mode: Mode,
    sizes: Iterable[tuple[int, ...]],
    asked: Asked | None = None,
) -> Iterator[tuple[int, ...]]:
    """Those of the work-group ``sizes`` that keep ``crossing`` inside work-groups when submissions
    meet in ``mode``, in that order: a size for which that is proved, or too hard to prove and a
    multiple of one for which it is, which comes before that."""
    hard: list[tuple[int, ...]] = []
    proved: list[tuple[int, ...]] = []
    for local in sizes:
        if any(is_multiple(local, other) for other in proved):
            yield local
        elif keeps_inside(questions, crossing, mode, local, asked):
            multiples = [size for size in hard if is_multiple(size, local)]
            hard = [size for size in hard if size not in multiples]
            proved.append(local)
            yield from (*multiples, local)
        else:
            hard.append(local)


def is_multiple(size: tuple[int, ...], of: tuple[int, ...]) -> bool:
    """Whether work-groups of ``size`` are made of whole ones of another."""
    return all(longer % shorter == 0 for longer, shorter in zip(size, of, strict=True))


def keeps_inside(
    questions: Questions,
    crossing: Iterable[PairScope],
    mode: Mode,
    local: tuple[int, ...],
    asked: Asked | None = None,
) -> bool:
    """Whether all of ``crossing`` stay inside work-groups of ``local`` when submissions meet in
    ``mode``."""
    return all(_stays(questions, found, mode, local, asked) for found in crossing)


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


def _tiles(questions: Questions, found: PairScope, mode: Mode, asked: Asked | None) -> Tiles | None:
    items = found.items
    if items is None:
        return None
    about = "tiles", id(items), mode
    return _answer(questions, found, about, lambda a: tiles_of(a, items, mode), mode, asked)


def _stays(
    questions: Questions,
    found: PairScope,
    mode: Mode,
    local: tuple[int, ...],
    asked: Asked | None,
) -> bool:
    items = found.items
    if items is None:
        return False
    about = "inside", id(items), mode, local
    return _answer(
        questions, found, about, lambda a: stays_inside(a, items, mode, local), mode, asked
    )


def _answer(
    questions: Questions,
    found: PairScope,
    about: tuple[object, ...],
    answer: Callable[[ListAnalysis], T],
    mode: Mode,
    asked: Asked | None,
) -> T:
    """What is answered ``about`` a dependence of submissions that meet in ``mode``; the answers
    ``asked`` for before are not asked for again."""
    pair = found.producer, found.consumer
    key = *pair, *about
    if asked is not None and key in asked:
        return cast("T", asked[key])
    said = questions.ask(pair, about, answer, ((), ()), other_sizes=mode != "linear")
    if asked is not None:
        asked[key] = said
    return said
