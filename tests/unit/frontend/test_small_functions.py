"""ldexp, fma, bits of integers, functions of half turns: exact ones bit for bit on each device."""

import math
from fractions import Fraction

import numpy as np
import pytest

import fusionq as fq
from fusionq.base.errors import KernelLanguageError
from tests.unit.frontend.running import define, run_both, specialised

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def exact(item, x, y, z, n, out):
    i = item.get_id(0)
    out[0, i] = fq.fma(x[i], y[i], z[i])
    out[1, i] = math.ldexp(x[i], n[i])
    out[2, i] = np.ldexp(z[i], n[i] * 40)
    out[3, i] = fq.rsqrt(abs(x[i]))
    out[4, i] = fq.fma(x[i], y[i], -(x[i] * y[i]))
    out[5, i] = fq.fma(x[i], 2, 0.5) + math.ldexp(1.5, 3) + fq.fma(2.0, 3, 1) + fq.rsqrt(4)


def bits(item, a, out):
    i = item.get_id(0)
    out[0, i] = fq.clz(a[i])
    out[1, i] = fq.popcount(a[i])
    out[2, i] = np.bitwise_count(a[i]) + fq.clz(np.int16(1)) + fq.popcount(255)


def turns(item, x, out):
    i = item.get_id(0)
    out[0, i] = fq.cospi(x[i])
    out[1, i] = fq.sinpi(x[i])


def operands(dtype):
    random, info = np.random.default_rng(3), np.finfo(dtype)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, info.tiny, info.smallest_subnormal, info.max]
    found = [*odd, *random.standard_normal(91)]
    return [random.permutation(np.array(found, dtype)) for _ in range(3)]


def on_device(function, count, *arguments):
    with fq.FusionQueue() as queue:
        own = [fq.Buffer(a) for a in arguments]
        queue.submit(fq.kernel(function), count, *own)
        return own[-1].numpy().copy()


def python_and_device(function, count, *arguments):
    """The output by the function as plain Python, after the IR and the device gave the same."""
    run_both(function, count, *arguments[:-1], arguments[-1].copy())
    with fq.FusionQueue("reference") as queue:
        queue.submit(fq.kernel(function), count, *arguments)
        queue.wait()
    return arguments[-1], on_device(function, count, *arguments[:-1], np.zeros_like(arguments[-1]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_ones(dtype):
    x, y, z = operands(dtype)
    n = np.random.default_rng(4).integers(-60, 60, 100)
    n[:3] = 2**40, -(2**40), 0
    with np.errstate(all="ignore"):
        wanted, got = python_and_device(exact, 100, x, y, z, n, np.zeros((6, 100), dtype))
    np.testing.assert_array_equal(got, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    info = np.iinfo(dtype)
    a = np.array([0, 1, info.max, info.min, 100, 5, -1 % info.max, info.max - 1], dtype)
    wanted, got = python_and_device(bits, 8, a, np.zeros((3, 8), dtype))
    np.testing.assert_array_equal(got, wanted)
    width = a.itemsize * 8
    assert wanted[0].tolist() == [width - (int(v) % 2**width).bit_length() for v in a]
    assert wanted[1].tolist() == [(int(v) % 2**width).bit_count() for v in a]


@pytest.mark.parametrize("dtype", FLOATS)
def test_half_turns(dtype):
    x = np.array([0, -0.0, 0.5, 1, 1.5, 2, -0.5, -1, 100.5, 0.25, np.inf, np.nan, 1023], dtype)
    wanted, got = python_and_device(turns, len(x), x, np.zeros((2, len(x)), dtype))
    assert wanted[0, :9].tolist() == [1, 1, 0, -1, 0, 1, 0, -1, 0]
    assert wanted[1, 2:9].tolist() == [1, 0, -1, 0, -1, 0, 1]
    np.testing.assert_allclose(got, wanted, rtol=2e-3 if dtype == "float16" else 1e-6, atol=1e-9)


def test_fma_rounds_once():
    random = np.random.default_rng(6)
    for dtype in (np.float32, np.float64):
        for x, y, z in random.standard_normal((200, 3)).astype(dtype):
            exactly = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            error = abs(Fraction(float(fq.fma(x, y, z))) - exactly)
            assert error <= Fraction(float(np.spacing(abs(fq.fma(x, y, z))))) / 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fq.clz(x[i])", "fq.clz of float32"),
        ("np.bitwise_count(x[i])", "np.bitwise_count of float32"),
        ("math.ldexp(x[i], 0.5)", "with an exponent of type float"),
        ("fq.fma(x[i], 1)", r"takes 3 argument\(s\)"),
    ],
)
def test_what_they_do_not_take(text, message):
    made = define(
        f"def k(item, x, out):\n    i = item.get_id(0)\n    out[i] = {text}\n", fq=fq, math=math
    )
    with pytest.raises(KernelLanguageError, match=message):
        specialised(made, 4, np.zeros(4, np.float32), np.zeros(4))
