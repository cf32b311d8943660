"""Boxes around today's work-items refute that a dependence follows, and nothing else."""

from __future__ import annotations

import random

import islpy as isl
import pytest

from fusionq.analysis.isl_operations import PlanOperations, plan_operations
from fusionq.analysis.relation_boxes import RelationBoxes, may_follow, relation_boxes

NOTHING = RelationBoxes((), ())


def _boxes(text: str) -> RelationBoxes:
    found = relation_boxes(isl.Map(text), ())
    assert found is not None
    return found


def test_boxes_of_both_sides() -> None:
    found = _boxes("{ [i, j] -> [2i] : 1 <= i < 4 and 0 <= j <= i }")
    assert found == RelationBoxes(((1, 3), (0, 3)), ((2, 6),))
    assert _boxes("{ [i] -> [i] : 1 = 0 }") == NOTHING


def test_what_is_not_known_may_follow() -> None:
    some = _boxes("{ [0] -> [0] }")
    assert may_follow(None, [(some, some)])
    assert may_follow(some, [(None, some)])
    assert may_follow(some, [(some, None)])
    assert may_follow(NOTHING, [(some, NOTHING)])


def test_ways_that_relate_nothing_reach_nothing() -> None:
    some = _boxes("{ [0] -> [0] }")
    assert not may_follow(some, [(NOTHING, some)])
    assert not may_follow(some, [(some, NOTHING)])
    assert may_follow(some, [(some, NOTHING), (some, some)])


def test_boxes_are_not_known_where_a_plan_has_nothing_left() -> None:
    plan = PlanOperations()
    plan.left_to_lose = 0
    with plan_operations(plan):
        assert relation_boxes(isl.Map("{ [0] -> [0] }"), ()) is None


@pytest.mark.parametrize("seed", range(200))
def test_refuted_is_never_reached(seed: int) -> None:
    rng = random.Random(seed)

    def relation() -> isl.Map:
        a, b, c = rng.choice([-2, -1, 0, 1, 2]), rng.randint(-3, 3), rng.choice([1, 2, 3])
        low, high = rng.randint(-2, 4), rng.randint(2, 9)
        return isl.Map(f"{{ [i] -> [o] : {low} <= i <= {high} and {c} * o = {a} * i + {b} }}")

    ways = [(relation(), relation()) for _ in range(rng.randint(1, 3))]
    reached = isl.Map("{ [i] -> [o] : 1 = 0 }")
    for near, far in ways:
        reached = reached.union(near.apply_range(far))
    needed = rng.choice([relation(), reached, reached.intersect(relation())])
    boxes = [(relation_boxes(near, ()), relation_boxes(far, ())) for near, far in ways]
    if not may_follow(relation_boxes(needed, ()), boxes):
        assert not needed.is_subset(reached)
