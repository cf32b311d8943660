"""Strings are constants that kernels compare, which is decided when they are compiled."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from fusionq.base.errors import KernelLanguageError
from fusionq.ir.nodes import If
from fusionq.ir.walk import statements
from tests.unit.frontend.running import define, run_both, specialised

VALUES = np.arange(-3, 5, dtype=np.float64)
MODE = "call"
KINDS = ("double", "negate", "other")


class Kind(str, enum.Enum):
    CALL = "call"
    PUT = "put"


class Layer:
    def __init__(self, activation):
        self.activation = activation

    def apply(self, x):
        if self.activation == "relu":
            return max(x, 0.0)
        if self.activation in ("tanh", "none"):
            return x
        return -x


RELU, OTHER, NONE = Layer("relu"), Layer("softplus"), Layer("none")


def changed(x, kind):
    if kind == "double":
        return 2 * x
    if kind != "negate":
        return x + 0.5
    return -x


def default(x, kind="double"):
    return changed(x, kind)


NAMES = {
    "MODE": MODE, "KINDS": KINDS, "Kind": Kind, "RELU": RELU, "OTHER": OTHER, "NONE": NONE,
    "changed": changed, "default": default,
}  # fmt: skip


def of(text):
    return define(f"def k(item, a, out):\n    i = item.get_id(0)\n    {text}\n", **NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "out[i] = a[i] if MODE == 'call' else -a[i]",
        "out[i] = a[i] if 'call' != MODE else -a[i]",
        "out[i] = a[i] if MODE in ('put', 'call') else -a[i]",
        "out[i] = a[i] if MODE not in ('put', 'call') else -a[i]",
        "out[i] = a[i] if MODE in KINDS else -a[i]",
        "out[i] = a[i] if MODE in () else -a[i]",
        "out[i] = a[i] if MODE == Kind.CALL else -a[i]",
        "out[i] = a[i] if Kind.PUT == MODE else -a[i]",
        "out[i] = a[i] if Kind.PUT in (Kind.PUT, Kind.CALL) else -a[i]",
        "out[i] = a[i] if MODE is None else -a[i]",
        "out[i] = a[i] if MODE == 'call' and a[i] > 0 else -a[i]",
        "out[i] = changed(a[i], 'negate')",
        "out[i] = changed(a[i], kind='other') + changed(a[i], MODE)",
        "kind = 'double'\n    out[i] = changed(a[i], kind)",
        "for kind in KINDS: out[i] += changed(a[i], kind)",
        "for kind in ('double', 'negate'): out[i] += changed(a[i], kind)",
        "out[i] = RELU.apply(a[i]) + OTHER.apply(a[i]) * NONE.apply(a[i])",
    ],
)
def test_comparisons_of_strings(text):
    kernel = of(text)
    run_both(kernel, VALUES.size, VALUES, np.zeros_like(VALUES))
    ir = specialised(kernel, VALUES.size, VALUES, np.zeros_like(VALUES))
    assert not any(isinstance(s, If) for s in statements(ir.body))


def test_another_string_is_another_kernel():
    first, second = (
        specialised(
            define("def k(item, a):\n    a[0] = 1 if MODE == 'x' else 2\n", MODE=mode), 1, VALUES
        )
        for mode in ("x", "y")
    )
    assert first.body != second.body


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("out[i] = MODE", "not the string 'call'", "Compare it"),
        ("out[i] = MODE + 'x'", "not the string 'call'", "Compare it"),
        ("out[i] = a[i] == 'x'", "not the string 'x'", "Compare it"),
        ("out[i] = MODE < 'x'", "with == and != only", "tuple"),
        ("out[i] = MODE in 'recall'", "with == and != only", "tuple"),
        ("out[i] = 'x' in (1, 2)", "not the string 'x'", "=="),
        ("out[i] = len(MODE)", "len of the string", "array or a tuple"),
        ("out[i] = 1 if MODE else 2", "not the string 'call'", "Compare it"),
        ("kind = 'x' if a[i] > 0 else 'y'", "not the string 'x'", "Compare it"),
        (
            "if a[i] > 0: kind = 'x'\n    else: kind = 'y'\n    out[i] = changed(a[i], kind)",
            "the string 'x' .line 3. or the string 'y'",
            "another name",
        ),
    ],
)
def test_what_is_refused(text, what, remedy):
    with pytest.raises(KernelLanguageError, match=what) as error:
        specialised(of(text), VALUES.size, VALUES, np.zeros_like(VALUES))
    assert remedy in str(error.value)
