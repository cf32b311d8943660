"""``*`` of a tuple in calls and tuples: its items, in order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

VALUES = np.arange(1, 9, dtype=np.float64) / 3
POINT = (2, 5)
NOTHING = ()


def axpy(a, x, y):
    return a * x + y


def pair(a, i):
    return a[i], a[i] * 2


def conjugate(q):
    return q[0], -q[1]


def product(a, b, c, d):
    return a * c - b * d, a * d + b * c


def bumped(a, i):
    a[i] += 1
    return a[i], 1.0


def named(x, *, low, high):
    return min(max(x, low), high)


def clamp(x, low, high):
    return named(x, low=low, high=high)


@pytest.mark.parametrize(
    "text",
    [
        "axpy(*(2.0, a[i], 1.0))",
        "axpy(2.0, *pair(a, i))",
        "axpy(*pair(a, i), 3.0)",
        "product(*pair(a, i), *conjugate(pair(a, i)))[1]",
        "product(*product(*pair(a, i), *pair(a, i)), *POINT)[0]",
        "axpy(a[i], *NOTHING, *POINT)",
        "min(*pair(a, i))",
        "math.hypot(*pair(a, i))",
        "clamp(a[i], *POINT)",
        "np.float64(*(a[i],))",
        "(*pair(a, i), 7.0)[2] + (1.0, *pair(a, i))[2]",
        "axpy(*(*pair(a, i), 0.5))",
    ],
)
def test_items_stand_for_the_star(text):
    kernel = define(
        f"def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = {text}\n",
        math=math, np=np, axpy=axpy, pair=pair, conjugate=conjugate, product=product,
        clamp=clamp, POINT=POINT, NOTHING=NOTHING,
    )  # fmt: skip
    run_both(kernel, VALUES.size, VALUES, np.zeros_like(VALUES))


@pytest.mark.parametrize(
    "text",
    [
        "axpy(*bumped(a, i), a[i])",
        "axpy(a[i], *bumped(a, i))",
        "axpy(*(a[i], a[i] + 1), bumped(a, i)[0])",
        "product(*bumped(a, i), *bumped(a, i))[0]",
        "(a[i], *bumped(a, i))[0]",
        "(*(a[i], 1.0), *bumped(a, i))[0]",
    ],
)
def test_arguments_are_evaluated_from_left_to_right(text):
    kernel = define(
        f"def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = {text}\n",
        axpy=axpy, product=product, bumped=bumped,
    )  # fmt: skip
    run_both(kernel, VALUES.size, VALUES, np.zeros_like(VALUES))


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("axpy(*a[i:], 1.0)", r"\* of a 1-d part of an array", "unpack a row"),
        ("axpy(*a[i], 1.0)", r"\* of a number", "tuple"),
        ("axpy(*POINT)", "argument", ""),
        ("axpy(*POINT, *POINT)", "argument", ""),
        ("math.sqrt(*POINT)", "sqrt takes 1", ""),
        ("np.float64(*POINT)", "one number", ""),
        ("item.get_id(*POINT)", "one dimension", ""),
    ],
)
def test_what_is_refused(text, what, remedy):
    kernel = define(
        f"def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = {text}\n",
        math=math, np=np, axpy=axpy, POINT=POINT,
    )  # fmt: skip
    with pytest.raises(KernelLanguageError, match=what) as error:
        specialised(kernel, VALUES.size, VALUES, np.zeros_like(VALUES))
    assert remedy in str(error.value)
