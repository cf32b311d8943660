"""Which extents of arrays a kernel has as constants."""

from __future__ import annotations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.small_extents import small_extents, sources_of_small_extents
from fusionq.analysis.submission import ArrayArgument
from fusionq.analysis.symbol_sources import Source
from tests.unit.lists import submissions


@fq.kernel
def first(item: fq.Item, a, out):
    out[item.get_id(0)] = 1.0


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        ((100,), ()),
        ((4,), ()),
        ((100, 3), (3,)),
        ((100, 4), (4,)),
        ((100, 5), ()),
        ((100, 1), (1,)),
        ((100, 3, 2), (3, 2)),
        ((100, 50, 3), (3,)),
        ((3, 100), ()),
        ((100, 3, 50), ()),
        ((3, 4), ()),
        ((4, 4, 4), ()),
        ((0, 3), ()),
        ((100, 0), ()),
        ((5, 3), (3,)),
    ],
)
def test_extents_that_are_constants(shape: tuple[int, ...], known: tuple[int, ...]) -> None:
    a, out = np.zeros(shape, np.float32), np.zeros(3, np.float32)
    (one,) = submissions((first, 3, a, out))
    array = one.arguments[0]
    assert isinstance(array, ArrayArgument)
    assert small_extents(array) == known
    places = [Source(0, 0, len(shape) - len(known) + n) for n in range(len(known))]
    assert sources_of_small_extents([one]) == tuple(zip(places, known, strict=True))


@pytest.mark.parametrize("view", [np.s_[:, :2], np.s_[::2], np.s_[:, ::-1]])
def test_a_view_that_is_not_contiguous_has_none(view) -> None:
    (one,) = submissions((first, 3, np.zeros((100, 3), np.float32)[view], np.zeros(3, np.float32)))
    array = one.arguments[0]
    assert isinstance(array, ArrayArgument)
    assert small_extents(array) == ()
