"""Complex numbers: NumPy's results, in kernels that compute with pairs."""

import operator

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_ir, run_python, specialised

SPECIAL = [0, 1, np.inf, -np.inf, np.nan, 1j, -0.0, complex(-0.0, -0.0), complex(np.inf, 1)]
TURN, HALF = 1j, np.complex64(0.5 - 2j)


def numbers(dtype, seed):
    rng = np.random.default_rng(seed)
    made = (rng.normal(size=90) + 1j * rng.normal(size=90)).astype(dtype)
    made[:81] = np.roll(np.repeat(SPECIAL, 9) if seed else np.tile(SPECIAL, 9), 0)
    return made


def squared(z):
    return z * z


def rotated(z, k):
    if k > 3:
        return z * 1j
    return z


def function(*lines):
    body = "".join(f"    {line}\n" for line in ("i = item.get_id(0)", *lines))
    names = {
        "fq": fq, "TURN": TURN, "HALF": HALF, "squared": squared, "rotated": rotated,
        "operator": operator,
    }  # fmt: skip
    return define(f"def k(item, a, b, x, out, n):\n{body}", **names)


def run_both_bits(made, *arguments):
    """Both ways, compared bit for bit but for which NaN it is."""
    results = []
    for run in (run_ir, run_python):
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        run(made, len(arguments[0]), *own)
        results.append(own)
    for ours, numpys in zip(*results, strict=True):
        if isinstance(ours, np.ndarray):
            parts = [array.view(array.real.dtype) for array in (ours, numpys)]
            for p in parts:
                p[p != p] = np.nan if p.dtype.kind == "f" else 0
            bits = [p.view(f"u{p.itemsize}") for p in parts]
            np.testing.assert_array_equal(*bits)


BODIES = [
    ["out[i] = a[i] + b[i]", "out[i] = out[i] - HALF * 2"],
    ["out[i] = a[i] * b[i]"],
    ["out[i] = a[i] / b[i]"],
    ["out[i] = a[i] * x[i] + x[i] / b[i] - x[i]"],
    ["out[i] = i * a[i] - 3 / b[i] + 1.5 * TURN"],
    ["out[i] = -a[i].conjugate() + +np.conj(b[i]) + a[i].real * b[i].imag + x[i].real"],
    ["out[i] = abs(a[i]) + abs(b[i]) * 1j if abs(a[i].real) < 9 else 0j"],
    ["out[i] = a[i] == b[i]", "if a[i] != b[i]:", "    out[i] += 2j", "if a[i]:",
     "    out[i] *= TURN"],
    ["z = 0j", "for k in range(n):", "    z = z * z + a[i]", "    if abs(z) > 4:",
     "        break", "out[i] = z"],
    ["z = np.complex64(a[i])", "w = np.complex128(x[i])", "out[i] = z * w + complex(i, 2)",
     "out[i] -= complex(x[i])"],
    ["z, w = a[i], b[i]", "z, w = w, z", "out[i] = (z if n > 2 else w) - rotated(z, i)",
     "out[i] /= squared(w)"],
    ["p = fq.PrivateArray((2, 2), a.dtype, fill_zeros=True)", "p[0, 1] = a[i]", "p[1] = b[i]",
     "p[0] += p[1] * 2", "out[i] = p[0, 0] * p[0, 1] + p[1, 1]"],
    ["q = fq.PrivateArray(3, np.complex128)", "q[:] = a[i]", "w = q * (1 + 2j) - x[i]",
     "w[1:] *= w[0]", "out[i] = w[2] + operator.mul(w[1], 2)"],
    ["if i > 0:", "    out[i : i + 1] = a[i - 1 : i] + b[i : i + 1] / 2",
     "    out[i : i + 1] = -out[i : i + 1]"],
    ["out[i] = np.add(a[i], np.multiply(b[i], 1j)) - np.real(b[i]) * np.imag(a[i])"],
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("lines", BODIES)
def test_numpys_results(lines, dtype):
    a, b = numbers(dtype, 0), numbers(dtype, 1)
    x = np.linspace(-2, 3, 90).astype(dtype(0).real.dtype)
    x[:5] = 0, -0.0, np.inf, np.nan, 1
    run_both_bits(function(*lines), a, b, x, np.ones(90, dtype), 5)


def test_constants_are_part_of_the_kernel():
    def made(turn):
        def k(item, out):
            out[item.get_id(0)] = turn.conjugate() * turn.imag

        return fq.kernel(k)

    values = [1j, 2j, complex(0.0, -0.0), complex(-0.0, -0.0), np.complex64(1j)]
    assert len({made(value).fingerprint for value in values}) == len(values)
    for value in values:
        out = np.zeros(2, complex)
        run_ir(made(value), 2, out)
        np.testing.assert_array_equal(out, np.conj(value) * value.imag)


@pytest.mark.parametrize("other", [np.float64, np.float16, np.int32, np.int16, np.bool_])
def test_types_of_mixed_arithmetic(other):
    made = function("y = x[i]", "out[i] = a[i] * y + b[i]", "out[i] /= y - 3j")
    x = np.arange(90).astype(other)
    a, b = numbers(np.complex64, 0), numbers(np.complex128, 1)
    run_both_bits(made, a, b.astype(np.complex64), x, np.ones(90, np.complex128), 5)
    run_both_bits(made, b, a, x, np.ones(90, np.complex64), 5)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["out[i] = a[i] // 2"], "// of a complex number"),
        (["if a[i] < b[i]:", "    out[i] = 1"], "an order of a complex number"),
        (["out[i] = np.arcsin(a[i])"], "np.arcsin of a complex number"),
        (["out[i] = np.float32(a[i])"], "np.float32 of a complex number"),
        (["x[i] = a[i]"], "a complex number for an array of float64"),
        (["x[i : i + 1] = a[i : i + 1]"], "a complex number for an array of float64"),
        (["x[i : i + 1] += a[i]"], "this gives complex128, which an array of float64"),
        (["out[a[i]] = 1"], "a number is needed here, not a complex number of type complex128"),
        (["fq.AtomicRef(out, i).fetch_add(1)"], "no atomic operations on complex128"),
        (["z = 0", "for k in range(n):", "    z = z + a[i]", "out[i] = z"], "a complex number"),
        (["out[i] = a[i] if n > 2 else 1.0"], "a complex number or a real one"),
        (["out[i] = complex(a[i], 2)"], r"complex\(\) of complex parts"),
        (["out[i] = min(a[i], b[i])"], "min of a complex number"),
        (["for k in range(a[i]):", "    out[i] = k"], "a number is needed here"),
        (["out[i] = ~a[i]"], "~ of a complex number"),
    ],
)
def test_what_has_no_exact_rule(lines, message):
    arguments = (np.zeros(4, complex), np.zeros(4, complex), np.zeros(4), np.zeros(4, complex), 3)
    with pytest.raises(KernelLanguageError, match=message):
        specialised(function(*lines), 4, *arguments)
