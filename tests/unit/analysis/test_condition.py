"""Conditions as Python text say what the sets say, whatever operations isl has left."""

from __future__ import annotations

import subprocess
import sys

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusionq.analysis.condition import python_condition
from fusionq.analysis.validity_function import condition_function
from fusionq.cache.condition import is_condition
from tests.property.running import examples

NAMES = ("n", "m", "k")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("[n] -> { : }", "True"),
        ("[n] -> { : n > n }", "False"),
        ("[n] -> { : n >= 3 }", "(1 * n + -3 >= 0)"),
        ("[n, m] -> { : n = 2m }", "(-1 * n + 2 * m + 0 == 0)"),
    ],
)
def test_texts(values, text):
    assert python_condition(isl.Set(values)) == text


def sums(names, quotients=()):
    terms = st.tuples(st.integers(-4, 4), st.sampled_from((*names, *quotients)))
    return st.builds(
        lambda terms, constant: " + ".join([*(f"{c}*{name}" for c, name in terms), str(constant)]),
        st.lists(terms, min_size=1, max_size=3),
        st.integers(-9, 9),
    )


@st.composite
def conjunctions(draw):
    quotients = ("e", "f")[: draw(st.integers(0, 2))]
    parts = []
    for position, name in enumerate(quotients):
        divisor = draw(st.integers(2, 7))
        parts.append(f"{name} = floor(({draw(sums(NAMES, quotients[:position]))})/{divisor})")
    for _ in range(draw(st.integers(1, 3))):
        compared = draw(st.sampled_from((">=", "<", "=")))
        parts.append(f"{draw(sums(NAMES, quotients))} {compared} {draw(sums(NAMES))}")
    inside = " and ".join(parts)
    return f"(exists ({', '.join(quotients)}: {inside}))" if quotients else f"({inside})"


@examples(60)
@given(
    st.lists(conjunctions(), min_size=1, max_size=3),
    st.lists(st.tuples(*[st.integers(-15, 30)] * 3), min_size=6, max_size=6),
)
def test_they_hold_where_the_set_does(parts, points):
    values = isl.Set(f"[n, m, k] -> {{ : {' or '.join(parts)} }}")
    text = python_condition(values)
    assert is_condition(text, NAMES)
    for point in points:
        here = " and ".join(f"{name} = {n}" for name, n in zip(NAMES, point, strict=True))
        inside = not values.intersect(isl.Set(f"[n, m, k] -> {{ : {here} }}")).is_empty()
        assert bool(condition_function(text, NAMES)(*point)) == inside


LIMITS = """
import islpy as isl
from fusionq.analysis.condition import python_condition
from fusionq.analysis.proof import TooManyOperations, limited_operations
values = isl.Set('''[n, m] -> { : (1 + m + floor((-1 + m)/5)) mod 2 = 0 and
    45*floor((-5 - 16m)/45) <= -25 - 16m and ((2m <= 1 + n and 3m >= 4 + n) or (2m >= 2 + n and
    30*floor((-5 - 16m)/45) >= -25 - 5n - 9m and 2*floor((1 + n)/2) >= 4 + n - m)) }''')
answers = 0
for limit in [*range(10, 3000, 61), 10_000, 100_000]:
    try:
        with limited_operations(limit):
            answers += bool(python_condition(values))
    except TooManyOperations:
        pass
print("answers" if answers else "none")
"""


@pytest.mark.slow
def test_isl_stops_at_any_point():
    """In a process of its own, which isl's own printer of expressions ended by a signal."""
    run = subprocess.run([sys.executable, "-c", LIMITS], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "answers\n"), run.stderr
