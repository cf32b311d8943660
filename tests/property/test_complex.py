"""Random expressions of complex and real numbers: the IR and the device compute what NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fusionq as fq
from fusionq.backends.reference import run_function
from fusionq.frontend.kernel import kernel
from fusionq.language.ranges import as_range
from tests.property.kernel_parameters import define
from tests.property.running import (
    assert_identical,
    contents,
    examples,
    needs_host_memory,
    on_device,
)

N = 24
SPECIAL = [0, 1, -1, 1j, -0.0, np.inf, complex(0, -np.inf), np.nan, 1e30, complex(1e-30, 2)]


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join).map("({})".format)
    unary = st.sampled_from(("(-{})", "{}.conjugate()", "np.conj({})", "(+{})"))
    applied = st.tuples(unary, inner).map(lambda pair: pair[0].format(pair[1]))
    chosen = st.tuples(inner, inner, inner, inner).map(
        lambda four: "(np.complex128({}) if {} == {} else np.complex128({}))".format(*four)
    )
    part = inner.map("({}.real * 1j)".format)
    return st.one_of(binary, binary, binary, applied, chosen, part)


LEAVES = st.sampled_from(
    ("a[i]", "b[i]", "z", "w", "a[N - 1 - i]", "(x[i] + 0j)", "np.complex64(b[i])", "HALF")
)
"""None is a Python number: to the right of one, Python takes float64 for its own float."""
NUMBERS = st.recursive(LEAVES, _combined, max_leaves=6)
REAL = st.sampled_from(("2", "0.5", "x[i]", "i", "z.imag", "w.real", "np.float32(3)"))


@st.composite
def programs(draw: Any) -> tuple[str, tuple[Any, ...]]:
    """A kernel's text and its arguments."""
    lines = [f"z = {draw(NUMBERS.filter(lambda t: not set(t) & set('zw')))}", "w = 1j * b[i]"]
    for _ in range(draw(st.integers(1, 4))):
        value = f"{draw(NUMBERS)} {draw(st.sampled_from('+-*/'))} {draw(REAL)}"
        lines += draw(
            st.sampled_from(
                (
                    [f"out[i] = {value}"],
                    [f"out[i] {draw(st.sampled_from('+-*/'))}= {value}"],
                    [f"w = {value}"],
                    [f"if {draw(NUMBERS)}:", f"    w = np.complex128({value})", "else:",
                     "    w = np.complex128(w)"],
                    ["s = np.complex128(0)", f"for k in range({draw(st.integers(0, 3))}):",
                     f"    s = s * z + ({value})", "out[i] = s"],
                    ["p = fq.PrivateArray(2, np.complex64)", f"p[:] = {value}", "p[1] *= w",
                     "out[i] -= p[1] / p[0]"],
                    [f"out[i : i + 1] = out[i : i + 1] * ({value})"],
                )
            )
        )  # fmt: skip
    lines += ["out[i] = out[i] + z * w"]
    body = "\n".join(f"    {line}" for line in ["i = item.get_id(0)", *lines])
    head = f"import numpy as np\nimport fusionq as fq\nN = {N}\nHALF = np.complex64(0.5 - 2j)\n"
    text = f"{head}def k(item, a, b, x, out):\n{body}\n"
    dtypes = [np.dtype(draw(st.sampled_from(("complex64", "complex128")))) for _ in range(3)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [(rng.normal(size=N) + 1j * rng.normal(size=N)).astype(t) for t in dtypes]
    for array in arrays[:2]:
        array[:10] = rng.permutation(SPECIAL)
    x = rng.normal(size=N).astype(draw(st.sampled_from(("float32", "float64", "float16", "int32"))))
    return text, (arrays[0], arrays[1], x, arrays[2])


def by_numpy(text: str, arguments: tuple[Any, ...]) -> Any:
    own = [a.copy() for a in arguments]
    run_function(define(text, "k"), as_range(N), own)
    return own[3]


def by(target: str | None, text: str, arguments: tuple[Any, ...]) -> Any:
    own = on_device(target, arguments)
    with fq.FusionQueue(target) as queue:
        queue.submit(kernel(define(text, "k")), N, *own)
    return contents(own[3])


def check(target: str | None, program: tuple[str, tuple[Any, ...]]) -> None:
    found, expected = by(target, *program), by_numpy(*program)
    parts = [array.view(array.real.dtype) for array in (found, expected)]
    assert_identical([parts[0]], [parts[1]])


@examples(80)
@given(programs())
def test_the_ir_computes_what_numpy_does(program: tuple[str, tuple[Any, ...]]) -> None:
    check("reference", program)


@needs_host_memory
@examples(40)
@given(programs())
def test_the_device_computes_what_numpy_does(program: tuple[str, tuple[Any, ...]]) -> None:
    check(None, program)
