"""Whether an answer serves other submissions, asked one by one and of many at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.analysis import questions
from fusionq.analysis.list_dependences import direct_dependences
from fusionq.analysis.questions import Questions
from fusionq.analysis.serving import FEWEST_AT_ONCE, Serving
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition, Validity
from tests.unit.lists import completed, submissions

NAMES = ("n0", "s0", "s1")
PLACE = {(0, None, 0): 0, (0, 1, None): 1, (1, 1, None): 2, (1, 2, None): 3}
SOURCES = (
    ("n0", (Source(0, None, 0),)),
    ("s0", (Source(0, 1, None), Source(1, 1, None))),
    ("s1", (Source(1, 2, None),)),
)


def validity(conditions=(), pinned=(), limits=()):
    return Validity(SOURCES, pinned, limits, conditions)


def condition(text, uses=(NAMES,)):
    return Condition(text, NAMES, uses)


factors = st.integers(-3, 3)
sums = st.builds(
    lambda a, b, c, d: f"{a} * n0 + {b} * s0 + {c} * s1 + {d}",
    factors, factors, factors, st.integers(-9, 9),
)  # fmt: skip
constraints = st.builds(lambda s, sign: f"{s} {sign} 0", sums, st.sampled_from((">=", "==")))
conjunctions = st.lists(constraints, min_size=1, max_size=3).map(lambda c: f"({' and '.join(c)})")
disjunctions = st.lists(conjunctions, min_size=1, max_size=3).map(" or ".join)
texts = st.one_of(disjunctions, disjunctions.map(lambda text: f"not ({text})"))
uses = st.lists(st.permutations(NAMES).map(tuple), min_size=1, max_size=2).map(tuple)
rows = st.lists(
    st.tuples(st.integers(1, 8), st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5)),
    min_size=FEWEST_AT_ONCE, max_size=20,
)  # fmt: skip


def expected(found, row):
    """By the definition of a validity."""
    n, first, second, last = row
    values = {"n0": n, "s0": first, "s1": last}
    return (
        first == second
        and all(values[name] == value for name, value in found.pinned)
        and all(abs(values[name]) <= limit for name, limit in found.limits)
        and all(c.holds(values) for c in found.conditions)
    )


@given(st.lists(st.tuples(texts, uses), max_size=3), rows, st.booleans(), st.booleans())
def test_many_at_once_are_as_one_by_one(conditions, numbers, pins, limits):
    found = validity(
        tuple(condition(*each) for each in conditions),
        (("s1", 2),) if pins else (),
        (("n0", 6),) if limits else (),
    )
    numbers += [(n, a, a, c) for n, a, _, c in numbers]  # of which more serve
    serving = Serving(found, PLACE)
    one_by_one = [serving.holds(row) for row in numbers]
    assert one_by_one == [expected(found, row) for row in numbers]
    assert serving.hold(np.array(numbers)).tolist() == one_by_one


@pytest.mark.parametrize(
    "text",
    [
        "(1 * n0 + 2 * ((1 * s0 + 3) // 2) + 0 >= 0)",
        "n0 >= 5 or n0 <= -5",
        f"(1 * n0 + {-(1 << 40)} >= 0)",
        f"({1 << 40} * n0 + -3 >= 0)",
        "True",
        "False",
    ],
)
def test_conditions_of_other_forms(text):
    """Quotients, and numbers that products of floats are not exact for."""
    serving = Serving(validity((condition(text),)), PLACE)
    numbers = [(n, a, a, 0) for n in (1, 3, 7) for a in range(-4, 4)]
    assert serving.hold(np.array(numbers)).tolist() == [serving.holds(row) for row in numbers]


# ----------------------------------------------------------------- of the pairs of a list
@fq.kernel
def diagonal(item: fq.Item, d, k, low):
    i = item.get_id(0) + low
    d[i, k - i] = d[i - 1, k - i] + d[i, k - i - 1] + d[i - 1, k - i - 1]


@fq.kernel
def by_quotient(item: fq.Item, d, k):
    d[k // 3, item.get_id(0)] = d[(k + 1) // 3, item.get_id(0)] + 1


def diagonals(n):
    d = np.zeros((n + 1, n + 1), np.int64)
    for k in range(2, 2 * n + 1):
        low, high = max(1, k - n), min(n, k - 1)
        yield diagonal, high - low + 1, d, k, low


def quotients(n):
    d = np.zeros((n + 1, n))
    for k in range(3 * n):
        yield by_quotient, n, d, k


def far(n):
    d = np.zeros((n + 1, n))
    for k in range(2 * n):
        yield by_quotient, n, d, (1 << 40) * (k % 2) + k


@pytest.mark.parametrize("make", [diagonals, quotients, far])
def test_pairs_that_are_looked_up_together(monkeypatch, make):
    """Have the answers that they have one by one."""
    calls = list(make(12))

    def found():
        asked = Questions(submissions(*calls))
        of_each = completed(direct_dependences(asked))
        said = [[(d.producer, d.kind, d.scope) for d in of_one] for of_one in of_each]
        return said, asked.validity.result()

    together, serves_together = found()
    looked_up = []
    original = Questions._known_of_each

    def of_each(self, firsts, second, asked):
        looked_up.append(second)
        return original(self, firsts, second, asked)

    monkeypatch.setattr(Questions, "_known_of_each", of_each)
    monkeypatch.setattr(questions, "FEWEST_TOGETHER", 1)
    assert found() == (together, serves_together)
    assert looked_up
    monkeypatch.setattr(questions, "FEWEST_TOGETHER", 1 << 30)
    looked_up.clear()
    assert found() == (together, serves_together)
    assert not looked_up
