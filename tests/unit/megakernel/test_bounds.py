"""Boxes of work-items that a tile depends on, and when none is looked for."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusionq.analysis.isl_operations import TooManyOperations
from fusionq.analysis.stage_relations import Relation
from fusionq.ir.nodes import Expr, Param, Var
from fusionq.ir.types import INT64
from fusionq.megakernel import bounds
from fusionq.megakernel.bounds import MOST_EXISTENTIALS, MOST_PARTS, needed_items, tile_boxes
from fusionq.megakernel.evaluate import evaluate

PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


def symbol(name: str) -> Expr:
    return Var(INT64, name)


def sums_of_quotients(count: int) -> Relation:
    """An item depends on the items that are a sum of ``count`` numbers near its quotients."""
    names = [f"e{d}" for d in range(count)]
    near = " and ".join(
        f"i - n <= {prime}{name} <= i + {d}n"
        for d, (name, prime) in enumerate(zip(names, PRIMES, strict=False))
    )
    text = f"exists ({', '.join(names)} : {near} and j = {' + '.join(names)})"
    return Relation(isl.Map(f"[n] -> {{ [i] -> [j] : {text} }}"), exact=True)


def existentials(relation: Relation) -> int:
    items = needed_items(relation, isl.Set("[n] -> { : n > 0 }"))
    return max(s.dim(isl.dim_type.div) for s in items.get_basic_sets())


def test_bounds_of_sets_with_some_existentials() -> None:
    relation = sums_of_quotients(3)
    assert 1 < existentials(relation) <= MOST_EXISTENTIALS
    found = tile_boxes(relation, isl.Set("[n] -> { : n > 0 }"), symbol)
    assert found is not None
    assert len(found) == 1


@pytest.mark.parametrize("count", [10, 12])
def test_sets_with_many_are_not_bounded(count: int) -> None:
    """Eliminating them takes isl seconds to hours, uncounted; random lists met such sets."""
    relation = sums_of_quotients(count)
    assert existentials(relation) > MOST_EXISTENTIALS
    assert tile_boxes(relation, isl.Set("[n] -> { : n > 0 }"), symbol) is None


SIZES = isl.Set("[n, first_0, last_0] -> { : n > 0 and 0 <= first_0 <= last_0 < n }")


def rows(text: str) -> Relation:
    inside = "0 <= i < n and 0 <= j < n"
    return Relation(isl.Map(f"[n] -> {{ [i] -> [j] : {inside} and ({text}) }}"), exact=True)


NEAR = "i - 1 <= j <= i + 1"


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        (NEAR, 1),
        (f"{NEAR} or (i = 0 and j = n - 1) or (i = n - 1 and j = 0)", 3),
        ("i - 60 <= j <= i - 58 or i <= j <= i + 2", 1),
        ("j = i - 100 or j = i + 100", 2),
        ("j = 0 or j = 1 or j = n - 1 or j = n - 2", 2),
        (f"{NEAR} or (i = 0 and j >= 10)", 1),
        ("(i = 0 and j >= 10) or j = 0", 0),
    ],
    ids=["near", "ring", "60 rows", "far", "ends", "all of it", "constant"],
)  # fmt: skip
def test_what_is_far_apart_has_boxes_of_its_own(text: str, boxes: int) -> None:
    found = tile_boxes(rows(text), SIZES, symbol)
    assert len(found or ()) == boxes


def test_too_hard_parts_are_one_box(monkeypatch: pytest.MonkeyPatch) -> None:
    def hard(items: isl.Set, context: isl.Set) -> list[isl.Set]:
        raise TooManyOperations

    monkeypatch.setattr(bounds, "_parts", hard)
    found = tile_boxes(rows("j = i - 100 or j = i + 100"), SIZES, symbol)
    assert found is not None and len(found) == 1


def test_each_two_pieces_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    are_apart = bounds._are_apart

    def counted(some: isl.Set, others: isl.Set, context: isl.Set) -> bool:
        compared.append(None)
        return are_apart(some, others, context)

    monkeypatch.setattr(bounds, "_are_apart", counted)
    steps = [200 * k for k in range(MOST_PARTS)]
    found = tile_boxes(rows(" or ".join(f"j = i + {step}" for step in steps)), SIZES, symbol)
    assert found is not None and len(found) == MOST_PARTS
    pairs = MOST_PARTS * (MOST_PARTS + 1) // 2
    assert len(compared) <= pairs + 1  # the last is about all of them together


@given(
    st.lists(st.integers(-300, 300), min_size=1, max_size=6, unique=True),
    st.integers(0, 380),
    st.integers(1, 20),
)
def test_boxes_hold_all_that_a_tile_depends_on(steps: list[int], first: int, length: int) -> None:
    n, last = 400, min(first + length, 400) - 1
    text = " or ".join(f"j = i + {step}" for step in steps).replace("+ -", "- ")
    relation = rows(text)
    boxes = tile_boxes(relation, SIZES, lambda name: Param(INT64, name))
    needed = {i + step for i in range(first, last + 1) for step in steps}
    needed &= set(range(n))
    if boxes is None:
        return
    held: set[int] = set()
    for ((low, high),) in boxes:
        low_, high_ = (int(evaluate(e, {"n": n}, (first,), (last,))) for e in (low, high))
        held |= set(range(low_, high_ + 1))
    assert needed <= held
