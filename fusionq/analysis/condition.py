"""Sets of parameter values as Python expressions."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl


def python_condition(values: isl.Set) -> str:
    """A parameter set as a Python expression over its parameters.

    From the constraints themselves: isl's own printer of expressions (``isl.AstBuild``) corrupts
    the heap where it reaches the limit of operations (isl 0.27).
    """
    found = [_conjunction(one) for one in values.compute_divs().get_basic_sets()]
    return " or ".join(found) if found else "False"


def _conjunction(values: isl.BasicSet) -> str:
    quotients: list[str] = []  # each may be of those before it
    for position in range(values.dim(isl.dim_type.div)):
        quotient = values.get_div(position)
        divisor = quotient.get_denominator_val()
        whole = _sum(quotient.scale_val(divisor), quotients)
        quotients.append(f"({whole}) // {divisor.to_python()}")
    constraints = [
        f"{_sum(constraint.get_aff(), quotients)} {'==' if constraint.is_equality() else '>='} 0"
        for constraint in values.get_constraints()
    ]
    return f"({' and '.join(constraints)})" if constraints else "True"


def _sum(terms: isl.Aff, quotients: Sequence[str]) -> str:
    """An affine expression of parameters and of ``quotients``."""
    param, div = isl.dim_type.param, isl.dim_type.div
    names = [terms.get_dim_name(param, position) for position in range(terms.dim(param))]
    inside = [f"({quotient})" for quotient in quotients[: terms.dim(div)]]
    found = []
    for kind, factors in ((param, names), (div, inside)):
        for position, factor in enumerate(factors):
            coefficient = terms.get_coefficient_val(kind, position)
            if not coefficient.is_zero():
                found.append(f"{coefficient.to_python()} * {factor}")
    return " + ".join([*found, str(terms.get_constant_val().to_python())])
