"""Whether a range's linear ids are those of rows, and for which other sizes."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.list_analysis import analyse
from fusionq.analysis.row_items import are_rows
from fusionq.analysis.validity import validity_of
from tests.unit.lists import submissions


@fq.kernel
def rows(item: fq.Item, a):
    a[item.get_linear_id() // a.shape[1], item.get_linear_id() % a.shape[1]] = 1


def listed(shape, items):
    return submissions((rows, items, np.zeros(shape, np.float32)))


@pytest.mark.parametrize(
    ("shape", "items", "whole"),
    [((3, 4), 12, True), ((3, 4), 11, False), ((3, 4), 8, False), ((5, 5), 25, True)],
)
def test_the_product_of_the_extents(shape, items, whole) -> None:
    assert are_rows(analyse(listed(shape, items)), ((0, 0), (0, 1))) is whole


def test_it_holds_for_any_number_of_rows_of_that_length() -> None:
    analysis = analyse(listed((3, 4), 12))
    assert are_rows(analysis, ((0, 0), (0, 1)))
    validity = validity_of(analysis)
    assert validity.holds(listed((7, 4), 28))
    assert not validity.holds(listed((7, 4), 27))
    assert not validity.holds(listed((4, 7), 28))
