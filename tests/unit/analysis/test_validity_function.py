"""A Validity that is asked again and again says what it says when it is asked once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.analysis import validity_function
from fusionq.analysis.submission import Operands, SubmissionForm
from fusionq.analysis.symbol_sources import Source
from fusionq.analysis.validity import Condition, Validity
from fusionq.analysis.validity_function import ASKED_BEFORE, COMPILED

EXTENTS = st.integers(0, 6)
FORM = SubmissionForm(("two arrays and a scalar",), (0, 0, 1), (), (), True)
"""Of a kernel with the arguments array, scalar, array."""
SOURCES = st.one_of(
    st.builds(Source, st.integers(0, 1), st.none(), st.integers(0, 1)),
    st.builds(Source, st.integers(0, 1), st.sampled_from([0, 2]), st.integers(0, 1)),
    st.builds(Source, st.integers(0, 1), st.just(1), st.none()),
)
TEXTS = st.sampled_from(["a <= b", "a % 2 == b % 2", "not (a + b < 3)", "a * b >= 2 or a == 0"])


@st.composite
def validities(draw):
    names = ["n0", "n1", "n2"][: draw(st.integers(1, 3))]
    places = st.lists(SOURCES, min_size=1, max_size=2).map(tuple)
    pairs = st.tuples(st.sampled_from(names), st.integers(0, 5))
    uses = st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), min_size=1)
    return Validity(
        sources=tuple((name, draw(places)) for name in names),
        pinned=tuple(draw(st.lists(pairs, max_size=1))),
        limits=tuple(draw(st.lists(pairs, max_size=2))),
        conditions=tuple(
            Condition(text, ("a", "b"), tuple(draw(uses)))
            for text in draw(st.lists(TEXTS, max_size=2))
        ),
        constants=tuple(draw(st.lists(st.tuples(SOURCES, st.integers(0, 5)), max_size=1))),
    )


@st.composite
def lists(draw, is_nd):
    made = []
    for nd in is_nd:
        extents = draw(EXTENTS), draw(EXTENTS)
        space = fq.NdRange(extents, (1, 1)) if nd else fq.Range(*extents)
        places = [((draw(EXTENTS), draw(EXTENTS)), (8, 8), 1, 0, None) for _ in range(2)]
        made.append(Operands(FORM, space, places, [draw(st.integers(-5, 5))]))
    return made


@given(st.data())
def test_a_compiled_validity_says_the_same(data):
    validity = data.draw(validities())
    is_nd = data.draw(st.tuples(st.booleans(), st.booleans()))
    first = data.draw(lists(is_nd))
    for _ in range(ASKED_BEFORE + 1):
        assert id(validity) not in COMPILED
        validity.holds(first)
    _, compiled = COMPILED.pop(id(validity))
    others = [first, *data.draw(st.lists(lists(is_nd), min_size=1, max_size=8))]
    for operands in others:  # which is not compiled while it is not asked four times
        fresh = Validity(*[getattr(validity, name) for name in validity.__slots__])
        assert compiled(operands) == fresh.holds(operands)


def test_a_compiled_validity_is_the_one_that_is_asked(monkeypatch):
    RANGE = Source(0, None, 0)
    validity = Validity((("n", (RANGE,)),), (), (), (Condition("n < 9", ("n",), (("n",),)),))
    asked = [Operands(FORM, fq.Range(n), [], []) for n in (8, 9)]
    for _ in range(ASKED_BEFORE + 2):
        assert [validity.holds([one]) for one in asked] == [True, False]
    monkeypatch.setitem(COMPILED, id(validity), (validity, lambda of: "compiled"))
    assert validity.holds([asked[0]]) == "compiled"


def test_long_ones_are_not_compiled(monkeypatch):
    monkeypatch.setattr(validity_function, "MOST_TERMS", 2)
    names = ["n0", "n1", "n2"]
    validity = Validity(tuple((name, (Source(0, None, 0),)) for name in names), (), ())
    for _ in range(ASKED_BEFORE + 2):
        assert validity.holds([Operands(FORM, fq.Range(3), [], [])])
    assert id(validity) not in COMPILED


@pytest.mark.parametrize("capacity", [1, 2])
def test_no_more_than_the_latest_are_remembered(monkeypatch, capacity):
    monkeypatch.setattr(validity_function, "CAPACITY", capacity)
    monkeypatch.setattr(validity_function, "COMPILED", {})
    monkeypatch.setattr("fusionq.analysis.validity.COMPILED", validity_function.COMPILED)
    kept = [Validity((), ((f"n{k}", k),)[:0], ()) for k in range(5)]
    for validity in kept:
        for _ in range(ASKED_BEFORE + 2):
            assert validity.holds([Operands(FORM, fq.Range(3), [], [])])
    assert 1 <= len(validity_function.COMPILED) <= capacity
