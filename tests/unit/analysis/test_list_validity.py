"""For which sizes and scalars all answers about parts of a list hold."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import fusionq as fq
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.list_validity import ListValidity
from fusionq.analysis.questions import Questions
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition, Validity
from tests.unit.lists import completed, submissions

N = 12


@fq.kernel
def row(item: fq.Item, d, k):
    d[k, item.get_id(0)] = 1


def rows(*numbers):
    d = np.zeros((N, N), np.float32)
    return submissions(*((row, N, d, k) for k in numbers))


def of_scalar(limit=100, conditions=(), pinned=()):
    """An answer about the scalar of one submission."""
    return Validity((("s0", (Source(0, 1, None),)),), pinned, (("s0", limit),), conditions)


POSITIVE = (Condition("k > 0", ("k",), (("s0",),)),)


@pytest.mark.parametrize("pair", list(combinations(range(4), 2)))
def test_an_answer_holds_for_all_that_it_was_used_for(pair):
    """Four rows are different ones; of two that are the same the plan would know nothing."""
    questions = Questions(rows(3, 4, 5, 6))
    found = completed(direct_dependences(questions))
    assert {d.scope for of_one in found for d in of_one} == {"NONE"}
    validity = questions.validity.result()
    assert validity.holds(rows(9, 8, 7, 6))
    numbers = [3, 4, 5, 6]
    numbers[pair[1]] = numbers[pair[0]]
    assert not validity.holds(rows(*numbers))


@pytest.mark.parametrize("wrong", range(3))
def test_each_use_of_one_answer_has_its_condition(wrong):
    found = ListValidity(rows(1, 2, 3))
    answer = of_scalar(conditions=POSITIVE)
    for s in range(3):
        found.add(answer, (s,))
    numbers = [1, 2, 3]
    assert found.result().holds(rows(*numbers))
    numbers[wrong] = 0
    assert not found.result().holds(rows(*numbers))


def test_of_an_answer_about_sizes_one_use_says_all():
    found = ListValidity(rows(1, 2, 3))
    sizes = Condition("n > 4", ("n",), (("n0",),))
    answer = Validity((("n0", (Source(0, None, 0),)),), (), (("n0", 1 << 40),), (sizes,))
    for s in range(3):
        found.add(answer, (s,))
    (condition,) = found.result().conditions
    assert (condition.text, len(condition.uses)) == ("n > 4", 1)
    assert dict(found.result().limits)[condition.uses[0][0]] < 1 << 40  # as for any size


@pytest.mark.parametrize("limits", [(50, 70), (70, 50)])
def test_of_two_limits_of_one_scalar_the_lower_counts(limits):
    found = ListValidity(rows(1, 2))
    for limit in limits:
        found.add(of_scalar(limit), (0,))
    found.add(of_scalar(90), (1,))
    validity = found.result()
    assert [validity.holds(rows(k, 2)) for k in (50, 51)] == [True, False]
    assert [validity.holds(rows(1, k)) for k in (90, 91)] == [True, False]


def test_a_size_stays_in_its_order():
    found = ListValidity(rows(1))
    found.demand_between(N, 8, N + 1)
    assert found.result().holds(rows(1))
    found.demand_between(N, N + 1, 64)
    assert not found.result().holds(rows(1))
