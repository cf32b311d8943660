"""Conjunctions of conditions."""

from __future__ import annotations

from fusionq.ir.conjunctions import TRUE, conjunction, conjuncts
from fusionq.ir.nodes import Compare, Logical, Unary, Var
from fusionq.ir.types import BOOL, FLOAT32, INT32

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


def test_what_does_not_hold_comes_apart_too() -> None:
    def no(condition):
        return Unary(BOOL, "not", condition)

    assert conjuncts(no(Logical("or", A, no(B)))) == [no(A), B]
    assert conjuncts(Logical("or", A, Logical("or", B, C)), holds=False) == [no(A), no(B), no(C)]
    assert conjuncts(no(Logical("and", A, B))) == [no(Logical("and", A, B))]


def test_only_comparisons_of_integers_have_opposites() -> None:
    def less(type):
        return Compare("lt", Var(type, "x"), Var(type, "y"))

    assert conjuncts(less(INT32), holds=False) == [Compare("ge", Var(INT32, "x"), Var(INT32, "y"))]
    assert conjuncts(less(FLOAT32), holds=False) == [Unary(BOOL, "not", less(FLOAT32))]
