"""Boxes of work-items that a tile depends on, and when none is looked for."""

from __future__ import annotations

import islpy as isl
import pytest

from fusionq.analysis.stage_relations import Relation
from fusionq.ir.nodes import Expr, Var
from fusionq.ir.types import INT64
from fusionq.megakernel.bounds import MOST_EXISTENTIALS, needed_items, tile_bounds

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
    bounds = tile_bounds(relation, isl.Set("[n] -> { : n > 0 }"), symbol)
    assert bounds is not None
    assert len(bounds) == 1


@pytest.mark.parametrize("count", [10, 12])
def test_sets_with_many_are_not_bounded(count: int) -> None:
    """Eliminating them takes isl seconds to hours, uncounted; random lists met such sets."""
    relation = sums_of_quotients(count)
    assert existentials(relation) > MOST_EXISTENTIALS
    assert tile_bounds(relation, isl.Set("[n] -> { : n > 0 }"), symbol) is None
