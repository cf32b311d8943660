"""Random expressions of bfloat16 and other numbers: the IR and the device compute what ml_dtypes
does, fused or not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import run_function
from fusionq.frontend.kernel import kernel
from fusionq.language.ranges import as_range
from tests.property.kernel_parameters import define
from tests.property.running import contents, examples, needs_host_memory, on_device

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

N = 24
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SPECIAL = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3e38, 1e-39, 256]
HEAD = """from tests.property.test_bfloat16 import Weak
import ml_dtypes
import numpy as np
import fusionq as fq
bfloat16 = ml_dtypes.bfloat16
HALF = bfloat16(0.5)
"""


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(("+", "-", "*", "/", "+", "*", "//", "%"))
    binary = st.tuples(inner, operators, inner).map(" ".join).map("({})".format)
    unary = st.sampled_from(
        ("(-{})", "abs({})", "bfloat16({})", "bfloat16(np.float32({}))", "np.floor({})")
    )
    applied = st.tuples(unary, inner).map(lambda pair: pair[0].format(pair[1]))
    two = st.sampled_from(("np.minimum", "np.maximum", "np.fmin", "np.fmax", "min", "max"))
    extremum = st.tuples(two, inner, inner).map(
        lambda three: f"{three[0]}(bfloat16({three[1]}), bfloat16({three[2]}))"
    )
    chosen = st.tuples(inner, inner, st.sampled_from(("<", "<=", "==", "!=")), inner, inner).map(
        lambda five: "(bfloat16({}) if {} {} {} else bfloat16({}))".format(*five)
    )
    return st.one_of(binary, binary, binary, applied, extremum, chosen)


LEAVES = st.sampled_from(
    ("a[i]", "b[i]", "y", "w", "a[N - 1 - i]", "HALF", "bfloat16(x[i])", "2 * b[i]",
     "(a[i] + weak(0.1))")
)  # fmt: skip
"""None is a Python number: kernels give it the type beside it on all paths, Python does not."""
NUMBERS = st.recursive(LEAVES, _combined, max_leaves=6)
OTHERS = st.sampled_from(
    ("2", "weak(0.3)", "x[i]", "weak(-3.25)", "np.float32(x[i])", "np.float16(0.1)")
)


class Weak:
    """A Python float in what Python runs, where a bfloat16 beside it keeps its type."""

    __array_ufunc__ = None  # NumPy's operators leave it to these

    def __init__(self, value: float) -> None:
        self.value = value

    def beside(self, other: Any) -> Any:
        return ml_dtypes.bfloat16(self.value) if np.asarray(other).dtype == BFLOAT16 else self.value

    def __radd__(self, other: Any) -> Any:
        return other + self.beside(other)

    def __rsub__(self, other: Any) -> Any:
        return other - self.beside(other)

    def __rmul__(self, other: Any) -> Any:
        return other * self.beside(other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.beside(other)


@st.composite
def programs(draw: Any) -> tuple[str, tuple[Any, ...]]:
    """Two kernels' text, of which the second reads what the first writes, and their arguments."""

    def body(last: str) -> str:
        lines = ["y, w = b[i], a[i]"]
        for _ in range(draw(st.integers(1, 3))):
            value = f"{draw(NUMBERS)} {draw(st.sampled_from('+-*/'))} {draw(OTHERS)}"
            lines += draw(
                st.sampled_from(
                    (
                        [f"out[i] = {value}"],
                        [f"w = bfloat16({value})"],
                        [f"if {draw(NUMBERS)} > {draw(NUMBERS)}:", f"    w = bfloat16({value})"],
                        ["s = bfloat16(0)", f"for k in range({draw(st.integers(0, 3))}):",
                         f"    s = bfloat16(s * w + ({value}))", "y = s"],
                        ["p = fq.PrivateArray(2, bfloat16)", f"p[:] = bfloat16({value})",
                         "p[1] *= w", "y = p[1] / p[0]"],
                    )
                )
            )  # fmt: skip
        lines.append(last)
        return "\n".join(f"    {line}" for line in ["i = item.get_id(0)", *lines])

    text = f"{HEAD}N = {N}\ndef first(item, a, b, x, out):\n{body('out[i] = y * w')}\n"
    text += f"def second(item, a, b, x, out):\n{body('out[i] = out[i] + y * w')}\n"
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    bfloat16 = ml_dtypes.bfloat16
    a, b, t, out = ((rng.normal(size=N) * 4).astype(bfloat16) for _ in range(4))
    for array in (a, b):
        array[:10] = rng.permutation(SPECIAL)
    x = rng.normal(size=N).astype(draw(st.sampled_from(("float32", "float64", "float16", "int8"))))
    return text, (a, b, x, t, out)


def by_ml_dtypes(text: str, arguments: tuple[Any, ...]) -> Any:
    a, b, x, t, out = (array.copy() for array in arguments)
    text = text.replace("weak(", "Weak(")
    run_function(define(text, "first"), as_range(N), [a, b, x, t])
    run_function(define(text, "second"), as_range(N), [t, a, x, out])
    return out


def by(target: str | None, text: str, arguments: tuple[Any, ...], fused: bool) -> Any:
    a, b, x, _, out = on_device(target, arguments)
    t = fq.Buffer(arguments[3], promote_private=True)
    text = re.sub(r"weak\((\S+?)\)", r"\1", text)
    first, second = kernel(define(text, "first")), kernel(define(text, "second"))
    with fq.FusionQueue(target) as queue:
        if fused:
            with fq.fusion(queue):
                queue.submit(first, N, a, b, x, t)
                queue.submit(second, N, t, a, x, out)
        else:
            queue.submit(first, N, a, b, x, t)
            queue.submit(second, N, t, a, x, out)
    return contents(out)


def check(target: str | None, program: tuple[str, tuple[Any, ...]], fused: bool) -> None:
    found, expected = by(target, *program, fused), by_ml_dtypes(*program)
    numbers = expected == expected
    np.testing.assert_array_equal(found == found, numbers)
    wrong = found.view(np.uint16)[numbers] != expected.view(np.uint16)[numbers]
    assert not wrong.any(), (program[0], found, expected)


@examples(30)
@given(programs(), st.booleans())
def test_the_ir_computes_what_ml_dtypes_does(program: Any, fused: bool) -> None:
    check("reference", program, fused)


@needs_host_memory
@examples(10)
@given(programs(), st.booleans())
def test_the_device_computes_what_ml_dtypes_does(program: Any, fused: bool) -> None:
    check(None, program, fused)
