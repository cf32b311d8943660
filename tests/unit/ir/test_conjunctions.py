"""Conjunctions of conditions."""

from __future__ import annotations

from fusionq.ir.conjunctions import TRUE, conjunction, conjuncts
from fusionq.ir.nodes import Logical, Var
from fusionq.ir.types import BOOL

A, B, C = (Var(BOOL, name) for name in "abc")


def test_conditions_are_asked_from_left_to_right() -> None:
    assert conjunction([A, B, C]) == Logical("and", Logical("and", A, B), C)


def test_one_condition_and_none() -> None:
    assert conjunction([A]) == A
    assert conjunction([]) == TRUE
    assert conjunction([TRUE, A]) == A


def test_a_conjunction_comes_apart_into_its_conditions() -> None:
    assert conjuncts(conjunction([A, B, C])) == [A, B, C]
    assert conjuncts(Logical("and", A, Logical("and", B, C))) == [A, B, C]
    assert conjuncts(Logical("or", A, B)) == [Logical("or", A, B)]
