"""A quasi-affine function of the work-item's ids as an IR expression."""

from __future__ import annotations

from collections.abc import Callable

import islpy as isl

from fusionq.ir.nodes import Binary, Const, Expr
from fusionq.ir.types import INT64


def affine_expression(
    aff: isl.Aff, dimension: Callable[[int], Expr], symbol: Callable[[str], Expr]
) -> Expr:
    """``aff``, rounded down where it is no integer (as its divisions are); ``dimension`` gives
    the value of an input, ``symbol`` a parameter's."""
    denominator = int(aff.get_denominator_val().to_python())
    terms: list[Expr] = []

    def add(coefficient: isl.Val, value: Expr) -> None:
        factor = int(coefficient.mul(aff.get_denominator_val()).to_python())
        if factor == 1:
            terms.append(value)
        elif factor:
            terms.append(Binary(INT64, "mul", Const(INT64, factor), value))

    for d in range(aff.dim(isl.dim_type.in_)):
        add(aff.get_coefficient_val(isl.dim_type.in_, d), dimension(d))
    for p in range(aff.dim(isl.dim_type.param)):
        coefficient = aff.get_coefficient_val(isl.dim_type.param, p)
        if not coefficient.is_zero():
            name = aff.get_dim_name(isl.dim_type.param, p)
            assert name is not None
            add(coefficient, symbol(name))
    for d in range(aff.dim(isl.dim_type.div)):
        coefficient = aff.get_coefficient_val(isl.dim_type.div, d)
        if not coefficient.is_zero():
            add(coefficient, affine_expression(aff.get_div(d), dimension, symbol))
    constant = aff.get_constant_val().mul(aff.get_denominator_val())
    if not constant.is_zero() or not terms:
        terms.append(Const(INT64, int(constant.to_python())))
    total = terms[0]
    for term in terms[1:]:
        total = Binary(INT64, "add", total, term)
    if denominator != 1:
        total = Binary(INT64, "floordiv", total, Const(INT64, denominator))
    return total
