"""Integer scalars that vary from list to list get values that no other has, in what is planned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.submission import ScalarArgument
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Validity
from fusionq.planning.values_apart import with_values_apart
from tests.unit.lists import submissions

A = np.zeros(40, np.float32)


@fq.kernel
def taken(item: fq.Item, a: Any, k: Any, m: Any, out: Any) -> None:
    i = item.get_id(0)
    if i >= k:
        out[i] = a[i] + m


def values(made: Any) -> list[list[int]]:
    return [[int(a.value) for a in s.arguments if isinstance(a, ScalarArgument)] for s in made]


def scalars(*pairs: tuple[Any, Any]) -> Any:
    return submissions(*[(taken, 40, A, k, m, np.zeros(40, np.float32)) for k, m in pairs])


def known(*together: tuple[tuple[int, int], ...]) -> Validity:
    """What rests on scalars, of which each of those ``together`` are one unknown."""
    sources = [tuple([Source(s, k, None) for s, k in places]) for places in together]
    return Validity(tuple([(f"s{k}", places) for k, places in enumerate(sources)]), (), ())


ALONE = known(*[((s, k),) for s in range(300) for k in (1, 2)])


def test_those_that_are_equal_by_chance_are_told_apart() -> None:
    varying = {(0, 1), (1, 1), (2, 1), (2, 2)}
    made = with_values_apart(scalars((3, 3), (3, 4), (9, 3)), varying, [ALONE])
    assert values(made) == [[5, 3], [6, 4], [9, 7]]


def test_those_that_were_equal_in_each_list_stay_equal() -> None:
    both = known(((0, 1), (1, 1)), ((2, 1),), ((2, 2),))
    varying = {(0, 1), (1, 1), (2, 1), (2, 2)}
    given = scalars((3, 7), (3, 8), (3, 3))
    assert values(with_values_apart(given, varying, [both])) == [[3, 7], [3, 8], [4, 5]]
    assert values(with_values_apart(given, varying, [both, both])) == [[3, 7], [3, 8], [4, 5]]
    assert values(with_values_apart(given, varying, [both, ALONE])) == [[3, 7], [4, 8], [5, 6]]


def test_those_that_nothing_rests_on_stay_as_they_are() -> None:
    given = scalars((3, 7), (3, 8))
    assert with_values_apart(given, {(0, 1), (1, 1)}, [known()]) == tuple(given)
    assert with_values_apart(given, {(0, 1), (1, 1)}, []) == tuple(given)


def test_others_keep_their_values() -> None:
    given = scalars((3, 3), (3, 4))
    assert with_values_apart(given, (), [ALONE]) == tuple(given)
    assert values(with_values_apart(given, {(1, 1)}, [ALONE])) == [[3, 3], [5, 4]]


def test_a_submission_without_a_change_is_the_same_object() -> None:
    given = scalars((3, 5), (7, 9))
    made = with_values_apart(given, {(0, 1)}, [ALONE])
    assert all(a is b for a, b in zip(made, given, strict=True))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.int8(127), [127, 126]), (np.uint8(255), [255, 254]), (np.int8(-128), [-128, -127]),
        (np.int64(2**63 - 1), [2**63 - 1, 2**63 - 2]), (np.uint16(0), [0, 1]),
    ],
)  # fmt: skip
def test_values_are_those_of_the_type(value: Any, found: list[int]) -> None:
    given = scalars((value, 1.5), (value, 1.5))
    made = with_values_apart(given, {(0, 1), (1, 1)}, [ALONE])
    assert [s.arguments[1].value for s in made] == found


def test_where_a_type_has_no_more_values_they_stay_equal() -> None:
    given = scalars(*[(np.int8(0), 1.5)] * 300)
    made = with_values_apart(given, {(s, 1) for s in range(300)}, [ALONE])
    found = [int(s.arguments[1].value) for s in made]
    assert set(found) == set(range(-128, 128))
    assert found[256:] == [0] * 44
