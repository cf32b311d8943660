"""Pairs of different work-items are those without the identity, and are found where that takes isl
long."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.item_relations import between_different
from fusionq.analysis.list_analysis import analyse
from tests.unit.analysis.pairs import dependences
from tests.unit.lists import submissions


@pytest.mark.parametrize(
    "text",
    [
        "[i] -> [i]",
        "[i] -> [j] : 0 <= i < n0 and 0 <= j < n0",
        "[i] -> [j] : 0 <= i < n0 and 2*floor(i/2) = 2*floor(j/2)",
        "[i, j] -> [j, i] : 0 <= i < n0 and 0 <= j < n0",
        "[i, j] -> [k, l] : 3*i + j = 4*k + l and 0 <= j < 3 and 0 <= l < 4",
        "[i, j] -> [i, j + 1]; [i, j] -> [i - 1, j]; [i, j] -> [i, j]",
        "[i, j, k] -> [i, j, l] : l = 5*floor(k/5) and 0 <= k < n0",
    ],
)
def test_they_are_those_without_the_identity(text):
    items = isl.Map(f"[n0] -> {{ {text} }}")
    assert between_different(items).is_equal(items.subtract(isl.Map.identity(items.get_space())))


@fq.kernel
def permute(item: fq.Item, a, out):
    i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
    for d in range(a.shape[3]):
        out[(i * a.shape[2] + k) * a.shape[1] + j, d] = a[i, j, k, d]


@fq.kernel
def transpose(item: fq.Item, a, out):
    i, j = item.get_id(0), item.get_id(1)
    out[j, i] = a[i, j]


def test_rows_that_are_numbered_by_three_ids_are_known_to_others():
    a, rows, out = np.zeros((4, 12, 3, 8)), np.zeros((144, 8)), np.zeros((8, 144))
    calls = (permute, (4, 12, 3), a, rows), (transpose, (144, 8), rows, out)
    (found,) = dependences(analyse(submissions(*calls)))
    assert (found.kind, found.scope) == ("RAW", "GLOBAL")
