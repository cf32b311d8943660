"""``sum``, ``min``, ``max``, ``any`` and ``all`` of tuples and rows; ``in``, ``is None``, lists,
parts of tuples and ``float("inf")``: as in plain Python."""

import re

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

DTYPES = ("int8", "uint16", "int32", "int64", "float16", "float32", "float64")
EXPRESSIONS = [
    "sum(a[i])", "sum(a[i, 1:])", "sum((a[i, 0], a[i, 1], 2))", "sum(a[i]) / 3",
    "max(a[i])", "min(a[i, 1:3])", "max((a[i, 0], a[i, 1]))", "min([a[i, 2], a[i, 0], a[i, 1]])",
    "min((a[i, 0],))", "int(any(a[i]))", "int(all(a[i]))",
    "int(any((a[i, 0] > 3, a[i, 1] > 3)))", "int(all((a[i, 0] > 0, i < 3)))",
    "int(a[i, 0] in (1, 3, 5))", "int(a[i, 0] not in (1, 3, 5))", "int(i in (a[i, 1], 2))",
    "[5, 7, 9][i % 3]", "sum((1, 2, 3, 4)[1:])", "sum((1, 2, 3, 4)[::-2])",
    "(a[i, 0], 3, a[i, 1])[1:][1]",
]  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_value_is_pythons(expression, dtype):
    text = f"def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = {expression}\n"
    a = np.random.default_rng(1).integers(0, 7, (5, 4)).astype(dtype)
    with np.errstate(all="ignore"):
        run_both(define(text), 5, a, np.zeros(5, np.float64))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_devices_agree(expression):
    text = f"def k(item, a, out):\n    i = item.get_id(0)\n    out[i] = {expression}\n"
    kernel = fq.kernel(define(text))
    a = np.random.default_rng(1).standard_normal((50, 4)).astype(np.float32)
    outputs = []
    for queue in (fq.FusionQueue("reference"), fq.FusionQueue()):
        with queue:
            out = fq.Buffer(np.zeros(50, np.float32))
            queue.submit(kernel, 50, fq.Buffer(a), out)
            outputs.append(out.numpy().tobytes())
    assert outputs[0] == outputs[1]


def scaled(x, factor=None):
    if factor is None:
        return x
    if factor is not None and x is None:
        return 0
    return x * factor


def with_none(item, a, out):
    i = item.get_id(0)
    out[i] = scaled(a[i]) + scaled(a[i], 3) + (1 if a is None else 2) + (4 if None is None else 5)


def infinities(item, a, out):
    i = item.get_id(0)
    least = float("inf")
    for x in a:
        if x < least:
            least = x
    out[i] = least
    out[i] += np.float32("-inf") if least > 100 else float("1.5")


@pytest.mark.parametrize("function", [with_none, infinities])
def test_statements(function):
    run_both(function, 4, np.arange(3, 7, dtype=np.float32), np.zeros(4, np.float32))


REFUSED = [
    ("out[i] = a[[0, 1]]", "lists are no indices"),
    ("w = [0, 1]\n    out[i] = a[w]", "lists are no indices"),
    ("w = [0, 1]\n    w[0] = 2", "tuples cannot be changed"),
    ("fq.AtomicRef(a, [0, 1]).fetch_add(1)", "a list is no index"),
    ("out[i] = sum(a)", "sum of a 2-d array"),
    ("out[i] = max(i)", "max of a number"),
    ("out[i] = min(())", "min of a tuple of 0"),
    ("out[i] = a[i, 0] is a[i, 1]", "'is' compares with None"),
    ("out[i] = a[i, 0] in a[i]", "'in' looks into tuples"),
    ("out[i] = (1, 2)[i:]", "a bound must be an integer constant"),
    ("out[i] = (1, 2)[::0]", "the step of a slice is 0"),
    ('out[i] = float("one")', "'one' is no number"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_what_is_refused(line, message):
    text = f"def k(item, a, out):\n    i = item.get_id(0)\n    {line}\n"
    with pytest.raises(KernelLanguageError, match=re.escape(message)):
        specialised(define(text, fq=fq), 4, np.zeros((4, 4), np.float32), np.zeros(4, np.float32))
