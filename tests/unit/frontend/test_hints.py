"""What hints say of functions and names that kernels do not know."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from fusionq.frontend.refused import COMBINING, attribute_meant, instead_of


@pytest.mark.parametrize(
    ("function", "name", "said"),
    [
        (print, "print", "on the host"),
        (random.random, "random.random", "random"),
        (np.random.default_rng, "np.random.default_rng", "random"),
        (np.zeros, "np.zeros", "fq."),
        (math.comb, "math.comb", "plain Python functions"),
    ],
)
def test_instead_of_a_function(function: object, name: str, said: str) -> None:
    assert said in instead_of(function, name)


def test_what_combines_elements_has_its_own_hint() -> None:
    name = next(iter(COMBINING))
    assert instead_of(getattr(np, name), f"np.{name}") == COMBINING[name]
    assert instead_of(math.comb, f"math.{name}") != COMBINING[name]


@pytest.mark.parametrize(
    ("name", "owner", "said"),
    [
        ("float32", math, "Did you mean numpy.float32?"),
        ("hypot", np, "Did you mean numpy.hypot?"),
        ("lgamma", np, "Did you mean math.lgamma?"),
        ("get_global_id", np, "item.get_global_id(d)"),
        ("sqroot", math, "sqrt"),
        ("strid", np.zeros(3), "strides"),
        ("nothing_like_it", math, "See its documentation."),
    ],
)
def test_the_attribute_that_is_meant(name: str, owner: object, said: str) -> None:
    assert said in attribute_meant(name, owner)
