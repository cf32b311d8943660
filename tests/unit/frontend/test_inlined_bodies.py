"""Functions that are inlined into kernels, as Python runs them: against NumPy and ``cmath``."""

from __future__ import annotations

import cmath
import math
from functools import cache, reduce

import numpy as np
import pytest

from fusionq.frontend import complex_bodies, function_bodies, joint_bodies
from fusionq.language.combine import JOINT_LANES
from fusionq.language.execute import patched

PARTS = (0.0, -0.0, 0.3, -0.75, 1.0, 2.5, -7.0, 30.0, 1e-200, 1e300, math.inf, -math.inf, math.nan)
NUMBERS = [complex(a, b) for a in PARTS for b in PARTS]


as_python = cache(patched)


def parts(body, *numbers):
    """What ``body`` gives for complex numbers, by their parts as float64."""
    given = [np.float64(part) for number in numbers for part in (number.real, number.imag)]
    with np.errstate(all="ignore"):
        return as_python(body)(*given)


def as_numpy(function, *numbers):
    with np.errstate(all="ignore"):
        return function(*map(np.complex128, numbers))


def is_alike(found: float, wanted: float, size: float) -> bool:
    """Whether one part is right: infinities and NaN too, other numbers by the ``size`` of both."""
    if math.isfinite(wanted):
        return abs(found - wanted) <= 1e-11 * size
    return found == wanted or (math.isnan(found) and math.isnan(wanted))


def check(found, wanted, of) -> None:
    sizes = [abs(part) for part in (wanted.real, wanted.imag) if math.isfinite(part)]
    size = max(sizes, default=0.0)
    for ours, theirs in zip(found, (wanted.real, wanted.imag), strict=True):
        assert is_alike(float(ours), float(theirs), size), (of, found, wanted)


ONE_NUMBER = {
    np.exp: complex_bodies.exponential, np.log: complex_bodies.logarithm,
    np.log10: complex_bodies.logarithm10, np.sqrt: complex_bodies.square_root,
    np.sinh: complex_bodies.hyperbolic_sine, np.cosh: complex_bodies.hyperbolic_cosine,
    np.tanh: complex_bodies.hyperbolic_tangent, np.sin: complex_bodies.sine,
    np.cos: complex_bodies.cosine, np.tan: complex_bodies.tangent,
    np.square: complex_bodies.square,
}  # fmt: skip


def test_functions_of_a_complex_number():
    for function, body in ONE_NUMBER.items():
        for number in filter(cmath.isfinite, NUMBERS):
            check(parts(body, number), as_numpy(function, number), (function, number))


def test_infinities_and_nan_of_complex_functions():
    """Those of C99, annex G: of the parts that it leaves open only which are NaN."""
    cases = {
        complex_bodies.exponential: {
            complex(-math.inf, math.nan): (0, 0), complex(math.inf, 0): (math.inf, 0),
        },
        complex_bodies.square_root: {
            complex(math.inf, 1): (math.inf, 0), complex(-math.inf, -1): (0, -math.inf),
            complex(math.nan, math.inf): (math.inf, math.inf),
            complex(math.nan, 1): (math.nan, math.nan),
        },
        complex_bodies.hyperbolic_sine: {complex(math.inf, math.inf): (math.inf, math.nan)},
        complex_bodies.hyperbolic_cosine: {complex(-math.inf, math.nan): (math.inf, math.nan)},
        complex_bodies.hyperbolic_tangent: {
            complex(-math.inf, 2): (-1, 0), complex(1, math.inf): (math.nan, math.nan),
            complex(50, 0.5): (1, 4 * math.sin(0.5) * math.cos(0.5) * math.exp(-100)),
        },
    }  # fmt: skip
    for body, wanted in cases.items():
        for number, pair in wanted.items():
            found = parts(body, number)
            np.testing.assert_allclose(found, pair, rtol=1e-12, err_msg=f"{body} {number}")


def test_results_near_the_ends_of_float64():
    check(parts(complex_bodies.exponential, 710 + 0.78j), cmath.exp(710 + 0.78j), "exp")
    for number in (complex(710.6, 0.78), complex(-710.6, 0.78)):
        check(parts(complex_bodies.hyperbolic_sine, number), cmath.sinh(number), number)
        check(parts(complex_bodies.hyperbolic_cosine, number), cmath.cosh(number), number)
    for number in (complex(1.5e308, 1.5e308), complex(1e-310, 1e-310), complex(0.8, 0.6)):
        assert np.isclose(parts(complex_bodies.log_of_length, number), cmath.log(number).real)
    for number in (complex(1.5e308, -1e308), complex(-1e-300, 1e-305)):
        check(parts(complex_bodies.square_root, number), cmath.sqrt(number), number)


def test_quotients_powers_and_what_is_asked_of_complex_numbers():
    some = [complex(a, b) for a in (-2.0, 0.0, 0.5, 3.0) for b in (-1.5, 0.0, 4.0)]
    for number in some:
        for other in some:
            if other:
                check(parts(complex_bodies.quotient, number, other), number / other, other)
            if number:
                check(parts(complex_bodies.power, number, other), number**other, (number, other))
        if number:
            check(parts(complex_bodies.reciprocal, number), 1 / number, number)
        for exponent in (-5, 1, 2, 3, 7):
            if number:
                found = parts(complex_bodies.power, number, complex(exponent))
                check(found, number**exponent, (number, exponent))
        assert parts(complex_bodies.phase, number) == np.angle(number)
        if number:
            check(parts(complex_bodies.logarithm2, number), as_numpy(np.log2, number), number)
    assert parts(complex_bodies.power, 0j, 2 + 0j) == (0, 0)
    assert all(map(np.isnan, parts(complex_bodies.power, 0j, -1 + 0j)))
    assert np.isinf(parts(complex_bodies.quotient, 1 + 0j, 0j)[0])
    for number in NUMBERS:
        assert parts(complex_bodies.is_nan, number) == cmath.isnan(number)
        assert parts(complex_bodies.is_infinite, number) == cmath.isinf(number)
        assert parts(complex_bodies.is_finite, number) == cmath.isfinite(number)


REALS = [np.float64(x) for x in (0.0, -0.0, 0.5, -2.25, 3.0, 1e300, -7.5, math.inf, -math.inf)]


def test_functions_of_two_real_numbers():
    pairs = [(x, y) for x in REALS for y in REALS]
    for name in ("heaviside", "logaddexp", "logaddexp2"):
        for x, y in pairs:
            with np.errstate(all="ignore"):
                found = as_python(getattr(function_bodies, name))(x, y)
                wanted = getattr(np, name)(x, y)
            np.testing.assert_allclose(found, wanted, rtol=1e-15, err_msg=f"{name}({x}, {y})")
    for x, y in pairs:
        if y and math.isfinite(x) and math.isfinite(y):
            assert as_python(function_bodies.remainder)(x, y) == math.remainder(x, y)


def test_functions_of_one_real_number():
    with np.errstate(all="ignore"):
        for x in REALS:
            np.testing.assert_equal(as_python(function_bodies.spacing)(x), np.spacing(x))
            whole, part = as_python(function_bodies.modf)(x), np.modf(x)
            np.testing.assert_equal(tuple(whole), tuple(part))
        for half in np.float16([0, 1, -1, 1000, -1000, 65504, np.inf, 1e-7]):
            found = as_python(function_bodies.spacing_of_float16)(half)
            np.testing.assert_equal(np.float16(found), np.spacing(half))


@pytest.mark.parametrize("dtype", [np.int16, np.uint8])
def test_functions_of_integers(dtype):
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}").type
    values = [dtype(k) for k in (0, 1, 6, 9, 12, 35, 100)]
    if np.issubdtype(dtype, np.signedinteger):
        values += [dtype(-k) for k in (1, 4, 15)]
    for name in ("gcd", "lcm", "fmod"):
        body, reference = as_python(getattr(function_bodies, name)), getattr(np, name)
        for a, b in [(a, b) for a in values for b in values if b or name != "fmod"]:
            with np.errstate(all="ignore"):
                assert body(a, b, unsigned, dtype) == reference(a, b), (name, a, b)


def alone(body, *arguments):
    """What ``body`` gives to the only work-item of a group, for which there is nobody to wait."""
    names = {name: getattr(joint_bodies, name) for name in body.__globals__ if name[0] != "_"}
    assert "group_barrier" in names
    lone = {"group_barrier": lambda group: None}
    run = type(body)(body.__code__, {**body.__globals__, **lone}, body.__name__)
    return run(None, *arguments)


IDENTITIES = {"add": 0, "mul": 1, "min": 255, "max": 0, "and": 255, "or": 0, "xor": 0}


@pytest.mark.parametrize("length", [0, 1, JOINT_LANES - 1, 2 * JOINT_LANES + 5])
def test_group_algorithms_over_arrays_by_one_work_item(length):
    assert IDENTITIES.keys() == joint_bodies.COMBINE.keys()
    for name, start in IDENTITIES.items():
        check_group_algorithms(joint_bodies.COMBINE[name], start, length)


def check_group_algorithms(combine, start, length) -> None:
    x = np.random.default_rng(length).integers(1, 5, length)
    slots = np.zeros(2 * JOINT_LANES, np.int64)
    whole = reduce(combine, x.tolist(), start)
    bits = (1 << 63) - 1

    def wrapped(a, b):
        return combine(int(a), int(b)) & bits

    found = alone(joint_bodies.joint_reduction, 0, 1, x, slots, wrapped, start)
    assert found == whole & bits
    for exclusive in (False, True):
        out = np.zeros(length, np.int64)
        arguments = (0, 1, x, out, slots, wrapped, start, start, exclusive)
        alone(joint_bodies.joint_scan, *arguments)
        sums = [start]
        for value in x.tolist():
            sums.append(wrapped(sums[-1], value))
        assert out.tolist() == (sums[:-1] if exclusive else sums[1:])


def test_what_is_asked_of_elements():
    x = np.array([0, 3, 0, 5])
    for own, some, every in ((0, False, False), (1, True, True)):
        assert joint_bodies.some_element(own, 2, x, joint_bodies.is_true) == some
        assert joint_bodies.every_element(own, 2, x, joint_bodies.is_true) == every
